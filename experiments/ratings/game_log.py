"""The lines of a games file, believed only as far as they are true.

A line is read in three steps, each of which raises ValueError: what it must consist of
(`parse_line`), what the rules make of the game (`check_game`), and what the schedule of the rating says
of it (`check_scheduled`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from busenv import Board, Game, Record
from busenv.error_text import quote
from busenv.experiments.ratings.schedule import Schedule

MAX_LINE_BYTES = 2**20  # bytes; a long game takes less than 4 kB
LONGEST_TIME = 1e9  # seconds; not a number and infinity are none either
KEYS = frozenset(
    "number agents record points ranking forfeit decisions timed seconds".split()
)  # as `tournament.play_game` tells them
FORFEIT = frozenset(("seat", "ply", "why"))


def parse_line(line: bytes) -> dict[str, Any]:
    """A line's game, in which everything is of the right kind."""
    game = json.loads(line)
    _check_keys("a game", game, KEYS)
    agents, forfeit = game["agents"], game["forfeit"]
    _check("number", game["number"], _is_count, "a whole number, 0 or more")
    _check("agents", agents, _is_list_of(lambda name: isinstance(name, str)), "a list of names")
    players = Record.from_dict(game["record"]).players
    if len(agents) != players:
        raise ValueError(f"{len(agents)} agents, but {players} players")
    seats = range(players)
    for key, fits, kind in (
        ("points", _is_whole, "whole numbers"),
        ("ranking", _is_count, "places"),
        ("decisions", _is_count, "whole numbers, 0 or more"),
        ("timed", _is_count, "whole numbers, 0 or more"),
        ("seconds", _is_time, "numbers, 0 or more"),
    ):
        _check(key, game[key], _is_list_of(fits, players), f"a list of {players} {kind}")
    if sorted(game["ranking"]) != [*seats]:
        raise ValueError(
            f"ranking is {quote(game['ranking'])}; allowed: each place 0 to {players - 1}"
        )
    for seat in seats:
        decided, timed, seconds = (game[k][seat] for k in ("decisions", "timed", "seconds"))
        if timed > decided or (seconds and not timed):
            raise ValueError(
                f"seat {seat} has {quote(decided)} decisions, {quote(timed)} of them timed, "
                f"{quote(seconds)} seconds"
            )
    if forfeit is not None:
        _check_keys("forfeit", forfeit, FORFEIT)
        _check("forfeit's seat", forfeit["seat"], lambda seat: _is_count(seat) and seat in seats)
        _check("forfeit's ply", forfeit["ply"], _is_count)
        _check("forfeit's why", forfeit["why"], lambda why: isinstance(why, str), "a text")
    return game


def check_game(game: dict[str, Any], board: Board) -> None:
    """Play the record of a line through the rules; what else the line says must follow from it."""
    record, forfeit = Record.from_dict(game["record"]), game["forfeit"]
    live, decided = Game.begin_record(record, board), [0] * record.players
    for live, _ in Game.replay(record, board):
        decided[live.current_player] += 1
    if live.is_over != (forfeit is None):
        raise ValueError("the game is over or somebody forfeits it; both, or neither, cannot be")
    loser = None
    if forfeit is not None:
        loser, plies = forfeit["seat"], len(record.actions)
        # Before the first decision an agent may fail that has not been asked to decide.
        if forfeit["ply"] != plies or (plies and loser != live.current_player):
            raise ValueError(
                f"seat {loser} forfeits at ply {quote(forfeit['ply'])}, but the record ends at ply "
                f"{plies}, where seat {live.current_player} decides"
            )
        decided[loser] += game["decisions"][loser] == decided[loser] + 1  # an illegal one counts
    for key, true in (
        ("points", live.points),
        ("ranking", ranking(live.ranking(), loser)),
        ("decisions", decided),
    ):
        if game[key] != true:
            raise ValueError(f"{key} by seat are {quote(game[key])}, but by the record {true}")


def check_scheduled(game: dict[str, Any], schedule: Schedule) -> None:
    """The line must be of a game of the schedule: its number, who sits where, who starts, by what."""
    number, record = game["number"], game["record"]
    if number >= schedule.total:
        raise ValueError(f"number is {quote(number)}; allowed: 0 to {schedule.total - 1}")
    entrants, first = schedule.seating(number)
    board = schedule.loaded_board
    for what, found, planned in (
        ("agents", game["agents"], [schedule.labels[entrant] for entrant in entrants]),
        ("first_player", record["first_player"], first),
        ("seed", record["seed"], number),
        ("rules", record["rules"], schedule.loaded_rules.to_dict()),
        ("board", record["board"], {"name": board.name, "fingerprint": board.fingerprint}),
        ("position", record.get("position"), None),
    ):
        if found != planned:
            raise ValueError(f"game {number} has {what} {quote(found)}, by the schedule {planned}")


def ranking(standing: list[int], forfeiter: int | None) -> list[int]:
    """Place by seat, 0 first: the standing, but a seat that forfeits goes last."""
    order = sorted(range(len(standing)), key=lambda seat: (seat == forfeiter, standing[seat]))
    return [order.index(seat) for seat in range(len(standing))]


def _check_keys(what: str, value: object, keys: frozenset[str]) -> None:
    if not isinstance(value, dict) or set(value) != keys:
        raise ValueError(f"{what} has {', '.join(sorted(keys))}; this is {quote(value)}")


def _check(
    what: str, value: object, fits: Callable[[Any], bool], allowed: str = "one of the game"
) -> None:
    if not fits(value):
        raise ValueError(f"{what} is {quote(value)}; allowed: {allowed}")


def _is_list_of(fits: Callable[[Any], bool], length: int | None = None) -> Callable[[Any], bool]:
    def check(value: object) -> bool:
        return isinstance(value, list) and length in (None, len(value)) and all(map(fits, value))

    return check


def _is_whole(value: object) -> bool:
    return type(value) is int


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < LONGEST_TIME
