"""What a network that was trained on generated boards saves when it learns the city.

Run `python -m busenv.experiments.studies.transfer FOLDER`, where FOLDER is that of a study of
generalisation. For each kind of network, each budget and each seed, a network is trained on the
city with the settings of that study: from random weights, and from the weights that this seed
reached on an unlimited number of generated boards ("general"). It then plays on the city as in that
study. FOLDER/transfer receives the runs, `results.json`, the table in Markdown and the picture; a
stopped study resumes.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.common.plot_style import default_style, save_png
from busenv.experiments.common.runs import RunError, lock_folder
from busenv.experiments.studies.generalisation import (
    OPPONENTS,
    TRAINING_BOARDS,
    Results,
    cell,
    config_of,
    draw_scores,
    measure_runs,
    scores,
    win_shares,
)
from busenv.io import write_whole
from busenv.train.run import MODEL

BUDGETS = {  # decisions on the city, by kind of network
    "mlp": (100_000, 300_000, 1_000_000),
    "board": (20_000, 60_000, 200_000),
}
INITIAL_WEIGHTS = ("random", "general")
CITY = "the city"
UNLIMITED = str(TRAINING_BOARDS["unlimited"])


def read_general(folder: Path) -> Results:
    """Read the results of the networks that were trained on an unlimited number of boards.

    ValueError when a study of generalisation has none of them.
    """
    results: Results = json.loads((folder / "results.json").read_text())
    general = {name: won for name, won in results.items() if name.split("/")[1] == UNLIMITED}
    if not general:
        raise ValueError(f"{folder} has no run on an unlimited number of boards; finish its study")
    return general


def study(folder: Path, general: Results) -> Results:
    """Measure all runs; return their results by "NETWORK/BUDGET/INITIAL WEIGHTS/SEED"."""
    configs = {}
    for run in general:
        network, _, seed = run.split("/")
        models = zip(INITIAL_WEIGHTS, ("", str(folder / run / MODEL)), strict=True)
        for decisions, (initial, init_from) in product(BUDGETS[network], models):
            configs[f"{network}/{decisions}/{initial}/{seed}"] = config_of(
                network, int(seed), "city", init_from=init_from, decisions=decisions
            )
    return measure_runs(folder / "transfer", configs, lambda run: {CITY: win_shares(run, "city")})


def networks_of(general: Results) -> list[str]:
    """Return the kinds of networks in the order of BUDGETS."""
    return [network for network in BUDGETS if any(run.startswith(network) for run in general)]


def table(results: Results, general: Results) -> str:
    """Return the shares of wins by initial weights and decisions on the city, in Markdown."""
    lines = [
        f"| network | initial weights | decisions on the city | {' | '.join(OPPONENTS)} |",
        "|---" * (3 + len(OPPONENTS)) + "|",
    ]

    def add(network: str, initial: str, decisions: int, shares: Results, runs: str) -> None:
        cells = (cell(scores(shares, runs, CITY, bot)) for bot in OPPONENTS)
        lines.append(f"| `{network}` | {initial} | {decisions:,} | {' | '.join(cells)} |")

    for network in networks_of(general):
        for decisions in BUDGETS[network]:
            add(network, "random", decisions, results, f"{network}/{decisions}/random")
        add(network, "general", 0, general, f"{network}/{UNLIMITED}")
        for decisions in BUDGETS[network]:
            add(network, "general", decisions, results, f"{network}/{decisions}/general")
    return "\n".join(lines) + "\n"


@default_style()
def draw(results: Results, general: Results, path: Path) -> None:
    """Draw the shares of wins against each opponent by decisions on the city."""
    from matplotlib.figure import Figure

    networks = networks_of(general)
    figure = Figure(figsize=(10, 3 * len(networks)), layout="constrained")
    axes = figure.subplots(len(networks), len(OPPONENTS), sharey=True, squeeze=False)
    for axis, (network, bot) in zip(axes.flat, product(networks, OPPONENTS), strict=True):
        budgets = BUDGETS[network]
        for initial in INITIAL_WEIGHTS:
            runs = (f"{network}/{decisions}/{initial}" for decisions in budgets)
            draw_scores(axis, [scores(results, run, CITY, bot) for run in runs], initial)
        before = scores(general, f"{network}/{UNLIMITED}", CITY, bot).mean()
        axis.axhline(100 * before, color="gray", linestyle="--", label="general, not fine-tuned")
        axis.set_title(f"{network}, against three {bot}")
        axis.set_xticks(range(len(budgets)), [f"{decisions:,}" for decisions in budgets])
    for axis in axes[-1]:
        axis.set_xlabel("decisions on the city")
    for axis in axes[:, 0]:
        axis.set_ylabel("games won (%)")
    axes[0, 0].set_ylim(0, 100)
    axes[0, 0].legend(loc="upper left", title="initial weights")
    save_png(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="busenv.experiments.studies.transfer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="folder of a study of generalisation")
    folder = parser.parse_args().folder
    try:
        general = read_general(folder)
        with lock_folder(folder / "transfer"):
            results = study(folder, general)
    except (OSError, ValueError, RunError) as error:
        parser.error(str(error))
    text = table(results, general)
    write_whole(folder / "transfer" / "table.md", text, follow_links=False)
    draw(results, general, folder / "transfer" / "transfer.png")
    print(text)


if __name__ == "__main__":
    run_command(main)
