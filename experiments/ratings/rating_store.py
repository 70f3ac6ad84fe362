"""The folder of a run: its settings, and its games, one line each, kept through every kill."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from busenv.error_text import quote, truncate
from busenv.experiments.ratings.game_log import (
    LONGEST_LINE,
    check_game,
    check_planned,
    parse_line,
)
from busenv.experiments.ratings.schedule import RunError, Schedule
from busenv.io import check_plain, open_plain, read_bounded, write_whole

SETTINGS, GAMES, LOCK = "run.json", "games.jsonl", "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, made if need be, for this process; RunError when another holds it.

    OSError when a link is in it: in a folder from others it may lead anywhere. The system gives the
    lock back when the process ends, however it ends.
    """
    from filelock import FileLock, Timeout  # games are read without it

    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*")):  # now, not when hours of games are to be written down
        check_plain(path)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise RunError(
            f"{folder} is in use by another run; wait for it or choose another"
        ) from None
    try:
        yield
    finally:
        lock.release()


def keep_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings of a new run; RunError when the folder has a run with other settings."""
    path = folder / SETTINGS
    if not os.path.lexists(path):
        if (folder / GAMES).exists():
            raise RunError(f"{folder} has games but no {SETTINGS}; choose another folder")
        write_whole(path, json.dumps(settings, indent=1) + "\n", follow_links=False)
        return
    try:
        found = json.loads(read_bounded(path, follow_links=False))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{path} is damaged: it holds no object, but {quote(found)}")
    if differences := _differences(found, settings):
        raise RunError(
            f"{folder} holds a run with {truncate(', '.join(differences), 1000)}; "
            "give the same settings to go on, or another folder"
        )


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """In words, what differs; in a setting with parts (such as rules), which of them.

    Where a file of rules or a board is counts for nothing, but what is in it.
    """
    words = []
    for key in sorted((found.keys() | wanted.keys()) - {"from"}):
        one, other = found.get(key), wanted.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            words += [f"{key}: {part}" for part in _differences(one, other)]
        elif one != other or (key in found) != (key in wanted):
            words.append(f"{truncate(key)} {quote(one)}, not {quote(other)}")
    return words


def parse_games(
    data: bytes | IO[bytes],
    name: str | Path = GAMES,
    check: Callable[[dict[str, Any]], None] = lambda game: None,
) -> tuple[list[dict[str, Any]], int]:
    """The games of a games file, open or its content, and the length of its whole lines.

    name: of the file, for errors. check: what else must hold of a game, besides
    `ratings.lines.parse_line`; raises ValueError.
    A last line that was not written to its end is left out. RunError, naming the line, when any
    other is damaged, too long or not true, or a game is there twice.
    """
    games: list[dict[str, Any]] = []
    numbers: set[int] = set()
    whole = 0
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    for row, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
        if len(line) > LONGEST_LINE:
            raise RunError(f"{name}, line {row}, is longer than {LONGEST_LINE:,} bytes")
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
            raise RunError(f"{name}, line {row}: game {game['number']} is there twice")
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


def recover_games(folder: Path, plan: Schedule) -> tuple[list[dict[str, Any]], int]:
    """The games of a run so far, and how many bytes of a half-written last line were cut off.

    RunError, naming the line, when a game is not of the plan or not true by the rules.
    """

    def check(game: dict[str, Any]) -> None:
        check_planned(game, plan)
        check_game(game, plan.loaded_board)

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
    """Add lines to an open games file; on disk when this returns."""
    file.write(b"".join(json.dumps(game).encode() + b"\n" for game in games))
    file.flush()
    os.fsync(file.fileno())
