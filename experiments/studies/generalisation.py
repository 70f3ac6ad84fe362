"""Win rates on unseen boards by the number of training boards.

Run `python -m experiments.studies.generalisation FOLDER`. For each kind of network, each
number of training boards and each seed, a network is trained on that many generated boards of the
city's size. `mlp` learns by PPO from random weights, among `greedy`, `planner` and past
selves; `board` imitates games of TEACHER. A run has the decisions of its kind in DECISIONS, and at
most one iteration more. The networks then play without search, one seat against copies of each
opponent: on their training boards (at most TEST_BOARDS of them; not with an unlimited number, of
which a run draws few), on TEST_BOARDS boards of the split `test`, and on the city. FOLDER receives
the runs, `results.json`, `table.md` and `generalisation.png`; a stopped study resumes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from busenv.cli.command import add_count
from busenv.common.keyboard_interrupt import run_command
from busenv.common.plot_style import default_style, save_png
from busenv.common.runs import lock_folder
from busenv.evaluation.benchmark.aggregates import bootstrap_interval, interquartile_mean
from busenv.evaluation.benchmark.benchmark_report import format_scores
from busenv.io import read_json, write_whole
from busenv.train.config import PRESETS
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.run_folder import changed_settings
from busenv.train.training_run import AnyRun, evaluate_against, run_training
from experiments.studies import study_parser

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULTS = "results.json"
DECISIONS = {"mlp": 1_000_000, "board": 250_000}  # of a run, by kind of network
TEACHER = "uct:50"
UNLIMITED = 1_000_000
TRAINING_BOARDS = {"1": 1, "10": 10, "100": 100, "1,000": 1_000, "unlimited": UNLIMITED}
TEST_BOARDS = 100
OPPONENTS = {"greedy": 400, "planner": 400, "uct:100": 100}  # and games
BOARD_SETS = ("training boards", "unseen boards", "the city")

WinRates = dict[str, dict[str, float]]  # by set of boards and opponent
Results = dict[str, WinRates]  # by name of the run


def config_of(network: str, seed: int, board: str, **changes: Any) -> AnyConfig:
    """Return the settings of a run."""
    common = {"board": board, "players": (4,), "decisions": DECISIONS[network], "seed": seed}
    # The study measures the runs itself, so their own ratings are few.
    ratings = {"rate_every": 1e9, "rated": ("planner",), "rate_games": 1}
    if network == "mlp":
        return PRESETS["quick"].changed({**common, **ratings, **changes})
    settings = ExpertConfig(
        network="board",
        width=64,
        learning_rate=1.5e-3,
        teacher=TEACHER,
        teacher_games=1_000_000,
        teacher_share=1.0,
        teacher_sample_share=1.0,
        teacher_reuse=2.0,
        replay_size=DECISIONS[network],
    )
    return settings.changed({**common, **ratings, **changes})


def win_rates(run: AnyRun, board: str) -> dict[str, float]:
    """Return the run's win rate against each opponent."""
    rates = {}
    for bot, games in OPPONENTS.items():
        own = evaluate_against(run.agent, bot, games, run.config.seed, board=board)[0]
        rates[bot] = own.wins / own.games
    return rates


def read_results(folder: Path) -> Results:
    """Read the results of a study so far; ValueError names a damaged file."""
    path = folder / RESULTS
    results: Results = read_json(path) if path.exists() else {}
    return results


def measure_runs(
    folder: Path, configs: dict[str, AnyConfig], measure: Callable[[AnyRun], WinRates]
) -> Results:
    """Train and measure the runs that the folder's results lack; return the results of all.

    configs: settings of each run by its name, which is its folder. RunError for a run of other
    settings.
    """
    results = read_results(folder)
    for name, config in configs.items():
        changed_settings(folder / name, config)
        if name in results:
            continue
        run, _ = run_training(config, folder / name, Console(quiet=True))
        results[name] = measure(run)
        write_whole(folder / RESULTS, json.dumps(results, indent=1) + "\n")
        rates = ", ".join(f"{boards} {won['planner']:.1%}" for boards, won in results[name].items())
        print(f"{name}, against planner: {rates}", flush=True)
    return {name: results[name] for name in configs}


def measure_board_sets(run: AnyRun) -> WinRates:
    """Return a run's win rates on its training boards, on unseen boards and on the city."""
    split, _, count = run.config.board.rpartition(":")
    trained_on = f"{split}:{min(int(count), TEST_BOARDS)}"
    specs = (trained_on, f"generated:city:test:{TEST_BOARDS}", "city")
    board_sets = dict(zip(BOARD_SETS, specs, strict=True))
    if int(count) == UNLIMITED:
        del board_sets[BOARD_SETS[0]]
    return {name: win_rates(run, spec) for name, spec in board_sets.items()}


def study(folder: Path, networks: Sequence[str], seeds: int) -> Results:
    """Measure all runs of some kinds of networks; return results by "NETWORK/BOARDS/SEED"."""
    configs = {
        f"{network}/{boards}/{seed}": config_of(network, seed, f"generated:city:train:{boards}")
        for seed, network, boards in product(range(seeds), networks, TRAINING_BOARDS.values())
    }
    return measure_runs(folder, configs, measure_board_sets)


def networks_of(results: Results) -> list[str]:
    """Return the kinds of networks of results."""
    return [kind for kind in DECISIONS if any(run.startswith(f"{kind}/") for run in results)]


def rates_of_seeds(results: Results, runs: str, boards: str, bot: str) -> np.ndarray:
    """Return the win rates of all seeds; runs: what their names have before the seed."""
    seeds = (rates for name, rates in results.items() if name.rpartition("/")[0] == runs)
    return np.array([rates[boards][bot] for rates in seeds if boards in rates])


def format_interval(rates: np.ndarray) -> str:
    """Format an interquartile mean over seeds, with its 95% interval if there are several."""
    return format_scores(rates[:, None]).replace("\n", " ") if len(rates) else "—"


def table(results: Results) -> str:
    """Return the win rates by network and number of training boards, in Markdown."""
    columns = [*product(BOARD_SETS, OPPONENTS)]
    lines = [
        f"| network | boards | {' | '.join(f'{name}, {bot}' for name, bot in columns)} |",
        "|---" * (2 + len(columns)) + "|",
    ]
    for network, (name, boards) in product(networks_of(results), TRAINING_BOARDS.items()):
        runs = f"{network}/{boards}"
        cells = (format_interval(rates_of_seeds(results, runs, *column)) for column in columns)
        lines.append(f"| `{network}` | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw_rates(axis: Axes, rates: list[np.ndarray], label: str) -> None:
    """Draw interquartile means over seeds with their intervals, at 0, 1, 2, ..."""
    means = 100 * np.array([interquartile_mean(one) for one in rates])
    low, high = 100 * np.array([bootstrap_interval(one[:, None]) for one in rates]).T
    line = axis.plot(means, marker="o", label=label)[0]
    axis.fill_between(range(len(means)), low, high, alpha=0.2, color=line.get_color())


def make_panels(networks: list[str], x_label: str) -> tuple[Figure, np.ndarray]:
    """Return a figure of win rates, and its axes: a row for each network, a column for each bot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1 + 2.8 * len(networks)), layout="constrained")
    axes = figure.subplots(len(networks), len(OPPONENTS), sharey=True, squeeze=False)
    for axis, (network, bot) in zip(axes.flat, product(networks, OPPONENTS), strict=True):
        axis.set_title(f"{network}, against three {bot}")
    for axis in axes[-1]:
        axis.set_xlabel(x_label)
    for axis in axes[:, 0]:
        axis.set_ylabel("games won (%)")
    axes[0, 0].set_ylim(0, 100)
    return figure, axes


@default_style()
def draw(results: Results, path: Path) -> None:
    """Draw the win rates against each opponent by the number of training boards."""
    networks = networks_of(results)
    figure, axes = make_panels(networks, "training boards")
    for axis, (network, bot) in zip(axes.flat, product(networks, OPPONENTS), strict=True):
        for name in BOARD_SETS:
            runs = (f"{network}/{boards}" for boards in TRAINING_BOARDS.values())
            rates = [rates_of_seeds(results, run, name, bot) for run in runs]
            draw_rates(axis, [one for one in rates if len(one)], name)
        axis.axhline(25, color="gray", linewidth=0.8, linestyle=":")
        axis.set_xticks(range(len(TRAINING_BOARDS)), [*TRAINING_BOARDS])
    axes[0, 0].legend(loc="upper right")
    save_png(figure, path)


def main() -> None:
    parser = study_parser("generalisation", __doc__)
    parser.add_argument("folder", type=Path, help="folder of the study; an existing one resumes")
    parser.add_argument(
        "--networks",
        nargs="+",
        choices=[*DECISIONS],
        default=[*DECISIONS],
        help="kinds of networks to train (default: all)",
    )
    add_count(parser, "--seeds", 3, "runs for each number of boards")
    arguments = parser.parse_args()
    try:
        with lock_folder(arguments.folder):
            results = study(arguments.folder, arguments.networks, arguments.seeds)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    text = table(results)
    write_whole(arguments.folder / "table.md", text)
    draw(results, arguments.folder / "generalisation.png")
    print(text)


if __name__ == "__main__":
    run_command(main)
