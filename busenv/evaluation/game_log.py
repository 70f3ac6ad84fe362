"""The games file of a rating (games.jsonl): one JSON line per game.

It is readable after a kill at any moment. Its content may be untrusted; three checks raise
ValueError: `parse_line` for the format, `check_game` for the rules, and `check_scheduled` for the
schedule of the rating.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from busenv import Board, Game, Record
from busenv.common.runs import RunError
from busenv.error_text import quote
from busenv.evaluation.schedule import Schedule

GAMES = "games.jsonl"  # in a run folder
MAX_LINE_BYTES = 2**20  # a long game takes less than 4 kB
MAX_SECONDS = 1e9
# Of `tournament.play_game`
KEYS = frozenset("number agents record points ranking forfeit decisions timed seconds".split())
FORFEIT = frozenset(("seat", "ply", "why"))


def parse_games(
    data: bytes | IO[bytes],
    name: str | Path = GAMES,
    check: Callable[[dict[str, Any]], None] = lambda game: None,
) -> tuple[list[dict[str, Any]], int]:
    """Parse a games file, open or as bytes; return its games and the length of its whole lines.

    name: of the file, for error messages. check: raises ValueError for a game that passes
    `parse_line` but is not accepted.
    A half-written last line is left out. RunError, with the line number, for any other invalid or
    too long line, and for a game that occurs twice.
    """
    games: list[dict[str, Any]] = []
    numbers: set[int] = set()
    whole = 0
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    for row, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
        if len(line) > MAX_LINE_BYTES:
            raise RunError(f"{name}, line {row}, is longer than {MAX_LINE_BYTES:,} bytes")
        if not line.endswith(b"\n"):
            break
        try:
            game = parse_line(line)
            check(game)
        except (ValueError, RecursionError) as error:
            if not file.read(1) and not _is_json(line):
                break
            raise RunError(f"{name}, line {row}, is damaged: {error}") from error
        if game["number"] in numbers:
            raise RunError(f"{name}, line {row}: game {game['number']} occurs twice")
        numbers.add(game["number"])
        games.append(game)
        whole += len(line)
    return games, whole


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def recover_games(folder: Path, schedule: Schedule) -> tuple[list[dict[str, Any]], int]:
    """Read the games of a run, and cut off a half-written last line.

    Returns the games, and the number of bytes cut off.

    RunError, with the line number, for a game that contradicts the schedule or the rules.
    """

    def check(game: dict[str, Any]) -> None:
        check_scheduled(game, schedule)
        check_game(game, schedule.board_of(game["number"]))

    path = folder / GAMES
    if not os.path.lexists(path):
        return [], 0
    with open(path, "r+b") as file:
        games, whole = parse_games(file, path, check)
        cut_off = os.fstat(file.fileno()).st_size - whole
        if cut_off:
            file.truncate(whole)
    return games, cut_off


def append_games(file: IO[bytes], games: list[dict[str, Any]]) -> None:
    """Append lines to an open games file, and wait until they are on disk."""
    file.write(b"".join(json.dumps(game).encode() + b"\n" for game in games))
    file.flush()
    os.fsync(file.fileno())


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
