"""Replies of language models as JSON lines, one file for each game of a rating."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from busenv.agents.external.chat import Reply

MAX_FILE = 2**30  # bytes
KINDS = {
    **dict.fromkeys(("seat", "ply", "attempt", "input_tokens", "output_tokens"), int),
    **dict.fromkeys(("request", "text", "error"), str),
}


class ReplyLog:
    """The replies to one seat of a game.

    file: created by the first `append`, its folder at once; the other seats of the game may share
    it in this process.
    Raises ValueError for a damaged file; a half-written last line is dropped.
    """

    def __init__(self, file: Path, seat: int) -> None:
        self._file, self._seat = file, seat
        file.parent.mkdir(exist_ok=True)
        self._replies = {
            (row["ply"], row["attempt"], row["request"]): Reply(
                row["text"], row["error"], row["input_tokens"], row["output_tokens"]
            )
            for row in read_replies(file)
            if row["seat"] == seat
        }

    def find(self, ply: int, attempt: int, request: str) -> Reply | None:
        """Return the reply to a request (its hash) at a ply, None if it was never sent."""
        return self._replies.get((ply, attempt, request))

    def append(self, ply: int, attempt: int, request: str, reply: Reply) -> None:
        """Write a reply to the disk."""
        self._replies[ply, attempt, request] = reply
        where = {"seat": self._seat, "ply": ply, "attempt": attempt, "request": request}
        with open(self._file, "ab") as file:
            file.write(json.dumps({**where, **reply._asdict()}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def read_replies(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a log, and cut off a half-written last line.

    Raises ValueError for a damaged or too large file.
    """
    if not os.path.lexists(path):
        return []
    rows: list[dict[str, Any]] = []
    with open(path, "r+b") as file:
        data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ValueError(f"{path} is larger than {MAX_FILE:,} bytes, the most that is read")
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            file.truncate(whole)
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            row = json.loads(line)
            if {name: type(value) for name, value in row.items()} != KINDS:
                raise ValueError("other keys or types than expected")
        except (ValueError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}, is damaged: {error}") from None
        rows.append(row)
    return rows
