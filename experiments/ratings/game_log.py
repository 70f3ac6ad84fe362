"""Validation of the games in a games file (games.jsonl), which may be untrusted.

Three checks raise ValueError: `parse_line` for the format, `check_game` for the rules, and
`check_scheduled` for the schedule of the rating.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from busenv import Board, Game, Record
from busenv.error_text import quote
from busenv.experiments.ratings.schedule import Schedule

MAX_LINE_BYTES = 2**20  # a long game takes less than 4 kB
MAX_SECONDS = 1e9
# Of `tournament.play_game`
KEYS = frozenset("number agents record points ranking forfeit decisions timed seconds".split())
FORFEIT = frozenset(("seat", "ply", "why"))


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line into a game whose values have the right types."""
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
        ("ranking", _is_count, "ranks"),
        ("decisions", _is_count, "whole numbers, 0 or more"),
        ("timed", _is_count, "whole numbers, 0 or more"),
        ("seconds", _is_time, "numbers, 0 or more"),
    ):
        _check(key, game[key], _is_list_of(fits, players), f"a list of {players} {kind}")
    if sorted(game["ranking"]) != [*seats]:
        raise ValueError(
            f"ranking is {quote(game['ranking'])}; allowed: each rank 0 to {players - 1}"
        )
    for seat in seats:
        decided, timed, seconds = (game[k][seat] for k in ("decisions", "timed", "seconds"))
        if timed > decided or (seconds and not timed):
            raise ValueError(
                f"seat {seat} has {quote(decided)} decisions, {quote(timed)} of them timed, "
                f"{quote(seconds)} seconds; allowed: at most all decisions timed, and seconds only "
                "for timed ones"
            )
    if forfeit is not None:
        _check_keys("forfeit", forfeit, FORFEIT)
        forfeiter = forfeit["seat"]
        _check("forfeit's seat", forfeiter, lambda s: _is_count(s) and s in seats, "a seat")
        _check("forfeit's ply", forfeit["ply"], _is_count, "a whole number, 0 or more")
        _check("forfeit's why", forfeit["why"], lambda why: isinstance(why, str), "a text")
    return game


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
    for name, value, scheduled in (
        ("agents", game["agents"], [schedule.labels[entrant] for entrant in entrants]),
        ("first_player", record["first_player"], first),
        ("seed", record["seed"], number),
        ("rules", record["rules"], schedule.loaded_rules.to_dict()),
        ("board", record["board"], schedule.board_of(number).identity),
        ("position", record.get("position"), None),
    ):
        if value != scheduled:
            raise ValueError(f"game {number} has {name} {quote(value)}; scheduled: {scheduled}")


def ranking(standing: list[int], forfeiter: int | None) -> list[int]:
    """Return the rank by seat, 0 for the winner; a seat that forfeits is last."""
    order = sorted(range(len(standing)), key=lambda seat: (seat == forfeiter, standing[seat]))
    return [order.index(seat) for seat in range(len(standing))]


def _check_keys(name: str, value: object, keys: frozenset[str]) -> None:
    if not isinstance(value, dict) or set(value) != keys:
        raise ValueError(f"{name} has the keys {', '.join(sorted(keys))}; got {quote(value)}")


def _check(name: str, value: object, fits: Callable[[Any], bool], allowed: str) -> None:
    if not fits(value):
        raise ValueError(f"{name} is {quote(value)}; allowed: {allowed}")


def _is_list_of(fits: Callable[[Any], bool], length: int | None = None) -> Callable[[Any], bool]:
    def check(value: object) -> bool:
        return isinstance(value, list) and length in (None, len(value)) and all(map(fits, value))

    return check


def _is_whole(value: object) -> bool:
    return type(value) is int


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < MAX_SECONDS
