"""Bounded reads and atomic writes of files."""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

LARGEST = 16 * 2**20  # bytes of a record, a board, rules or settings; a long game takes 4 kB


def read_bounded(
    path: str | Path, error: type[ValueError] = ValueError, limit: int = LARGEST
) -> bytes:
    """Read a regular file of at most `limit` bytes.

    Raises `error` for a larger file, a device or a pipe, TypeError for what is not a path, and
    OSError.
    """
    if not isinstance(path, (str, os.PathLike)):  # open() takes a number as a file that is open
        raise TypeError(f"path is {path!r}; allowed: a string or a Path")
    status = os.stat(path)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise error(f"{path} is not a regular file")
    with open(path, "rb") as file:
        # Python allocates what it is asked for, and the file may grow.
        data = file.read(min(limit, status.st_size) + 1)
    check_length(data, str(path), error, limit)
    return data


def read_json(path: str | Path, error: type[ValueError] = ValueError) -> Any:
    """Read the value of a JSON file: UTF-8, UTF-16 or UTF-32, with or without a byte-order mark.

    Raises as `read_bounded` does, and `error`, which names the file, for another text.
    """
    content = read_bounded(path, error)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as wrong:
        raise error(f"{path} is not JSON text: {wrong}") from wrong


def check_length(
    data: str | bytes, name: str, error: type[ValueError] = ValueError, limit: int = LARGEST
) -> None:
    """Raise `error` for data of more than `limit` bytes; `name` is used in the message."""
    if len(data) > limit:
        raise error(f"{name} is larger than {limit:,} bytes, the most that is read")


def is_int(value: object, low: int, high: int) -> bool:
    """Return whether a value of a file is a whole number from low to high; bools are not."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def write_whole(path: str | Path, content: str | bytes, mode: int | None = None) -> None:
    """Write a file atomically: a process killed meanwhile leaves the old or the new content.

    Writes to the target of a symbolic link. mode: permissions of the file, by default those of the
    file that it replaces or, for a new one, the process's.
    """
    path = Path(os.path.realpath(path))
    data = content.encode("utf-8") if isinstance(content, str) else content
    opener = None if mode is None else partial(os.open, mode=mode)
    name = path.with_name(f".{secrets.token_hex(8)}.tmp")  # file names have a maximum length
    try:
        with open(name, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is None and path.exists():
            os.chmod(name, stat.S_IMODE(path.stat().st_mode))
        os.replace(name, path)
    except BaseException as error:
        with suppress(OSError):
            name.unlink()
        if isinstance(error, OSError):  # names the file, not the temporary one
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
