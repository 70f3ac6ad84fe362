"""Fine-tuning on the city of networks pretrained on generated boards, compared with training from
random weights.

Run `python -m experiments.studies.transfer FOLDER`, where FOLDER is that of a study of
generalisation, which may not move. For each kind of network and each seed that the study trained on
an unlimited number of boards, networks are trained on the city with the budgets of BUDGETS (and at
most one iteration more): from random weights, and from the pretrained ones. All other settings are
those of the study. The networks then play on the city without search. FOLDER/transfer receives the
runs, `results.json`, `table.md` and `transfer.png`; a stopped study resumes.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from busenv.common.keyboard_interrupt import run_command
from busenv.common.plot_style import default_style, save_png
from busenv.common.runs import lock_folder
from busenv.evaluation.benchmark.aggregates import interquartile_mean
from busenv.io import write_whole
from busenv.train.run import MODEL
from experiments.studies import study_parser
from experiments.studies.generalisation import (
    OPPONENTS,
    UNLIMITED,
    Results,
    config_of,
    draw_rates,
    format_interval,
    make_panels,
    measure_runs,
    networks_of,
    rates_of_seeds,
    read_results,
    win_rates,
)

BUDGETS = {  # decisions on the city, by kind of network
    "mlp": (100_000, 300_000, 1_000_000),
    "board": (25_000, 50_000),
}
INITIAL_WEIGHTS = ("random", "pretrained")
CITY = "the city"


def read_pretrained(folder: Path) -> Results:
    """Read the results of the networks that were trained on an unlimited number of boards.

    ValueError when a study of generalisation has none of them.
    """
    results = read_results(folder)
    pretrained = {run: rates for run, rates in results.items() if f"/{UNLIMITED}/" in run}
    if not pretrained:
        raise ValueError(
            f"{folder} has no finished run on an unlimited number of boards; first run "
            f"python -m experiments.studies.generalisation {folder}"
        )
    return pretrained


def study(folder: Path, pretrained: Results) -> Results:
    """Measure all runs; return their results by "NETWORK/BUDGET/INITIAL WEIGHTS/SEED"."""
    configs = {}
    for run in pretrained:
        network, _, seed = run.split("/")
        models = zip(INITIAL_WEIGHTS, ("", str((folder / run / MODEL).resolve())), strict=True)
        for decisions, (initial, init_from) in product(BUDGETS[network], models):
            configs[f"{network}/{decisions}/{initial}/{seed}"] = config_of(
                network, int(seed), "city", init_from=init_from, decisions=decisions
            )
    return measure_runs(folder / "transfer", configs, lambda run: {CITY: win_rates(run, "city")})


def table(results: Results, pretrained: Results) -> str:
    """Return the win rates by initial weights and decisions on the city, in Markdown."""
    lines = [
        f"| network | initial weights | decisions on the city | {' | '.join(OPPONENTS)} |",
        "|---" * (3 + len(OPPONENTS)) + "|",
    ]

    def add(network: str, initial: str, decisions: int, measured: Results, runs: str) -> None:
        cells = (format_interval(rates_of_seeds(measured, runs, CITY, bot)) for bot in OPPONENTS)
        lines.append(f"| `{network}` | {initial} | {decisions:,} | {' | '.join(cells)} |")

    for network in networks_of(pretrained):
        for decisions in BUDGETS[network]:
            add(network, "random", decisions, results, f"{network}/{decisions}/random")
        add(network, "pretrained", 0, pretrained, f"{network}/{UNLIMITED}")
        for decisions in BUDGETS[network]:
            add(network, "pretrained", decisions, results, f"{network}/{decisions}/pretrained")
    return "\n".join(lines) + "\n"


@default_style()
def draw(results: Results, pretrained: Results, path: Path) -> None:
    """Draw the win rates against each opponent by decisions on the city."""
    networks = networks_of(pretrained)
    figure, axes = make_panels(networks, "thousand decisions on the city")
    for axis, (network, bot) in zip(axes.flat, product(networks, OPPONENTS), strict=True):
        budgets = BUDGETS[network]
        for initial in INITIAL_WEIGHTS:
            runs = (f"{network}/{decisions}/{initial}" for decisions in budgets)
            draw_rates(axis, [rates_of_seeds(results, run, CITY, bot) for run in runs], initial)
        before = interquartile_mean(rates_of_seeds(pretrained, f"{network}/{UNLIMITED}", CITY, bot))
        axis.axhline(100 * before, color="gray", linestyle="--", label="pretrained, not fine-tuned")
        axis.set_xticks(range(len(budgets)), [f"{decisions // 1000:,}" for decisions in budgets])
    axes[0, -1].legend(loc="upper left", title="initial weights")
    save_png(figure, path)


def main() -> None:
    parser = study_parser("transfer", __doc__)
    parser.add_argument("folder", type=Path, help="folder of a study of generalisation")
    folder = parser.parse_args().folder
    try:
        pretrained = read_pretrained(folder)
        with lock_folder(folder / "transfer"):
            results = study(folder, pretrained)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    text = table(results, pretrained)
    write_whole(folder / "transfer" / "table.md", text)
    draw(results, pretrained, folder / "transfer" / "transfer.png")
    print(text)


if __name__ == "__main__":
    run_command(main)
