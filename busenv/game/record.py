"""The record of a game: setup, actions and result, as a value, as JSON text and as bytes."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busenv.error_text import quote, truncate
from busenv.errors import RecordError
from busenv.game.board import Board
from busenv.game.position import Position
from busenv.game.rules import Rules
from busenv.io import check_length, is_int, read_bounded

FORMAT = "busenv-game"
VERSION = 2
KEYS = frozenset(
    "format version rules board players first_player seed actions result".split()
)  # and "position", for a game that began in one
MAGIC = b"BUSENV\0"
_HEAD = struct.Struct("<BII")  # version, length of the JSON head, CRC-32 of all that follows


@dataclass(frozen=True)
class Record:
    """A game's setup, its actions so far, and its result once it is over.

    board: {"name": ..., "fingerprint": ...}, as in `busenv.Board`, and "generator", the version of
        the generator, for a generated board, whose name has the seed.
    players, first_player, seed: as in `busenv.Game`. actions: the action ids so far.
    result: None for a running game, else {"ending", "rounds", "deliveries", "time_stones",
        "points", "ranking"}, the last four by seat.
    position: the initial position of a game from `Game.from_position`; None after the setup.

    A record holds no state: loading it replays the actions by the rules, so that it cannot describe
    a state that play cannot reach. Raises RecordError, which names the field, for a wrong value.
    """

    rules: Rules
    board: dict[str, Any]
    players: int
    first_player: int
    seed: int
    actions: tuple[int, ...]
    result: dict[str, Any] | None
    position: Position | None = None

    def __post_init__(self) -> None:
        if not is_int(self.players, 3, 5):
            raise RecordError(f"record: players is {quote(self.players)}; allowed: 3, 4 or 5")
        _check_whole("first_player", self.first_player, self.players - 1)
        _check_whole("seed", self.seed, 2**64 - 1)
        for ply, action in enumerate(self.actions):
            _check_whole(f"actions[{ply}]", action, 0xFFFF)
        start = self.position
        if start and (start.num_players, start.first_player) != (self.players, self.first_player):
            raise RecordError("record: players or first_player differ from its position's")
        if start and self.seed:
            raise RecordError(f"record: seed is {self.seed}; allowed with a position: 0")

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        fields = {
            "format": FORMAT,
            "version": VERSION,
            "rules": self.rules.to_dict(),
            "board": self.board,
            "players": self.players,
            "first_player": self.first_player,
            "seed": self.seed,
            "actions": list(self.actions),
            "result": self.result,
        }
        return fields | ({"position": self.position.to_dict()} if self.position else {})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Record:
        """Make a record from the value of `to_dict`; RecordError names a missing or wrong key."""
        _check_format(data)
        board, position = data["board"], data.get("position")
        _check_board_entry(board)
        if not isinstance(data["actions"], list):
            raise RecordError("record: 'actions' must be a list of action ids")
        try:
            return cls(
                Rules.from_dict(data["rules"]),
                board,
                data["players"],
                data["first_player"],
                data["seed"],
                tuple(data["actions"]),
                data["result"],
                None if position is None else Position.from_dict(position),
            )
        except RecordError:
            raise
        except ValueError as error:
            raise RecordError(f"record: {error}") from error

    def to_json(self) -> str:
        """Return the record as JSON text, one key per line."""
        fields = self.to_dict().items()
        rows = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in fields)
        return "{\n" + ",\n".join(rows) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """Read a record from JSON text; RecordError names what is wrong."""
        return cls.from_dict(_parse_json(text))

    @classmethod
    def load(cls, path: str | Path) -> Record:
        """Read a record from a JSON file; RecordError names the file and what is wrong."""
        text = read_bounded(path, RecordError)
        try:
            return cls.from_json(text)
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from None

    def to_bytes(self) -> bytes:
        """Return the record in compact form: a JSON head, two bytes per action, and a checksum."""
        head = json.dumps({**self.to_dict(), "actions": []}).encode()
        body = head + np.array(self.actions, "<u2").tobytes()
        return MAGIC + _HEAD.pack(VERSION, len(head), zlib.crc32(body, len(head))) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """Read a record from the value of `to_bytes`; RecordError names what is wrong."""
        check_length(data, "a game record", RecordError)
        start = len(MAGIC) + _HEAD.size
        if len(data) < start or not data.startswith(MAGIC):
            raise RecordError("not the bytes of a busenv game")
        version, length, checksum = _HEAD.unpack_from(data, len(MAGIC))
        if version != VERSION:
            raise RecordError(f"bytes of format version {version}; this busenv reads {VERSION}")
        if zlib.crc32(data[start:], length) != checksum or (len(data) - start - length) % 2:
            raise RecordError("the bytes of the game are damaged (checksum)")
        actions = np.frombuffer(data[start + length :], "<u2").tolist()
        return cls.from_dict({**_parse_json(data[start : start + length]), "actions": actions})

    def check_board(self, board: Board) -> None:
        """Raise RecordError for another board than the record's."""
        if self.board["fingerprint"] != board.fingerprint:
            raise RecordError(
                f"the game was played on board {quote(self.board['name'])} "
                f"(fingerprint {truncate(self.board['fingerprint'])}), not on {board.name!r} "
                f"({board.fingerprint}); give that board (board=..., --board NAME or FILE)"
            )

    def check_result(self, result: dict[str, Any] | None) -> None:
        """Raise RecordError unless the record has the result of its replayed game."""
        # True and 1.0 equal 1, but differ as JSON text.
        if json.dumps(result, sort_keys=True) != json.dumps(self.result, sort_keys=True):
            raise RecordError(
                f"record: after ply {len(self.actions)} the result is {result}, "
                f"but the record says {quote(self.result)}"
            )


def _check_whole(name: str, value: object, high: int) -> None:
    if not is_int(value, 0, high):
        raise RecordError(f"record: {name} is {quote(value)}; allowed: a whole number 0 to {high}")


def _check_board_entry(board: Any) -> None:
    """Raise RecordError unless these are a name, a fingerprint and perhaps a generator version."""
    kinds = {"name": str, "fingerprint": str, "generator": int}
    named = isinstance(board, dict) and {"name", "fingerprint"} <= {*board} <= {*kinds}
    if not named or not all(type(value) is kinds[key] for key, value in board.items()):
        raise RecordError(
            f"record: board is {quote(board)}; allowed: a name and a fingerprint, both texts, and "
            "for a generated board the version of the generator"
        )


def _check_format(fields: dict[str, Any]) -> None:
    """Raise RecordError unless these are the fields of a record of this version."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise RecordError(f"not a game record: 'format' is not {FORMAT!r}")
    version = fields.get("version")
    if type(version) is not int or version != VERSION:
        raise RecordError(f"record version {quote(version)}; this busenv reads {VERSION}")
    if wrong := (set(fields) ^ KEYS) - {"position"}:
        raise RecordError(f"record with missing or unknown keys: {quote(sorted(wrong))}")


def _parse_json(text: str | bytes) -> dict[str, Any]:
    check_length(text, "a game record", RecordError)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a game record: {error}") from error
    if not isinstance(data, dict):
        raise RecordError(f"not a game record: a JSON {type(data).__name__}, not an object")
    return data
