"""The main job in small: train an agent, rate it against the bots, show the result.

A network learns from the games of a search first, then from its own by the search that it guides
(`busenv.train.expert_iteration`): of the two ways of learning the one that comes further in three minutes.
"""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import busenv
from busenv.agents import Agent, make_agent
from busenv.experiments.common.console import TextTable
from busenv.experiments.ratings.match import Score
from busenv.experiments.training.sample_game import PAGE, next_commands, play_sample, playing_spec
from busenv.experiments.training.training_run import (
    CURVE,
    PICTURE,
    AnyRun,
    describe_training,
    rate,
    run_training,
)
from busenv.io import write_whole
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.run import MODEL

COLUMNS = ["line-up", "agent", "wins", "95% interval", "place", "points"]
MatchUp = tuple[str, list[Score]]


MOST_THREADS = 4
SETTINGS = ExpertConfig(
    width=128,
    players=(4,),
    games=16,
    teacher_games=100_000,
    teacher_share=0.85,
    teacher_sample_share=1.0,
    teacher_reuse=1.0,
    learning_rate=1e-3,
    rated=("random", "greedy", "planner"),
    temperature=0.25,
)


def run_demo(folder: Path, seconds: float = 180.0, games: int = 400, seed: int = 0) -> None:
    """Train by SETTINGS for a time, on up to MOST_THREADS cores, and report on it."""
    threads = min(os.cpu_count() or 1, MOST_THREADS)
    changes = {"threads": threads, "teacher": f"uct@{threads}:50", "seconds": seconds, "seed": seed}
    train_and_report(SETTINGS.changed(changes), folder, games)


def train_and_report(config: AnyConfig, folder: Path, games: int, ray: str = "") -> None:
    """Train in a folder, rate, play a game to watch; print the results and leave a report there.

    ray: the cluster to play on, as for `run_training`.
    """
    console = Console()
    run, _ = run_training(config, folder, console, ray)
    console.print("Rating ...")
    match_ups = _match_ups(run, games)
    sheet = _sheet(match_ups, run, games)
    sheet.show(console)
    console.print("A line-up's second row: each of the other seats, on average.")
    play_sample(run)
    commands = next_commands(run)
    write_whole(folder / "report.md", _report(sheet, run, commands), follow_links=False)
    for what, path in (
        ("Report", folder / "report.md"),
        ("Learning curve", folder / PICTURE),
        ("A game of the agent, to watch", folder / PAGE),
    ):
        console.print(f"{what}: {escape(str(path))}", soft_wrap=True)
    console.print("To go on:")
    for command in commands:
        console.print(f"  {escape(command)}", soft_wrap=True, highlight=False)


def _match_ups(run: AnyRun, games: int) -> list[MatchUp]:
    """The agent against copies of each bot, and for comparison one bot against another."""
    bots, others = run.config.rated, run.config.rating_players - 1
    agents: list[Agent] = [run.agent]
    if isinstance(run.config, ExpertConfig):
        agents.insert(0, make_agent(playing_spec(run)))
        agents[0].name = f"az:{run.config.num_simulations}"
    match_ups = [
        (f"{agent.name}, {others} {bot}", rate(run, agent, bot, games))
        for agent in agents
        for bot in bots
    ]
    if "greedy" in bots and "random" in bots:
        scores = rate(run, make_agent("greedy"), "random", games)
        match_ups.append((f"greedy, {others} random", scores))
    return match_ups


def _caption(run: AnyRun, games: int) -> str:
    players = run.config.rating_players
    return (
        f"{games} games each of {players} players, seats and starting player rotated; "
        f"par is {1 / players:.0%} of wins"
    )


def _sheet(match_ups: list[MatchUp], run: AnyRun, games: int) -> TextTable:
    """The results as a table; a line-up's second row is each of the other seats, on average."""
    rows = [
        [title if row == 0 else "", *_cells(score)]
        for title, scores in match_ups
        for row, score in enumerate(scores)
    ]
    return TextTable(_caption(run, games), COLUMNS, rows, names=2)


def _cells(score: Score) -> list[str]:
    low, high = score.interval()
    return [
        score.name,
        f"{score.wins / score.games:.1%}",
        f"{low:.1%} to {high:.1%}" if score.seats == 1 else "",
        f"{score.place + 1:.2f}",
        f"{score.points:.2f}",
    ]


def _report(sheet: TextTable, run: AnyRun, commands: list[str]) -> str:
    config = run.config
    length = f" for {config.seconds:g} s" if config.seconds else ""
    lines = [
        "# An agent, trained and rated",
        "",
        f"busenv {busenv.__version__}, board {run.board.name}, rules {run.rules.name}. Trained"
        f"{length} by {describe_training(config)}; {run.decisions:,} decisions learned from, "
        f"{run.imitated:,} of them by imitation; seed {config.seed}.",
        "",
        f"{sheet.title}. A line-up's second row is each of the other seats on average; "
        "place and points are means, and place 1 is the winner's.",
        "",
        sheet.markdown().rstrip(),
    ]
    lines += ["", f"![learning curve]({PICTURE})", ""]
    lines += [f"[{PAGE}]({PAGE}) shows a game of the agent, with its estimates. `{CURVE}` has the"]
    lines += [f"curve in numbers, `{MODEL}` and its card the agent, `run.json` all settings;"]
    lines += ["TensorBoard shows the folder `tensorboard`.", ""]
    lines += ["To go on:", "", "```sh", *commands, "```", ""]
    return "\n".join(lines)
