"""Logs of JSON lines: a process killed at any moment loses at most what it was just writing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TypeVar

MAX_LINE = 2**20  # bytes

Value = TypeVar("Value")


def append_lines(path: Path, values: Iterable[object]) -> None:
    """Append JSON values to a log, one a line, and wait until they are on disk.

    Creates a missing file, and cuts off a half-written last line.
    OSError, which names the file, when they cannot be written; the log then holds none of them.
    """
    data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    try:
        with open(path, "a+b", buffering=0) as file:
            end = _end_of_lines(file)
            file.truncate(end)
            try:
                while data:
                    data = data[file.write(data) :]
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def read_lines(path: Path, parse: Callable[[bytes], Value] = json.loads) -> Iterator[Value]:
    """Yield the values of a log; a half-written last line is left out.

    parse: makes a value from a line; may raise ValueError.
    Raises ValueError, with file and line number, for a line that is damaged or longer than
    MAX_LINE, and OSError for a file that cannot be read.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            if len(line) > MAX_LINE:
                raise ValueError(f"{path}, line {number}, is longer than {MAX_LINE:,} bytes")
            if not line.endswith(b"\n"):
                return
            try:
                value = parse(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}, line {number}, is damaged: {error}") from error
            yield value


def _end_of_lines(file: FileIO) -> int:
    """Return the size of an open log up to the end of its last whole line."""
    start = file.seek(max(file.seek(0, os.SEEK_END) - MAX_LINE, 0))
    return start + file.read(MAX_LINE).rfind(b"\n") + 1
