"""What a game is made of: a setup and a list of actions, as JSON text or as bytes.

A record holds no position. Loading one replays its actions through the rules, so a record can
never describe a position that play cannot reach.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from busenv.board import Board
from busenv.rules import Rules, check_players

FORMAT = "busenv-game"
VERSION = 1
KEYS = (
    "format",
    "version",
    "rules",
    "board",
    "players",
    "first_player",
    "seed",
    "actions",
    "result",
)
MAGIC = b"BUSENV\0"
_HEAD = struct.Struct("<BII")  # version, length of the JSON head, CRC-32 of it and what follows


class RecordError(ValueError):
    """A record or byte string that cannot be loaded; the message says what is wrong."""


@dataclass(frozen=True)
class Record:
    """A game's setup, its actions so far, and its result once it is over.

    board: {"name": ..., "fingerprint": ...}, as in `busenv.Board`.
    result: None while the game runs, else {"ending", "rounds", "deliveries", "time_stones",
        "points", "ranking"}, the last four by seat.
    """

    rules: Rules
    board: dict[str, str]
    players: int
    first_player: int
    seed: int
    actions: tuple[int, ...]
    result: dict[str, Any] | None

    def __post_init__(self) -> None:
        check_players(self.players)
        _whole("first_player", self.first_player, self.players - 1)
        _whole("seed", self.seed, 2**64 - 1)
        for ply, action in enumerate(self.actions):
            _whole(f"actions[{ply}]", action, 0xFFFF)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values."""
        return {
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

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Record:
        """A record from `to_dict`'s value; RecordError names what is missing or wrong."""
        if data.get("format") != FORMAT:
            raise RecordError(f"not a game record: 'format' is not {FORMAT!r}")
        if data.get("version") != VERSION:
            raise RecordError(
                f"record version {data.get('version')!r}; this busenv reads {VERSION}"
            )
        if set(data) != set(KEYS):
            raise RecordError(
                f"record with missing or unknown keys: {sorted(set(data) ^ set(KEYS))}"
            )
        try:
            rules = Rules.from_dict(data["rules"])
            players = check_players(data["players"])
        except ValueError as error:
            raise RecordError(f"record: {error}") from error
        board = data["board"]
        if not isinstance(board, dict) or set(board) != {"name", "fingerprint"}:
            raise RecordError(f"record: board is {board!r}; it must have a name and a fingerprint")
        first, seed, actions = data["first_player"], data["seed"], data["actions"]
        if not isinstance(actions, list):
            raise RecordError("record: 'actions' must be a list of action ids")
        return cls(rules, board, players, first, seed, tuple(actions), data["result"])

    def to_json(self) -> str:
        """The record as JSON text, one key a line."""
        rows = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in self.to_dict().items())
        return "{\n" + ",\n".join(rows) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """A record from JSON text."""
        return cls.from_dict(_parse(text))

    def to_bytes(self) -> bytes:
        """The record in compact form: a JSON head and two bytes an action, with a checksum."""
        head = json.dumps({**self.to_dict(), "actions": []}).encode()
        body = head + np.array(self.actions, "<u2").tobytes()
        return MAGIC + _HEAD.pack(VERSION, len(head), zlib.crc32(body, len(head))) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """A record from `to_bytes`'s value; RecordError says what is off."""
        start = len(MAGIC) + _HEAD.size
        if not data.startswith(MAGIC) or len(data) < start:
            raise RecordError("not the bytes of a busenv game")
        version, length, checksum = _HEAD.unpack_from(data, len(MAGIC))
        if version != VERSION:
            raise RecordError(f"bytes of format version {version}; this busenv reads {VERSION}")
        if zlib.crc32(data[start:], length) != checksum or (len(data) - start - length) % 2:
            raise RecordError("the bytes of the game are damaged (checksum)")
        fields = _parse(data[start : start + length])
        actions = np.frombuffer(data[start + length :], "<u2").tolist()
        return cls.from_dict({**fields, "actions": actions})

    def check_board(self, board: Board) -> None:
        """Refuse a board on which the game was not played."""
        if self.board["fingerprint"] != board.fingerprint:
            raise RecordError(
                f"the game was played on board {self.board['name']!r} "
                f"(fingerprint {self.board['fingerprint']}), not on {board.name!r} "
                f"({board.fingerprint}); pass the board it was played on"
            )


def _parse(text: str | bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a game record: {error}") from error
    if not isinstance(data, dict):
        raise RecordError(f"not a game record: a JSON {type(data).__name__}, not an object")
    return data


def _whole(name: str, value: object, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
        raise RecordError(f"record: {name} is {value!r}; allowed: a whole number 0 to {high}")
