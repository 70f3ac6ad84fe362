"""What a network that was trained on generated boards saves when it learns the city.

Run `python -m busenv.experiments.studies.transfer FOLDER`, where FOLDER is that of a finished study
of generalisation. For each budget and each seed, a network imitates games of TEACHER on the city:
from random weights, and from the weights that this seed reached on an unlimited number of generated
boards. All other settings are equal. It then plays on the city as in the study of generalisation.
FOLDER/transfer receives the runs, `results.json`, the table in Markdown and the picture; a stopped
study resumes.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

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

BUDGETS = (20_000, 60_000, 200_000)  # decisions on the city
INITIAL_WEIGHTS = ("random", "general")  # general: from generated boards
CITY = "the city"
UNLIMITED = str(TRAINING_BOARDS["unlimited"])


def read_general(folder: Path) -> Results:
    """Read the results of the networks that were trained on an unlimited number of boards.

    ValueError when a study of generalisation has none of them.
    """
    results: Results = json.loads((folder / "results.json").read_text())
    general = {name: shares for name, shares in results.items() if name.startswith(UNLIMITED)}
    if not general:
        raise ValueError(f"{folder} has no run on an unlimited number of boards; finish its study")
    return general


def study(folder: Path) -> Results:
    """Measure all runs; return their results by "BUDGET/INITIAL WEIGHTS/SEED"."""
    models = {name.rpartition("/")[2]: folder / name / MODEL for name in read_general(folder)}
    configs = {}
    for (seed, model), decisions in product(models.items(), BUDGETS):
        for initial, init_from in zip(INITIAL_WEIGHTS, ("", str(model)), strict=True):
            config = config_of(int(seed), decisions, init_from=init_from)
            configs[f"{decisions}/{initial}/{seed}"] = config
    return measure_runs(folder / "transfer", configs, lambda run: {CITY: win_shares(run, "city")})


def city_scores(results: Results, initial: str, bot: str) -> list[np.ndarray]:
    """Return the shares of wins of all seeds for each budget."""
    return [scores(results, f"{decisions}/{initial}", CITY, bot) for decisions in BUDGETS]


def table(results: Results, general: Results) -> str:
    """Return the shares of wins by initial weights and decisions on the city, in Markdown."""
    lines = [
        f"| initial weights | decisions on the city | {' | '.join(OPPONENTS)} |",
        "|---" * (2 + len(OPPONENTS)) + "|",
    ]

    def add(initial: str, decisions: int, shares: Results, runs: str) -> None:
        cells = (cell(scores(shares, runs, CITY, bot)) for bot in OPPONENTS)
        lines.append(f"| {initial} | {decisions:,} | {' | '.join(cells)} |")

    add(INITIAL_WEIGHTS[1], 0, general, UNLIMITED)
    for initial, decisions in product(INITIAL_WEIGHTS, BUDGETS):
        add(initial, decisions, results, f"{decisions}/{initial}")
    return "\n".join(lines) + "\n"


@default_style()
def draw(results: Results, general: Results, path: Path) -> None:
    """Draw the shares of wins against each opponent by decisions on the city."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    axes = figure.subplots(1, len(OPPONENTS), sharey=True)
    for axis, bot in zip(axes, OPPONENTS, strict=True):
        for initial in INITIAL_WEIGHTS:
            draw_scores(axis, city_scores(results, initial, bot), initial)
        before = scores(general, UNLIMITED, CITY, bot).mean()
        axis.axhline(100 * before, color="gray", linestyle="--", label="before fine-tuning")
        axis.set_title(f"against three {bot}")
        axis.set_xticks(range(len(BUDGETS)), [f"{decisions:,}" for decisions in BUDGETS])
        axis.set_xlabel("decisions on the city")
    axes[0].set_ylabel("games won (%)")
    axes[0].set_ylim(0, 100)
    axes[0].legend(loc="upper left", title="initial weights")
    save_png(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="busenv.experiments.studies.transfer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="folder of a finished study of generalisation")
    folder = parser.parse_args().folder
    try:
        general = read_general(folder)
        with lock_folder(folder / "transfer"):
            results = study(folder)
    except (OSError, ValueError, RunError) as error:
        parser.error(str(error))
    text = table(results, general)
    write_whole(folder / "transfer" / "table.md", text, follow_links=False)
    draw(results, general, folder / "transfer" / "transfer.png")
    print(text)


if __name__ == "__main__":
    run_command(main)
