"""One game of Bus, and its record.

A game knows how to record itself, and a record how to play its game again, so both stand here;
`busenv.game.base_game` is the playing of it, `busenv.game.record_format` how a record is written down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from busenv.core import kernels
from busenv.error_text import quote, truncate
from busenv.errors import IllegalActionError, PositionError, RecordError
from busenv.game import record_format
from busenv.game.base_game import BaseGame
from busenv.game.board import Board, as_board
from busenv.game.position import Position, read_position
from busenv.game.rules import Rules, check_players
from busenv.io import read_bounded, write_whole
from busenv.observation import observe
from busenv.render.raster import svg_to_png
from busenv.render.svg import draw_svg
from busenv.render.text import draw_text
from busenv.validation import illegal_action


class Game(BaseGame):
    """One game of Bus: whose turn it is, what is legal, and what has happened.

    Playing it is inherited from `busenv.game.base_game.BaseGame`; here it is looked at, drawn and recorded.

    num_players: 3, 4 or 5 (R1).
    rules: the name of an edition in `busenv.EDITIONS`, the path of a file of rules, or a
        `busenv.Rules` value.
    board: "city", the path of a board file, or a `busenv.Board`.
    first_player: seat of the first starting player; by default drawn from the seed.
    seed: 0 to 2**64 - 1, by default from the operating system. It decides the first player and
        nothing else: the game itself has no chance in it.

    ValueError says what is allowed instead (a BoardError for the board); FileNotFoundError when
    there is no such board.
    """

    __slots__ = ()

    def observe(self, seat: int | None = None) -> np.ndarray:
        """What a seat sees, by default the one to decide: uint8, shape (layout.size,).

        `busenv.ObservationLayout` names its parts. ValueError when there is no such seat.
        """
        return observe(self, seat)

    def text(self) -> str:
        """The position in words."""
        return draw_text(self.board, self.position(), self._rules)

    def svg(self) -> str:
        """The drawing of the position as SVG text, with the last decision lit up."""
        return draw_svg(self.board, self.position(), self._rules, self.last_decision)

    _repr_svg_ = svg  # which notebooks show

    def png(self, path: str | Path | None = None) -> bytes:
        """The drawing as a PNG file of 1200 x 800 pixels, which is also written to a path.

        Needs the extra `render`; ModuleNotFoundError says what to install. OSError when the file
        cannot be written.
        """
        data = svg_to_png(self.svg())
        if path is not None:
            write_whole(path, data)
        return data

    def __reduce__(self) -> tuple[object, ...]:
        return Game.from_record, (self.record(), self.board)

    def record(self) -> Record:
        """The game as a record: its setup, its actions, and its result once it is over."""
        result = None
        if self.is_over:
            result = {
                "ending": self.ending,
                "rounds": self.round,
                "deliveries": self.deliveries,
                "time_stones": self.time_stones,
                "points": self.points,
                "ranking": self.ranking(),
            }
        board = {"name": self.board.name, "fingerprint": self.board.fingerprint}
        return Record(
            self._rules,
            board,
            self.num_players,
            self.first_player,
            self._seed,
            tuple(self._history),
            result,
            None if self._placed is None else read_position(self._placed, self.board),
        )

    @classmethod
    def from_record(cls, record: Record, board: str | Path | Board = "city") -> Game:
        """Play a record through the rules again.

        Raises RecordError when the board is another one, when the position that it begins in cannot
        be, naming the ply at which an action is illegal, or when the result is not the one that the
        actions lead to.
        """
        game = record.begin(board)
        ply = int(kernels.replay(game._array, game.board.array, np.array(record.actions, np.int64)))
        game._history = list(record.actions[: ply if ply >= 0 else None])
        if ply >= 0:
            wrong = illegal_action(game._array, 0, game.board, record.actions[ply])
            raise RecordError(f"record: ply {ply}: {wrong}")
        record.check_result(game)
        return game

    def save(self, path: str | Path) -> None:
        """Write the game as a JSON record (`busenv.game.record_format`), whole or not at all; else OSError."""
        write_whole(path, self.record().to_json())

    @classmethod
    def load(cls, path: str | Path, board: str | Path | Board = "city") -> Game:
        """Read a JSON record and play it through the rules.

        OSError says which file is not there or cannot be read; RecordError when it holds no record
        or as `from_record` does.
        """
        return cls.from_record(Record.from_json(read_bounded(path, RecordError)), board)

    def to_bytes(self) -> bytes:
        """The game in compact form, with format version, rules, board fingerprint and checksum."""
        return self.record().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, board: str | Path | Board = "city") -> Game:
        """A game from `to_bytes`; RecordError says what is off: version, rules, board, damage."""
        return cls.from_record(Record.from_bytes(bytes(data)), board)


@dataclass(frozen=True)
class Record:
    """A game's setup, its actions so far, and its result once it is over.

    board: {"name": ..., "fingerprint": ...}, as in `busenv.Board`.
    result: None while the game runs, else {"ending", "rounds", "deliveries", "time_stones",
        "points", "ranking"}, the last four by seat.
    position: what the game began in, if not in the usual set-up (`Game.from_position`).

    A record holds no other position: loading one plays its actions through the rules, so it can
    never describe what play cannot reach.
    """

    rules: Rules
    board: dict[str, str]
    players: int
    first_player: int
    seed: int
    actions: tuple[int, ...]
    result: dict[str, Any] | None
    position: Position | None = None

    def __post_init__(self) -> None:
        check_players(self.players)
        _whole("first_player", self.first_player, self.players - 1)
        _whole("seed", self.seed, 2**64 - 1)
        for ply, action in enumerate(self.actions):
            _whole(f"actions[{ply}]", action, 0xFFFF)
        begun = self.position
        if begun and (begun.num_players, begun.first_player) != (self.players, self.first_player):
            raise RecordError("record: players or first_player is not as in its position")
        if begun and self.seed:
            raise RecordError(f"record: seed is {self.seed}; allowed with a position: 0")

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values."""
        fields = {
            "format": record_format.FORMAT,
            "version": record_format.VERSION,
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
        """A record from `to_dict`'s value; RecordError names what is missing or wrong."""
        record_format.check_format(data)
        board, begun = data["board"], data.get("position")
        if not isinstance(board, dict) or set(board) != {"name", "fingerprint"}:
            raise RecordError(
                f"record: board is {quote(board)}; it must have a name and a fingerprint"
            )
        if not all(isinstance(text, str) for text in board.values()):
            raise RecordError(
                f"record: board is {quote(board)}; its name and fingerprint must be texts"
            )
        if not isinstance(data["actions"], list):
            raise RecordError("record: 'actions' must be a list of action ids")
        try:
            return cls(
                Rules.from_dict(data["rules"]),
                board,
                check_players(data["players"]),
                data["first_player"],
                data["seed"],
                tuple(data["actions"]),
                data["result"],
                None if begun is None else Position.from_dict(begun),
            )
        except RecordError:
            raise
        except ValueError as error:
            raise RecordError(f"record: {error}") from error

    def to_json(self) -> str:
        """The record as JSON text, one key a line."""
        return record_format.to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Record:
        """A record from JSON text; RecordError says what is wrong."""
        return cls.from_dict(record_format.parse_json(text))

    def to_bytes(self) -> bytes:
        """The record in compact form."""
        return record_format.to_bytes(self.to_dict())

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """A record from `to_bytes`'s value; RecordError says what is off."""
        return cls.from_dict(record_format.parse_bytes(data))

    def begin(self, board: str | Path | Board = "city") -> Game:
        """The game before its first action; RecordError when it is of another board."""
        board = as_board(board)
        if self.board["fingerprint"] != board.fingerprint:
            raise RecordError(
                f"the game was played on board {quote(self.board['name'])} "
                f"(fingerprint {truncate(self.board['fingerprint'])}), not on {board.name!r} "
                f"({board.fingerprint}); give that board (board=..., --board NAME or FILE)"
            )
        if self.position is None:
            return Game(self.players, self.rules, board, self.first_player, self.seed)
        try:
            return Game.from_position(self.position, self.rules, board)
        except PositionError as error:
            raise RecordError(f"record: {error}") from error

    def replay(self, board: str | Path | Board = "city") -> Iterator[tuple[Game, int]]:
        """Play the game again: before each decision the live game, and the action to be taken.

        >>> import busenv
        >>> played = busenv.Game(3, seed=1)
        >>> played.step(8)
        >>> played.step(14)
        >>> for game, action in played.record().replay():
        ...     print(f"seat {game.current_player}: {game.describe(action)}")
        seat 2: erect house on site 0 at intersection 9, zone 1
        seat 2: erect house on site 2 at intersection 14, zone 1
        >>> game.current_player
        0

        It is one and the same game, which goes on by the action when the next pair is asked for
        (clone it to keep it; do not change it). After the loop it stands at the end. A record
        without actions yields nothing; `begin` makes its game. Raises RecordError as
        `Game.from_record`, an illegal action's when it is reached.
        """
        game = self.begin(board)
        for ply, action in enumerate(self.actions):
            yield game, action
            try:
                game.step(action)
            except IllegalActionError as error:
                raise RecordError(f"record: ply {ply}: {error}") from error
        self.check_result(game)

    def check_result(self, game: Game) -> None:
        """RecordError unless the record has the result of its game, played through."""
        result = game.record().result
        if self.result != result or not _same_types(self.result, result):
            raise RecordError(
                f"record: after ply {len(self.actions)} the result is {result}, "
                f"but the record says {quote(self.result)}"
            )


def _same_types(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether equal results are equal as text too: True and 1.0 are not 1."""
    return other is None or repr([(one or {})[key] for key in other]) == repr([*other.values()])


def _whole(name: str, value: object, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
        raise RecordError(f"record: {name} is {quote(value)}; allowed: a whole number 0 to {high}")
