"""The standing reference table: known agents, 3 to 5 players, by default the newest edition.

Every part of it is a rating in a run folder of its own, so a stopped ladder goes on where it was.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markup import escape

from busenv.cluster import connected
from busenv.error_text import printable
from busenv.experiments.common.console import TextTable
from busenv.experiments.common.runs import RunError
from busenv.experiments.ratings.rating import check_agent, run_rating
from busenv.experiments.ratings.rating_report import (
    decision_time,
    interval,
    percent,
    rating_interval,
)
from busenv.experiments.ratings.schedule import Schedule
from busenv.io import check_plain, write_whole

PLAYERS = (3, 4, 5)

# The ladder's agents, weakest first, and who plays in one seat against copies of whom.
AGENTS = ("random", "greedy", "planner", "net:city-2", "uct:300")
MATCH_UPS = (
    ("greedy", "random"),
    ("planner", "greedy"),
    ("net:city-2", "greedy"),
    ("net:city-2", "planner"),
    ("net:city-2", "uct:300"),
    ("uct:300", "greedy"),
    ("uct:300", "planner"),
    ("uct:1500", "uct:300"),
)

TABLE = "ladder.md"
BEGIN, END = "<!-- ladder -->", "<!-- end of ladder -->"


def run_ladder(
    folder: Path,
    games: int,
    seed: int,
    workers: int,
    console: Console,
    readme: Path | None = None,
    rules: str = "capstone-2024",
    board: str = "city",
    ray: str = "",
) -> None:
    """Play the ladder's ratings, write the table, and put it into the README if one is given.

    rules, board: as for `ratings.schedule.Schedule`; agents that cannot play on the board are left out.
    ray: as for `ratings.rating.run_rating`.
    Raises RunError, before anything is played, when the README has no place for the table.
    """
    if readme is not None:
        replace_block(readme.read_text(encoding="utf-8"), "")
    specs = dict.fromkeys([*AGENTS, *chain(*MATCH_UPS)])
    able = [spec for spec in specs if _plays(spec, rules, board, console)]
    agents = tuple(agent for agent in AGENTS if agent in able)
    match_ups = [pair for pair in MATCH_UPS if {*pair} <= {*able}]

    def rate(schedule: Schedule, name: str) -> pd.DataFrame:
        console.rule(f"{name}, {schedule.players} players")
        table = folder / f"{schedule.players}-players"
        place = table / re.sub(r"[^\w.-]+", "-", name)
        check_plain(table)
        check_plain(place)
        return run_rating(schedule, place, workers, console, ray).results

    with connected(ray, workers):
        matches = {
            (agent, other, players): rate(
                Schedule((agent,), players, games, seed, rules, other, board),
                f"{agent} against {other}",
            )
            for players in PLAYERS
            for agent, other in match_ups
        }
        schedules = {n: Schedule(agents, n, games, seed, rules, board=board) for n in PLAYERS}
        ratings = {
            players: rate(schedule, " and ".join(agents)) for players, schedule in schedules.items()
        }
    sheets = [_match_sheet(matches, match_ups), _rating_sheet(ratings, agents)]
    note = (
        f"{games:,} games or a few more for each number, seed {seed}, rules {rules}, board {board};"
        " 95% intervals in brackets."
    )
    parts = [note]
    for sheet in sheets:
        parts += [f"{sheet.title}:", sheet.markdown().rstrip()]
    text = "\n\n".join(parts) + "\n"
    for sheet in sheets:
        sheet.show(console)
    write_whole(folder / TABLE, text, follow_links=False)
    if readme is not None:
        write_whole(readme, replace_block(readme.read_text(encoding="utf-8"), text))
    console.print(f"Table: {escape(str(folder / TABLE))}")


def _plays(spec: str, rules: str, board: str, console: Console) -> bool:
    """Whether an agent can play on the board; tells why not. RunError where it cannot be built."""
    check_agent(spec)
    try:
        check_agent(spec, rules, board)
    except RunError as error:
        console.print(f"Left out: {printable(error)}", markup=False)
        return False
    return True


def replace_block(text: str, block: str, begin: str = BEGIN, end: str = END) -> str:
    """Text with what stands between two marks replaced; RunError without them."""
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise RunError(f"the README has no lines {begin} and {end} to put the table between")
    return f"{before}{begin}\n{block}{end}{after}"


def _match_sheet(
    matches: dict[tuple[str, str, int], pd.DataFrame], match_ups: list[tuple[str, str]]
) -> TextTable:
    def cell(agent: str, other: str, players: int) -> str:
        row = matches[agent, other, players].loc[agent]
        return f"{percent(row['won'])}\n{interval(row)}"

    header = ["agent", "against", *(f"{n} players\n(par {1 / n:.0%})" for n in PLAYERS)]
    rows = [[agent, other, *(cell(agent, other, n) for n in PLAYERS)] for agent, other in match_ups]
    title = "Games won by one agent, all other seats taken by copies of another"
    return TextTable(title, header, rows, names=2)


def _rating_sheet(ratings: dict[int, pd.DataFrame], agents: tuple[str, ...]) -> TextTable:
    def cell(agent: str, players: int) -> str:
        row = ratings[players].loc[agent]
        return f"{row['rating']:.1f}\n{rating_interval(row)}"

    header = ["agent", *(f"{n} players" for n in PLAYERS), "ms/decision\n(4 players)"]
    rows = [
        [agent, *(cell(agent, n) for n in PLAYERS), decision_time(ratings[4].loc[agent])]
        for agent in agents
    ]
    return TextTable("Plackett-Luce ratings when all play all, random = 0", header, rows)
