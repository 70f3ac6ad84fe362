"""The folder in which games are kept: every decision is on disk as it is made.

A game is a file of JSON lines: how it was begun, then what happened, in order. Lines are only
appended, each whole; one that was cut off by a kill is dropped when the game is read again. The
files hold the secrets of the links, so nobody but their owner may read them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from busenv.agents.schema import Schema, parse
from busenv.experiments.play.messages import Chair, Name, Number
from busenv.io import open_plain, read_bounded

KEY, ENDING = "key", ".jsonl"
Token = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{20,64}$")]


class Tokens(Schema):
    """The secrets of a game's links. seats: of friends, by seat; None for everybody else."""

    host: Token
    watch: Token
    seats: list[Token | None]


class Header(Schema):
    """How a game was begun. record: its record before the first action."""

    format: Literal["busenv-play"] = "busenv-play"
    version: Literal[1] = 1
    id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    begun: Annotated[str, Field(max_length=40)]
    record: dict[str, Any]
    seats: Annotated[list[Chair], Field(min_length=3, max_length=5)]
    tokens: Tokens


class Line(Schema):
    """Something that happened: a decision (parent, action), a node to stand at, or a name."""

    parent: Number | None = None
    action: Number | None = None
    stand: Number | None = None
    paused: bool = False
    seat: Annotated[int, Field(ge=0, le=4)] | None = None
    name: Name | None = None


@dataclass(frozen=True)
class Kept:
    """A game as it was read: how it was begun and what happened, or why it cannot be read."""

    path: Path
    header: Header | None = None
    lines: tuple[Line, ...] = ()
    fault: str = ""


class Store:
    """A folder of games; made when it is missing. For one process at a time (`locked`)."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def key(self) -> str:
        """The secret of the start page, the same for as long as the folder is."""
        path = self.folder / KEY
        if not path.exists():
            _create(path, secrets.token_urlsafe(24))
        return read_bounded(path, follow_links=False).decode("ascii").strip()

    def begin(self, header: Header) -> None:
        """Keep a new game."""
        _create(self._path(header.id), header.model_dump_json() + "\n")

    def append(self, game: str, line: dict[str, Any]) -> None:
        """Keep what happened in a game; OSError, and nothing is kept, when that cannot be done."""
        with open_plain(self._path(game), "ab") as file:
            size = file.tell()
            try:
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
            except OSError:
                file.truncate(size)
                raise

    def games(self) -> Iterator[Kept]:
        """Every game of the folder, in order of the names of their files."""
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            try:
                yield self._read(path)
            except (OSError, ValueError) as error:
                yield Kept(path, fault=f"{path}: {error}")

    def _read(self, path: Path) -> Kept:
        data = read_bounded(path, follow_links=False)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # what comes next must not go on in the middle of a line
            os.truncate(path, len(whole))
        first, *rest = whole.splitlines() or [b""]
        header = parse(Header, first)
        if path.stem != header.id:
            raise ValueError(f"it holds game {header.id}")
        return Kept(path, header, tuple(parse(Line, line) for line in rest))

    def _path(self, game: str) -> Path:
        return self.folder / f"{game}{ENDING}"


def _create(path: Path, content: str) -> None:
    """Write a new file that its owner alone can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode())
        file.flush()
        os.fsync(file.fileno())


def new_tokens(seats: list[Chair]) -> Tokens:
    """Fresh secrets for a game."""
    return Tokens(
        host=secrets.token_urlsafe(18),
        watch=secrets.token_urlsafe(18),
        seats=[secrets.token_urlsafe(18) if seat.kind == "friend" else None for seat in seats],
    )
