"""The main job in small: train an agent by self-play, rate it against the bots, show the result."""

from __future__ import annotations

from pathlib import Path

from busenv.agents import make_agent
from busenv.experiments.ratings.match import Score
from busenv.experiments.training.runs import CURVE, MODEL, PICTURE, against, run_training
from busenv.train.config import PRESETS, Config
from busenv.train.trainer import Run
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import busenv
from busenv.files import write_whole

COLUMNS = ("line-up", "agent", "wins", "95% interval", "mean place", "mean points")


def run_demo(folder: Path, seconds: float = 180.0, games: int = 400, seed: int = 0) -> None:
    """Train by the preset "quick" for a time and report on it."""
    config = PRESETS["quick"].changed({"seconds": seconds, "seed": seed})
    train_and_report(config, folder, games)


def train_and_report(config: Config, folder: Path, games: int) -> None:
    """Train in a folder, rate, print the table, and leave a report there."""
    console = Console()
    run, _ = run_training(config, folder, console)
    console.print("Rating ...")
    bots, under = config.rated, (config.seed, config.rules)
    match_ups = [
        (f"ppo against three {bot}", against(run.agent, bot, games, *under)) for bot in bots
    ]
    if "greedy" in bots and "random" in bots:
        scores = against(make_agent("greedy"), "random", games, *under)
        match_ups.append(("greedy against three random", scores))
    table = Table(
        title=f"{games} games each, seats and starting player rotated; par is 25% of wins"
    )
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:2] else "right")
    for title, scores in match_ups:
        for row, score in enumerate(scores):
            table.add_row(title if row == 0 else "", *_cells(score))
    console.print(table)
    write_whole(folder / "report.md", _report(match_ups, run, games))
    console.print(
        f"Report: {escape(str(folder / 'report.md'))}, picture: {escape(str(folder / PICTURE))}"
    )


def _cells(score: Score) -> list[str]:
    low, high = score.interval()
    return [
        score.name,
        f"{score.wins / score.games:.1%}",
        f"{low:.1%} to {high:.1%}" if score.seats == 1 else "",
        f"{score.place + 1:.2f}",
        f"{score.points:.2f}",
    ]


def _report(match_ups: list[tuple[str, list[Score]]], run: Run, games: int) -> str:
    config = run.config
    limit = f"{config.seconds:g} s" if config.seconds else "repeatably"
    lines = [
        "# An agent, trained and rated",
        "",
        f"busenv {busenv.__version__}, rules {config.rules}. Trained {limit} by "
        f"self-play, {run.decisions:,} decisions learned from, seed {config.seed}. "
        f"{games} games a line-up, 4 players, seats and starting player rotated; "
        "par is 25% of wins.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for title, scores in match_ups:
        lines += [f"| {title} | " + " | ".join(_cells(score)) + " |" for score in scores]
    lines += ["", f"![learning curve]({PICTURE})", ""]
    lines += [f"`{CURVE}` has the curve in numbers, `{MODEL}` and its card the agent: build it"]
    lines += [
        f'with `busenv.agents.make_agent("ppo:{MODEL}")`. `run.json` has all settings; TensorBoard'
    ]
    lines += ["shows the folder `tensorboard`.", ""]
    return "\n".join(lines)
