"""One game of Bus."""

from __future__ import annotations

import operator
import secrets
from pathlib import Path

import numpy as np

from busenv.actions import Phase, describe_action
from busenv.board import Board, as_board
from busenv.checks import check_seed, illegal_action
from busenv.core import kernels
from busenv.core.state import GAME, OVER
from busenv.files import write_whole
from busenv.position import ENDINGS, Position, read_position
from busenv.record import Record, RecordError
from busenv.render.svg import draw_svg
from busenv.render.text import draw_text
from busenv.rules import Rules, as_rules, check_players


class Game:
    """One game of Bus: whose turn it is, what is legal, and what has happened.

    num_players: 3, 4 or 5 (R1).
    rules: the name of an edition in `busenv.EDITIONS`, or a `busenv.Rules` value.
    board: "city", the path of a board file, or a `busenv.Board`.
    first_player: seat of the first starting player; by default drawn from the seed.
    seed: 0 to 2**64 - 1, by default from the operating system. It decides the first player and
        nothing else: the game itself has no chance in it.

    ValueError says what is allowed instead (a BoardError for the board); FileNotFoundError when
    there is no such board.
    """

    __slots__ = ("_array", "_bits", "_history", "_rules", "_seed", "_state", "board")

    def __init__(
        self,
        num_players: int = 4,
        rules: str | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        first_player: int | None = None,
        seed: int | None = None,
    ) -> None:
        players = check_players(num_players)
        self._rules = as_rules(rules)
        self.board = as_board(board)
        self._seed = secrets.randbits(63) if seed is None else check_seed(seed)
        first = np.zeros(1, np.int64)
        kernels.first_players(np.uint64(self._seed), players, first)
        if first_player is not None:
            if not isinstance(first_player, (int, np.integer)) or first_player not in range(
                players
            ):
                raise ValueError(
                    f"first_player is {first_player!r}; allowed: a seat 0 to {players - 1}"
                )
            first[0] = first_player
        self._array = np.zeros(1, GAME)
        self._state = self._array[0]
        self._bits = np.zeros((self.board.num_actions + 63) // 64, np.uint64)
        self._history: list[int] = []
        kernels.new_games(self._array, self.board.array, self._rules.record(players), first)

    @property
    def num_players(self) -> int:
        """3, 4 or 5 (R1)."""
        return int(self._state["players"])

    @property
    def rules(self) -> Rules:
        """The rules played by."""
        return self._rules

    @property
    def seed(self) -> int:
        """The seed that the first player was drawn from, given or not."""
        return self._seed

    @property
    def first_player(self) -> int:
        """Seat of the starting player of the first round (R1)."""
        return int(self._state["first"])

    @property
    def current_player(self) -> int:
        """Seat that decides now; -1 when the game is over."""
        return -1 if self.is_over else int(self._state["seat"])

    @property
    def phase(self) -> Phase:
        """What is being decided; `busenv.Phase` tells by which rule."""
        return Phase(self._state["phase"])

    @property
    def round(self) -> int:
        """Round being played (R4): 0 during the setup, 1 in the first; the last one when over."""
        return int(self._state["round"])

    @property
    def is_over(self) -> bool:
        """Whether the game has ended (R15, R19)."""
        return int(self._state["phase"]) == OVER

    @property
    def ending(self) -> str:
        """How the game ended: "time_stones", "sites" or "markers"; "running" before (R15, R19)."""
        return ENDINGS[self._state["ending"]]

    @property
    def deliveries(self) -> list[int]:
        """Passengers delivered, by seat (R17)."""
        return self._state["deliveries"][: self.num_players].tolist()

    @property
    def time_stones(self) -> list[int]:
        """Time stones taken, by seat (R15)."""
        return self._state["stones"][: self.num_players].tolist()

    @property
    def points(self) -> list[int]:
        """Deliveries minus time stones, by seat (R20)."""
        return [d - s for d, s in zip(self.deliveries, self.time_stones, strict=True)]

    def ranking(self) -> list[int]:
        """Place by seat on the standing so far: 0 is the winner, no two are equal (R20)."""
        places = np.empty((1, self.num_players), np.int64)
        kernels.rankings(self._array, places)
        return places[0].tolist()

    @property
    def history(self) -> list[int]:
        """The action ids so far (a copy)."""
        return self._history.copy()

    def action_mask(self) -> np.ndarray:
        """Which actions are legal: bool, shape (num_actions,), a fresh array; none when over."""
        mask = np.empty((1, self.board.num_actions), np.bool_)
        kernels.legal_bytes(self._array, self.board.array, self._bits, mask)
        return mask[0]

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; empty when the game is over."""
        return np.flatnonzero(self.action_mask()).tolist()

    def step(self, action: int) -> None:
        """Take an action for the current player and run on to the next decision.

        Raises IllegalActionError, the game unchanged, when the action is not legal now, TypeError
        when it is no whole number. A game that is over takes no action.
        """
        action = operator.index(action)
        if not 0 <= action < self.board.num_actions or self.is_over:
            raise illegal_action(self._array, 0, self.board, action)
        if not kernels.try_step(self._array, self.board.array, action):
            raise illegal_action(self._array, 0, self.board, action)
        self._history.append(action)

    def describe(self, action: int) -> str:
        """An action id in the game's words, such as "grow line 14→20"; legal now or not.

        Raises ValueError when the board has no such id.
        """
        return describe_action(self.board, operator.index(action))

    def position(self) -> Position:
        """Everything on the table as plain Python values, for people, drawings and tests."""
        return read_position(self._array, self.board)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The live state (shape (1,), GAME) and the board (shape (1,), BOARD), for kernels.

        Kernels trust their input: writing anything but a legal step through them breaks the game.
        """
        return self._array, self.board.array

    def clone(self) -> Game:
        """An independent copy."""
        copy = object.__new__(Game)
        copy._rules, copy._seed, copy.board = self._rules, self._seed, self.board
        # Copying bytes is far quicker than copying a record field by field.
        copy._array = self._array.view(np.uint8).copy().view(GAME)
        copy._state = copy._array[0]
        copy._bits = self._bits.copy()
        copy._history = self._history.copy()
        return copy

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Game:
        return self.clone()

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
        )

    @classmethod
    def from_record(cls, record: Record, board: str | Path | Board = "city") -> Game:
        """Play a record through the rules again.

        Raises RecordError when the board is another one, naming the ply at which an action is
        illegal, or when the result is not the one that the actions lead to.
        """
        board = as_board(board)
        record.check_board(board)
        game = cls(record.players, record.rules, board, record.first_player, record.seed)
        actions = np.array(record.actions, np.int64)
        ply = int(kernels.replay(game._array, board.array, actions))
        game._history = list(record.actions[: ply if ply >= 0 else None])
        if ply >= 0:
            wrong = illegal_action(game._array, 0, board, record.actions[ply])
            raise RecordError(f"record: ply {ply}: {wrong}")
        result = game.record().result
        if record.result != result:
            raise RecordError(
                f"record: after ply {len(record.actions)} the result is {result}, "
                f"but the record says {record.result}"
            )
        return game

    def save(self, path: str | Path) -> None:
        """Write the game as a JSON record (`busenv.record`), whole or not at all; else OSError."""
        write_whole(path, self.record().to_json())

    @classmethod
    def load(cls, path: str | Path, board: str | Path | Board = "city") -> Game:
        """Read a JSON record and play it through the rules.

        Raises OSError when there is no such file, RecordError when it holds no record or as
        `from_record` does.
        """
        return cls.from_record(Record.from_json(Path(path).read_bytes()), board)

    def to_bytes(self) -> bytes:
        """The game in compact form, with format version, rules, board fingerprint and checksum."""
        return self.record().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, board: str | Path | Board = "city") -> Game:
        """A game from `to_bytes`; RecordError says what is off: version, rules, board, damage."""
        return cls.from_record(Record.from_bytes(bytes(data)), board)

    def text(self) -> str:
        """The position in words."""
        return draw_text(self.board, self.position(), self._rules)

    def svg(self) -> str:
        """The drawing of the position, with the last action lit up."""
        return draw_svg(self.board, self.position(), self._rules, self._last())

    def _last(self) -> tuple[int, int] | None:
        """The seat that took the last action, and the action; None before the first."""
        if not self._history:
            return None
        earlier = Game(self.num_players, self._rules, self.board, self.first_player, self._seed)
        for action in self._history[:-1]:
            earlier.step(action)
        return earlier.current_player, self._history[-1]

    _repr_svg_ = svg  # which notebooks show

    def __repr__(self) -> str:
        if self.is_over:
            turn = f"over ({self.ending}), winner seat {self.ranking().index(0)}"
        else:
            turn = f"seat {self.current_player} to decide {self.phase.name}"
        return (
            f"<Bus, {self.num_players} players, {self.rules.name}, {self.board.name}: "
            f"round {self.round}, ply {len(self._history)}, points {self.points}, {turn}>"
        )
