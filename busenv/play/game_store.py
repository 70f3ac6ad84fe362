"""The folder of saved games: every decision is on disk before the server acknowledges it.

A game is a file of JSON lines (`busenv.common.jsonl`): a header, then one event a line. Only the
owner can read the files, since they contain the secrets of the links.
"""

from __future__ import annotations

import errno
import json
import secrets
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from busenv.common.jsonl import append_lines, read_lines
from busenv.io import write_whole
from busenv.play.messages import Name, Number, Seat, SeatIndex
from busenv.schema import Schema, parse

KEY, SUFFIX = "key", ".jsonl"
MAX_SIZE = 8 * 2**20  # bytes to which a game may grow; a long one takes 20,000
Token = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{20,64}$")]


class Participant(Schema):
    """The holder of a link. The host created the game; a spectator has no seats.

    token: the secret of the link.
    """

    role: Literal["host", "friend", "spectator"]
    seats: tuple[SeatIndex, ...]
    token: Token


class GameHeader(Schema):
    """The first line of a game's file. record: the record before the first action."""

    format: Literal["busenv-play"] = "busenv-play"
    version: Literal[1] = 1
    id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    created: Annotated[str, Field(max_length=40)]
    record: dict[str, Any]
    seats: Annotated[list[Seat], Field(min_length=3, max_length=5)]
    participants: list[Participant]


class GameEvent(Schema):
    """One event: a decision (parent, action), a jump (node, paused) or a name (seat, name)."""

    parent: Number | None = None
    action: Number | None = None
    node: Number | None = None
    paused: bool = False
    seat: SeatIndex | None = None
    name: Name | None = None


class GameStore:
    """A folder of games, created if it is missing. One process at a time may use it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def key(self) -> str:
        """Return the secret in the start page's link; create it if the folder has none."""
        path = self.folder / KEY
        if not path.exists():
            write_whole(path, secrets.token_urlsafe(24), mode=0o600)
        return path.read_text(encoding="ascii").strip()

    def create(self, header: GameHeader, events: list[dict[str, Any]]) -> None:
        """Create the file of a new game. OSError if it cannot be written; no file is left then."""
        lines = [header.model_dump_json(), *map(json.dumps, events)]
        content = "".join(f"{line}\n" for line in lines)
        write_whole(self.path(header.id), content, mode=0o600)

    def append(self, game_id: str, event: dict[str, Any]) -> None:
        """Append an event to a game. OSError if it cannot be written; no event is lost then."""
        path = self.path(game_id)
        if path.stat().st_size > MAX_SIZE:
            raise OSError(errno.EFBIG, f"a game has {MAX_SIZE:,} bytes at most")
        append_lines(path, [event])

    def delete(self, game_id: str) -> None:
        """Delete the file of a game."""
        self.path(game_id).unlink(missing_ok=True)

    def ids(self) -> list[str]:
        """Return the ids of all games of the folder."""
        return sorted(path.stem for path in self.folder.glob(f"*{SUFFIX}"))

    def read(self, game_id: str) -> tuple[GameHeader, list[GameEvent]]:
        """Read a game. OSError or ValueError if it cannot be read."""
        first, *rest = [*read_lines(self.path(game_id), bytes)] or [b""]
        header = parse(GameHeader, first)
        if game_id != header.id:
            raise ValueError(f"the file name does not match the game's id {header.id}")
        return header, [parse(GameEvent, line) for line in rest]

    def path(self, game_id: str) -> Path:
        """Return the path of a game's file."""
        return self.folder / f"{game_id}{SUFFIX}"


def new_participants(seats: list[Seat]) -> list[Participant]:
    """Create the holders of a new game's links, with new secrets."""
    own = tuple(k for k, seat in enumerate(seats) if seat.kind == "me")
    friends = [k for k, seat in enumerate(seats) if seat.kind == "friend"]
    return [
        Participant(role="host", seats=own, token=secrets.token_urlsafe(18)),
        Participant(role="spectator", seats=(), token=secrets.token_urlsafe(18)),
        *(Participant(role="friend", seats=(k,), token=secrets.token_urlsafe(18)) for k in friends),
    ]
