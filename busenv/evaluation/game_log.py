"""The games file of a rating (games.jsonl): one JSON line per game."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from busenv import Record
from busenv.common.jsonl import read_lines
from busenv.common.runs import RunError
from busenv.evaluation.schedule import Schedule
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


def read_games(path: Path, schedule: Schedule | None = None) -> list[dict[str, Any]]:
    """Return the games of a games file; a half-written last line is left out.

    The types of all values are checked, and with a schedule its line-ups; the games themselves are
    not replayed. RunError, with the line number, for a damaged line and for a game that occurs
    twice or is not scheduled.
    """
    numbers: set[int] = set()

    def parse_game(line: bytes) -> dict[str, Any]:
        game = parse(RatedGame, line).model_dump()
        record = Record.from_dict(game["record"])
        seats = [*range(record.players)]
        if {len(game[name]) for name in BY_SEAT} != {len(seats)} or sorted(
            game["ranking"]
        ) != seats:
            raise ValueError(f"its lists do not fit {len(seats)} seats")
        if game["number"] in numbers:
            raise ValueError(f"game {game['number']} occurs twice")
        numbers.add(game["number"])
        if schedule is not None:
            _check_scheduled(game, schedule)
        return game

    try:
        return [*read_lines(path, parse_game)]
    except ValueError as error:
        raise RunError(str(error)) from error


def _check_scheduled(game: dict[str, Any], schedule: Schedule) -> None:
    number = game["number"]
    if number >= schedule.total:
        raise ValueError(f"number is {number}; allowed: 0 to {schedule.total - 1}")
    entrants, first = schedule.seating(number)
    scheduled = [schedule.labels[entrant] for entrant in entrants], first
    if (game["agents"], game["record"]["first_player"]) != scheduled:
        raise ValueError(f"game {number} is not that of the schedule")


def ranking(standing: list[int], forfeiter: int | None) -> list[int]:
    """Return the rank by seat, 0 for the winner; a seat that forfeits is last."""
    order = sorted(range(len(standing)), key=lambda seat: (seat == forfeiter, standing[seat]))
    return [order.index(seat) for seat in range(len(standing))]
