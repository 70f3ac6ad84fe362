"""The folder of saved games: every decision is on disk before the server acknowledges it.

A game is a file of JSON lines: a header, then one event a line. The files are append-only; an
incomplete last line, left by a killed process, is dropped on reading. Only the owner can read the
files, since they contain the secrets of the links.
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
from busenv.experiments.play.messages import Name, Number, Seat, SeatIndex
from busenv.io import open_plain, read_bounded

KEY, SUFFIX = "key", ".jsonl"
Token = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{20,64}$")]


class LinkTokens(Schema):
    """The secrets of a game's links. seats: one for each friend's seat, else None."""

    host: Token
    spectator: Token
    seats: list[Token | None]


class GameHeader(Schema):
    """The first line of a game's file. record: the record before the first action."""

    format: Literal["busenv-play"] = "busenv-play"
    version: Literal[1] = 1
    id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    created: Annotated[str, Field(max_length=40)]
    record: dict[str, Any]
    seats: Annotated[list[Seat], Field(min_length=3, max_length=5)]
    tokens: LinkTokens


class GameEvent(Schema):
    """One event: a decision (parent, action), a jump (node, paused) or a name (seat, name)."""

    parent: Number | None = None
    action: Number | None = None
    node: Number | None = None
    paused: bool = False
    seat: SeatIndex | None = None
    name: Name | None = None


@dataclass(frozen=True)
class StoredGame:
    """The content of a game's file. error: why the file cannot be read; header is None then."""

    path: Path
    header: GameHeader | None = None
    events: tuple[GameEvent, ...] = ()
    error: str = ""


class GameStore:
    """A folder of games, created if it is missing. One process at a time may use it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def key(self) -> str:
        """The secret of the start page's link, created with the folder."""
        path = self.folder / KEY
        if not path.exists():
            _create(path, secrets.token_urlsafe(24))
        return read_bounded(path, follow_links=False).decode("ascii").strip()

    def create(self, header: GameHeader) -> None:
        """Create the file of a new game."""
        _create(self._path(header.id), header.model_dump_json() + "\n")

    def append(self, game_id: str, event: dict[str, Any]) -> None:
        """Append an event to a game. OSError if it cannot be written; the file is unchanged."""
        with open_plain(self._path(game_id), "ab") as file:
            size = file.tell()
            try:
                file.write(json.dumps(event).encode() + b"\n")
                file.flush()
            except OSError:
                file.truncate(size)
                raise

    def games(self) -> Iterator[StoredGame]:
        """Read every game of the folder, in order of the file names."""
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            try:
                yield self._read(path)
            except (OSError, ValueError) as error:
                yield StoredGame(path, error=f"{path}: {error}")

    def _read(self, path: Path) -> StoredGame:
        data = read_bounded(path, follow_links=False)
        complete = data[: data.rfind(b"\n") + 1]
        if len(complete) < len(data):
            os.truncate(path, len(complete))
        first, *rest = complete.splitlines() or [b""]
        header = parse(GameHeader, first)
        if path.stem != header.id:
            raise ValueError(f"the file name does not match the game's id {header.id}")
        return StoredGame(path, header, tuple(parse(GameEvent, line) for line in rest))

    def _path(self, game_id: str) -> Path:
        return self.folder / f"{game_id}{SUFFIX}"


def _create(path: Path, content: str) -> None:
    """Write a new file that only its owner can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode())
        file.flush()
        os.fsync(file.fileno())


def new_tokens(seats: list[Seat]) -> LinkTokens:
    """Create the secrets of a new game's links."""
    return LinkTokens(
        host=secrets.token_urlsafe(18),
        spectator=secrets.token_urlsafe(18),
        seats=[secrets.token_urlsafe(18) if seat.kind == "friend" else None for seat in seats],
    )
