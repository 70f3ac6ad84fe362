"""Measure win rates on unseen boards by the number of training boards.

    python -m experiments.generalisation FOLDER

trains a network for each kind of network, number of training boards and seed. `mlp` learns by PPO
from random weights, among `greedy`, `planner` and past selves; `board` imitates games of TEACHER. A
run may exceed its DECISIONS by one iteration. The networks then play without search, one seat
against copies of each opponent, on each of BOARD_SETS: at most TEST_BOARDS of their training boards
(none if their number is unlimited, because a run draws few of them), as many of the split `test`,
and the city. FOLDER receives the runs, `results.csv`, `table.csv` and `generalisation.png`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from rich.console import Console

from busenv.common.plot_style import default_style, save_png
from busenv.evaluation.curves import bootstrap_interval, format_mean
from busenv.io import write_whole
from busenv.train.config import PRESETS
from busenv.train.expert_iteration.expert_config import FitConfig, SelfPlayConfig
from busenv.train.expert_iteration.selfplay_run import run_selfplay
from busenv.train.run_training import AnyRun, evaluate_against, run_training

DECISIONS = {"mlp": 1_000_000, "board": 250_000}  # of a run, by kind of network
TEACHER = "uct:50"
UNLIMITED = 1_000_000
TRAINING_BOARDS = {"1": 1, "10": 10, "100": 100, "1,000": 1_000, "unlimited": UNLIMITED}
TEST_BOARDS = 100
OPPONENTS = {"greedy": 400, "planner": 400, "uct:100": 100}  # and games
BOARD_SETS = ("training boards", "unseen boards", "the city")

COLUMNS = ["run", "network", "boards", "played on", "against", "won"]


def train(network: str, seed: int, boards: int, folder: Path) -> AnyRun:
    """Train a network in a folder, or resume."""
    board = f"generated:city:train:{boards}"
    settings: dict[str, Any] = {
        "board": board,
        "players": (4,),
        "seed": seed,
        "rate_every": 1e9,  # the study measures the runs itself
        "rated": ("planner",),
        "rate_games": 1,
    }
    console = Console(quiet=True)
    if network == "mlp":
        config = PRESETS["quick"].changed({**settings, "decisions": DECISIONS[network]})
        return run_training(config, folder, console)[0]
    data = f"{folder}-games"
    games = SelfPlayConfig(
        agent=TEACHER, samples=DECISIONS[network], full_search_share=1.0, board=board, seed=seed
    )
    run_selfplay(games, data, console)
    fit = FitConfig(
        **settings, network="board", width=64, learning_rate=1.5e-3, epochs=2, data=(data,)
    )
    return run_training(fit, folder, console)[0]


def win_rates(run: AnyRun, boards: int) -> Iterator[tuple[str, str, float]]:
    """Yield the set of boards, the opponent, and the share of games that a run wins."""
    trained_on = f"generated:city:train:{min(boards, TEST_BOARDS)}"
    specs = (trained_on, f"generated:city:test:{TEST_BOARDS}", "city")
    board_sets = [*zip(BOARD_SETS, specs, strict=True)][boards == UNLIMITED :]
    for (name, board), (bot, games) in product(board_sets, OPPONENTS.items()):
        own = evaluate_against(run.agent, bot, games, run.config.seed, board=board)[0]
        yield name, bot, own.wins / own.games


def study(folder: Path, networks: Sequence[str], seeds: int) -> pd.DataFrame:
    """Train and measure the runs that the folder's results lack; return the results of all."""
    path = folder / "results.csv"
    parts = [pd.read_csv(path, dtype={"boards": str})] if path.exists() else []
    measured = {run for part in parts for run in part["run"]}
    for seed, network, (name, boards) in product(range(seeds), networks, TRAINING_BOARDS.items()):
        if (key := f"{network}/{boards}/{seed}") not in measured:
            run = train(network, seed, boards, folder / key)
            rows = [(key, network, name, *rates) for rates in win_rates(run, boards)]
            parts.append(pd.DataFrame(rows, columns=COLUMNS))
            write_whole(path, pd.concat(parts).to_csv(index=False))
    return pd.concat(parts)


def summarize(results: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds with intervals, as text."""
    means = results.groupby(COLUMNS[1:-1], sort=False)["won"]
    return means.agg(lambda shares: format_mean(shares.to_numpy())).reset_index()


def markdown(summary: pd.DataFrame) -> str:
    """Return the win rates against `planner` in Markdown, with a column for each set."""
    lines = [f"| network | boards | {' | '.join(BOARD_SETS)} |", "|---" * 5 + "|"]
    rows = summary[summary["against"] == "planner"].groupby(["network", "boards"], sort=False)
    for (network, boards), group in rows:
        won = group.set_index("played on")["won"].reindex(BOARD_SETS, fill_value="—")
        lines.append(f"| `{network}` | {boards} | {' | '.join(won)} |")
    return "\n".join(lines)


@default_style()
def draw(results: pd.DataFrame, path: Path) -> None:
    """Draw the win rates against each opponent by the number of training boards."""
    networks = results["network"].unique()
    figure = Figure(figsize=(10, 1 + 2.8 * len(networks)), layout="constrained")
    axes = figure.subplots(len(networks), len(OPPONENTS), sharey=True, squeeze=False)
    for axis, (network, bot) in zip(axes.flat, product(networks, OPPONENTS), strict=True):
        panel = results[(results["network"] == network) & (results["against"] == bot)]
        for name, rows in panel.groupby("played on", sort=False):
            scores = [
                100 * group.to_numpy() for _, group in rows.groupby("boards", sort=False)["won"]
            ]
            line = axis.plot([one.mean() for one in scores], marker="o", label=name)[0]
            low, high = zip(*map(bootstrap_interval, scores), strict=True)
            axis.fill_between(range(len(scores)), low, high, alpha=0.2, color=line.get_color())
        axis.axhline(25, color="gray", linewidth=0.8, linestyle=":")
        axis.set_xticks(range(len(TRAINING_BOARDS)), [*TRAINING_BOARDS])
        axis.set(title=f"{network} against three {bot}", xlabel="training boards", ylim=(0, 100))
    axes[0, 0].legend(loc="upper right")
    axes[0, 0].set_ylabel("games won (%)")
    save_png(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of the study; an existing one resumes")
    parser.add_argument("--networks", nargs="+", choices=[*DECISIONS], default=[*DECISIONS])
    parser.add_argument("--seeds", type=int, default=3, help="runs for each number of boards")
    arguments = parser.parse_args()
    results = study(arguments.folder, arguments.networks, arguments.seeds)
    summary = summarize(results)
    write_whole(arguments.folder / "table.csv", summary.to_csv(index=False))
    draw(results, arguments.folder / "generalisation.png")
    print(markdown(summary))


if __name__ == "__main__":
    main()
