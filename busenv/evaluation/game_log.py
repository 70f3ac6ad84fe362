"""The games file of a rating (games.jsonl): one JSON line per game."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from busenv import Record
from busenv.common.jsonl import read_lines
from busenv.common.runs import RunError
from busenv.schema import Schema, parse

GAMES = "games.jsonl"  # in a run folder
BY_SEAT = ("agents", "points", "ranking", "decisions", "timed", "seconds")

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Forfeit(Schema):
    """The end of a game by a fault of an agent."""

    seat: Count
    ply: Count
    why: str


class RatedGame(Schema):
    """A line of the file; `tournament.play_game` explains the fields."""

    number: Count
    agents: list[str]
    record: dict[str, Any]
    points: list[int]
    ranking: list[Count]
    forfeit: Forfeit | None
    decisions: list[Count]
    timed: list[Count]
    seconds: list[Seconds]


def read_games(path: Path) -> list[dict[str, Any]]:
    """Return the games of a games file; a half-written last line is left out.

    The types of all values are checked; the games themselves are not replayed. RunError, with the
    line number, for a damaged line.
    """

    def parse_game(line: bytes) -> dict[str, Any]:
        game = parse(RatedGame, line).model_dump()
        record = Record.from_dict(game["record"])
        seats = [*range(record.players)]
        if {len(game[name]) for name in BY_SEAT} != {len(seats)} or sorted(
            game["ranking"]
        ) != seats:
            raise ValueError(f"its lists do not fit {len(seats)} seats")
        return game

    try:
        return [*read_lines(path, parse_game)]
    except ValueError as error:
        raise RunError(str(error)) from error


def ranking(standing: list[int], forfeits: list[bool]) -> list[int]:
    """Return the rank by seat, 0 for the winner; seats that forfeit are last."""
    order = sorted(range(len(standing)), key=lambda seat: (forfeits[seat], standing[seat]))
    return [order.index(seat) for seat in range(len(standing))]
