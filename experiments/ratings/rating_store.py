"""The games file of a rating: one JSON line per game, readable after a kill at any moment."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from busenv.experiments.common.runs import RunError
from busenv.experiments.ratings.game_log import (
    MAX_LINE_BYTES,
    check_game,
    check_scheduled,
    parse_line,
)
from busenv.experiments.ratings.schedule import Schedule
from busenv.io import open_plain

GAMES = "games.jsonl"  # in a run folder


def parse_games(
    data: bytes | IO[bytes],
    name: str | Path = GAMES,
    check: Callable[[dict[str, Any]], None] = lambda game: None,
) -> tuple[list[dict[str, Any]], int]:
    """Parse a games file, open or as bytes; return its games and the length of its whole lines.

    name: of the file, for error messages. check: raises ValueError for a game that passes
    `game_log.parse_line` but is not accepted.
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
    with open_plain(path, "r+b") as file:
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
