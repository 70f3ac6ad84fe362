"""The ladder: ratings of the reference agents in games of 3, 4 and 5 players.

Each match has its own run folder, so that a stopped ladder resumes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pandas as pd
from rich.console import Console

from busenv.cluster import connected
from busenv.common.console import TextTable, print_path
from busenv.common.runs import lock_folder
from busenv.evaluation.rating import check_agent, run_rating
from busenv.evaluation.rating_report import interval, percent, rating_interval
from busenv.evaluation.schedule import Schedule
from busenv.io import write_whole

PLAYERS = (3, 4, 5)

# Weakest first. Each of them also plays against copies of the one before it.
AGENTS = (
    "random",
    "greedy",
    "planner",
    "net:city-3",
    "net:city-4",
    "uct:300",
    "uct:1500",
    "az:city-4:300",
)
MATCH_UPS = [(agent, weaker) for weaker, agent in pairwise(AGENTS)]

TABLE = "ladder.md"


def run_ladder(
    folder: Path,
    games: int,
    seed: int,
    workers: int,
    console: Console,
    ray: str = "",
) -> None:
    """Play the matches and ratings of the ladder, and print and write the table.

    games: per match and per round robin, rounded up to balanced blocks. ray: see `run_rating`.
    """
    for spec in AGENTS:
        check_agent(spec)

    def rate(schedule: Schedule, name: str) -> pd.DataFrame:
        console.rule(f"{name}, {schedule.players} players")
        match_folder = folder / f"{schedule.players}-players" / re.sub(r"[^\w.-]+", "-", name)
        return run_rating(schedule, match_folder, workers, console, ray).results

    with connected(ray, workers), lock_folder(folder):
        matches = {
            (agent, other, players): rate(
                Schedule((agent,), players, games, seed, against=other),
                f"{agent} against {other}",
            )
            for players in PLAYERS
            for agent, other in MATCH_UPS
        }
        schedules = {n: Schedule(AGENTS, n, games, seed) for n in PLAYERS}
        ratings = {n: rate(schedules[n], "round robin") for n in PLAYERS}
    tables = [
        _match_table(matches),
        _rating_table(ratings, "Plackett-Luce ratings of the round robin, random = 0", _rating),
        _rating_table(ratings, "Deviation ratings of the round robin", _deviation),
    ]
    numbers = ", ".join(f"{schedules[n].total:,} with {n} players" for n in PLAYERS)
    text = (
        f"{games:,} games or a few more for each match; round robin: {numbers}. Seed {seed}; 95% "
        "intervals in brackets.\n"
    )
    for table in tables:
        table.show(console)
        text += f"\n{table.title}:\n\n{table.markdown()}"
    write_whole(folder / TABLE, text)
    print_path(console, "Table", folder / TABLE)


def _match_table(matches: dict[tuple[str, str, int], pd.DataFrame]) -> TextTable:
    def cell(agent: str, other: str, players: int) -> str:
        row = matches[agent, other, players].loc[agent]
        return f"{percent(row['won'])}\n{interval(row)}"

    header = ["agent", "against", *(f"{n} players\n(par {1 / n:.0%})" for n in PLAYERS)]
    rows = [[agent, other, *(cell(agent, other, n) for n in PLAYERS)] for agent, other in MATCH_UPS]
    title = "Games won by one agent, all other seats taken by copies of another"
    return TextTable(title, header, rows, names=2)


def _rating_table(
    ratings: dict[int, pd.DataFrame], title: str, cell: Callable[[pd.Series], str]
) -> TextTable:
    """Make a table of the agents by number of players. cell: formats an agent's results."""
    rows = [[agent, *(cell(ratings[n].loc[agent]) for n in PLAYERS)] for agent in AGENTS]
    return TextTable(title, ["agent", *(f"{n} players" for n in PLAYERS)], rows)


def _rating(row: pd.Series) -> str:
    return f"{row['rating']:.1f}\n{rating_interval(row)}"


def _deviation(row: pd.Series) -> str:
    return f"{percent(row['deviation'])}\n{interval(row, 'deviation_')}"
