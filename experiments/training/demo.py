"""Train an agent, rate it against the bots, and write a report.

The demo imitates a search and continues by expert iteration (`busenv.train.expert_iteration`), the
method that gives the stronger agent in three minutes.
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
MAX_THREADS = 4
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
    """Train with SETTINGS on up to MAX_THREADS cores, then report.

    seconds: of training. games: of each rating.
    """
    threads = min(os.cpu_count() or 1, MAX_THREADS)
    changes = {"threads": threads, "teacher": f"uct@{threads}:50", "seconds": seconds, "seed": seed}
    train_and_report(SETTINGS.changed(changes), folder, games)


def train_and_report(config: AnyConfig, folder: Path, games: int, ray: str = "") -> None:
    """Train in a folder, rate the agent, write a report and a replay, and print the results.

    games: of each rating. ray: the cluster to play on, as for `run_training`.
    """
    console = Console()
    run, _ = run_training(config, folder, console, ray)
    console.print("Rating ...")
    match_ups = _match_ups(run, games)
    table = _table(match_ups, run, games)
    table.show(console)
    console.print("A line-up's second row is the mean of the other seats.")
    play_sample(run)
    commands = next_commands(run)
    write_whole(folder / "report.md", _report(table, run, commands), follow_links=False)
    for title, name in (("Report", "report.md"), ("Learning curve", PICTURE), ("Replay", PAGE)):
        console.print(f"{title}: {escape(str(folder / name))}", soft_wrap=True)
    console.print("Next steps:")
    for command in commands:
        console.print(f"  {escape(command)}", soft_wrap=True, highlight=False)


def _match_ups(run: AnyRun, games: int) -> list[MatchUp]:
    """Rate the agent against copies of each bot, and `greedy` against `random` for comparison."""
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


def _table(match_ups: list[MatchUp], run: AnyRun, games: int) -> TextTable:
    """The results as a table; a line-up's second row is the mean of the other seats."""
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


def _report(table: TextTable, run: AnyRun, commands: list[str]) -> str:
    config = run.config
    length = f" for {config.seconds:g} s" if config.seconds else ""
    lines = [
        "# An agent, trained and rated",
        "",
        f"busenv {busenv.__version__}, board {run.board.name}, rules {run.rules.name}. Trained"
        f"{length} by {describe_training(config)}; {run.decisions:,} decisions learned from, "
        f"{run.imitated:,} of them by imitation; seed {config.seed}.",
        "",
        f"{table.title}. A line-up's second row is the mean of the other seats. Place and points "
        "are means; place 1 is the winner's.",
        "",
        table.markdown().rstrip(),
    ]
    lines += ["", f"![learning curve]({PICTURE})", ""]
    lines += [
        f"[{PAGE}]({PAGE}) replays a game of the agent with its estimates. `{CURVE}` holds the"
    ]
    lines += [f"curve, `{MODEL}` and its card the agent, `run.json` the settings, and the folder"]
    lines += ["`tensorboard` the statistics.", ""]
    lines += ["Next steps:", "", "```sh", *commands, "```", ""]
    return "\n".join(lines)
