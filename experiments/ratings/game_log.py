"""Validation of the games in a games file (games.jsonl), which may be untrusted.

Three checks raise ValueError: `parse_line` for the format, `check_game` for the rules, and
`check_scheduled` for the schedule of the rating.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from busenv import Board, Game, Record
from busenv.agents.schema import Schema, parse
from busenv.error_text import quote
from busenv.experiments.ratings.schedule import Schedule

MAX_LINE_BYTES = 2**20  # a long game takes less than 4 kB

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, lt=1e9)]


class Forfeit(Schema):
    """The seat of an agent that failed, the number of actions before, and the reason."""

    seat: Count
    ply: Count
    why: str


class RatedGame(Schema):
    """A line of the games file; see `tournament.play_game`."""

    number: Count
    agents: list[str]
    record: dict[str, Any]
    points: list[int]
    ranking: list[Count]
    forfeit: Forfeit | None
    decisions: list[Count]
    timed: list[Count]
    seconds: list[Seconds]

    @model_validator(mode="after")
    def _check(self) -> RatedGame:
        players = Record.from_dict(self.record).players
        for key in ("agents", "points", "ranking", "decisions", "timed", "seconds"):
            if len(getattr(self, key)) != players:
                raise ValueError(f"{key} has {len(getattr(self, key))} seats of {players}")
        if sorted(self.ranking) != [*range(players)]:
            raise ValueError(
                f"ranking is {quote(self.ranking)}; allowed: each rank 0 to {players - 1}"
            )
        if self.forfeit is not None and self.forfeit.seat >= players:
            raise ValueError(f"forfeit's seat is {quote(self.forfeit.seat)} of {players}")
        times = zip(self.decisions, self.timed, self.seconds, strict=True)
        for seat, (decided, timed, seconds) in enumerate(times):
            if timed > decided or (seconds and not timed):
                raise ValueError(
                    f"seat {seat} has {quote(decided)} decisions, {quote(timed)} of them timed, "
                    f"{quote(seconds)} seconds"
                )
        return self


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line into a game whose values have the right types."""
    return parse(RatedGame, line).model_dump()


def check_game(game: dict[str, Any], board: Board) -> None:
    """Replay the record by the rules, and compare the other values of the game with it."""
    record, forfeit = Record.from_dict(game["record"]), game["forfeit"]
    live, decided = Game.begin_record(record, board), [0] * record.players
    for live, _ in Game.replay(record, board):
        decided[live.current_player] += 1
    if live.is_over != (forfeit is None):
        raise ValueError("a game must end either by the rules or by a forfeit")
    loser = None
    if forfeit is not None:
        loser, plies = forfeit["seat"], len(record.actions)
        # Before the first decision any agent may fail, when it is started.
        if forfeit["ply"] != plies or (plies and loser != live.current_player):
            raise ValueError(
                f"seat {loser} forfeits at ply {quote(forfeit['ply'])}, but the record ends at ply "
                f"{plies} with a decision of seat {live.current_player}"
            )
        decided[loser] += game["decisions"][loser] == decided[loser] + 1  # counts an illegal one
    for key, expected in (
        ("points", live.points),
        ("ranking", ranking(live.ranking(), loser)),
        ("decisions", decided),
    ):
        if game[key] != expected:
            raise ValueError(f"{key} by seat are {quote(game[key])}; the record gives {expected}")


def check_scheduled(game: dict[str, Any], schedule: Schedule) -> None:
    """Compare number, seating, first player, seed, rules and board with the schedule."""
    number, record = game["number"], game["record"]
    if number >= schedule.total:
        raise ValueError(f"number is {quote(number)}; allowed: 0 to {schedule.total - 1}")
    entrants, first = schedule.seating(number)
    board = schedule.loaded_board
    for name, value, scheduled in (
        ("agents", game["agents"], [schedule.labels[entrant] for entrant in entrants]),
        ("first_player", record["first_player"], first),
        ("seed", record["seed"], number),
        ("rules", record["rules"], schedule.loaded_rules.to_dict()),
        ("board", record["board"], {"name": board.name, "fingerprint": board.fingerprint}),
        ("position", record.get("position"), None),
    ):
        if value != scheduled:
            raise ValueError(f"game {number} has {name} {quote(value)}; scheduled: {scheduled}")


def ranking(standing: list[int], forfeiter: int | None) -> list[int]:
    """Return the rank by seat, 0 for the winner; a seat that forfeits is last."""
    order = sorted(range(len(standing)), key=lambda seat: (seat == forfeiter, standing[seat]))
    return [order.index(seat) for seat in range(len(standing))]
