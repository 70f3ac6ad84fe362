"""One game of Bus: play, undo, record."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from busenv.core import bots, kernels
from busenv.core.bits import seeded
from busenv.core.state import Phase
from busenv.errors import IllegalActionError, PositionError, RecordError
from busenv.game.actions import action_id, describe_action
from busenv.game.board import Board
from busenv.game.board_specs import as_board, recorded_board
from busenv.game.position import ENDINGS, Position, read_position
from busenv.game.record import Record
from busenv.game.rules import Rules, as_rules, check_players
from busenv.game.states import copy_state, illegal_action, new_state, state_of
from busenv.io import write_whole
from busenv.validation import check_seed, check_whole


class Game:
    """One game of Bus.

    num_players: 3, 4 or 5 (R1).
    rules: the name of an edition in `busenv.EDITIONS`, the path of a file of rules, or a
        `busenv.Rules` value.
    board: "city", "generated:SIZE:SEED" (`busenv.generate_board`), the path of a board file, or a
        `busenv.Board`.
    first_player: seat of the first starting player; by default drawn from the seed.
    seed: 0 to 2**64 - 1, by default from the operating system. It decides the first player only:
        the game itself has no randomness. A game that begins in a position has seed 0.

    Raises ValueError, which names what is allowed, for a wrong argument (BoardError for a board),
    and FileNotFoundError for a board that does not exist.
    """

    __slots__ = ("_array", "_history", "_start", "_state", "board", "rules", "seed")

    def __init__(
        self,
        num_players: int = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        first_player: int | None = None,
        seed: int | None = None,
    ) -> None:
        players, rules, board = check_players(num_players), as_rules(rules), as_board(board)
        seed = secrets.randbits(63) if seed is None else check_seed(seed)
        if first_player is None:
            first = int(seeded(np.uint64(seed), 0)) % players
        else:
            first = check_whole("first_player", first_player, 0, players - 1)
        self._begin(new_state(board, rules, players, first), rules, board, seed)

    @classmethod
    def from_position(
        cls,
        position: Position,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
    ) -> Game:
        """Make a game that begins in a position; `dataclasses.replace` changes one.

        >>> import busenv, dataclasses
        >>> position = busenv.Game(3, first_player=1).position()
        >>> nine_to_five = dataclasses.replace(position, clock=busenv.Building.OFFICE)
        >>> busenv.Game.from_position(nine_to_five).position().clock
        1
        >>> busenv.Game.from_position(dataclasses.replace(position, supply=2))
        Traceback (most recent call last):
        busenv.errors.PositionError: position: supply is 2; by the other fields it is 11

        Its history is empty. Raises PositionError, which names the field and what contradicts it,
        for an invalid position; rules and board as for a new game.
        """
        rules, board = as_rules(rules), as_board(board)
        return cls.from_state(state_of(position, board, rules), rules, board)

    @classmethod
    def from_state(cls, state: np.ndarray, rules: Rules, board: Board) -> Game:
        """Make a game that begins in a copy of a valid state, such as a batch's: GAME, (1,).

        rules, board: those of the state, which is not checked. The history is empty.
        """
        game = object.__new__(cls)
        game._begin(copy_state(state), rules, board, seed=0, start=copy_state(state))
        return game

    @classmethod
    def from_record(cls, record: Record, board: str | Path | Board | None = None) -> Game:
        """Replay a record by the rules.

        board: the board of the game; by default the generated board that the record names, else
            the city.

        Raises RecordError for a record of another board, an invalid initial position, an illegal
        action (naming the ply), or a result that the actions do not lead to.
        """
        game = cls.begin_record(record, board)
        ply = int(kernels.replay(game._array, game.board.array, np.array(record.actions, np.int64)))
        if ply >= 0:
            error = illegal_action(game._array, 0, game.board, record.actions[ply])
            raise RecordError(f"record: ply {ply}: {error}")
        game._history = list(record.actions)
        record.check_result(game.record().result)
        return game

    @classmethod
    def begin_record(cls, record: Record, board: str | Path | Board | None = None) -> Game:
        """Make the game of a record before its first action, on a board as for `from_record`.

        Raises RecordError for another board and for another version of the generator of boards.
        """
        board = recorded_board(record.board, board)
        record.check_board(board)
        if record.position is None:
            return cls(record.players, record.rules, board, record.first_player, record.seed)
        try:
            return cls.from_position(record.position, record.rules, board)
        except PositionError as error:
            raise RecordError(f"record: {error}") from error

    @classmethod
    def replay(
        cls, record: Record, board: str | Path | Board | None = None
    ) -> Iterator[tuple[Game, int]]:
        """Replay a record: yield the game before each decision, and the action that follows.

        >>> import busenv
        >>> played = busenv.Game(3, seed=1)
        >>> played.step(8)
        >>> played.step(14)
        >>> for game, action in busenv.Game.replay(played.record()):
        ...     print(f"seat {game.current_player}: {game.describe(action)}")
        seat 2: erect house on site 0 at intersection 9, zone 1
        seat 2: erect house on site 2 at intersection 14, zone 1
        >>> game.current_player
        0

        Each pair has the same game object, which takes the action when the next pair is requested;
        clone it to keep it, and do not change it. After the loop the game is at its last state. A
        record without actions yields nothing; `begin_record` returns its game. Raises RecordError
        as `from_record` does, for an illegal action when the loop reaches it.
        """
        game = cls.begin_record(record, board)
        for ply, action in enumerate(record.actions):
            yield game, action
            try:
                game.step(action)
            except IllegalActionError as error:
                raise RecordError(f"record: ply {ply}: {error}") from error
        record.check_result(game.record().result)

    @classmethod
    def from_bytes(cls, data: bytes, board: str | Path | Board | None = None) -> Game:
        """Make a game from `to_bytes`; RecordError names a wrong version, board or checksum."""
        return cls.from_record(Record.from_bytes(bytes(data)), board)

    @classmethod
    def load(cls, path: str | Path, board: str | Path | Board | None = None) -> Game:
        """Read a JSON record and replay it by the rules.

        Raises OSError for a file that cannot be read, RecordError for a file without a record and
        as `from_record` does.
        """
        return cls.from_record(Record.load(path), board)

    def _begin(
        self,
        state: np.ndarray,
        rules: Rules,
        board: Board,
        seed: int,
        start: np.ndarray | None = None,
    ) -> None:
        """start: the initial state, which is never written to; None for the usual setup."""
        self._array, self._state, self._start = state, state[0], start
        self.rules, self.seed, self.board = rules, seed, board
        self._history: list[int] = []

    @property
    def num_players(self) -> int:
        """3, 4 or 5 (R1)."""
        return int(self._state["players"])

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
        """The kind of the current decision; `busenv.Phase` names the rule of each."""
        return Phase(self._state["phase"])

    @property
    def round(self) -> int:
        """Current round (R4): 0 during the setup, then from 1; the last round when over."""
        return int(self._state["round"])

    @property
    def is_over(self) -> bool:
        """Whether the game has ended (R15, R19)."""
        return bool(self._state["ending"])

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
        """Rank so far by seat: 0 is the winner, no two are equal (R20)."""
        return kernels.rankings(self._array, self.num_players)[0].tolist()

    @property
    def begun_in_position(self) -> bool:
        """Whether the game began in a position (`Game.from_position`) instead of the setup."""
        return self._start is not None

    @property
    def history(self) -> list[int]:
        """The action ids so far (a copy)."""
        return self._history.copy()

    @property
    def last_decision(self) -> tuple[int, int] | None:
        """Seat and action id of the last decision; None before the first."""
        if not self._history:
            return None
        return int(self._state_before_last()["seat"][0]), self._history[-1]

    def action_mask(self) -> np.ndarray:
        """Return the legal actions: bool, (num_actions,), a new array; all False when over."""
        mask = np.empty((1, self.board.num_actions), np.bool_)
        kernels.legal_bytes(self._array, self.board.array, mask)
        return mask[0]

    def legal_actions(self) -> list[int]:
        """Return the ids of the legal actions, ascending; empty when the game is over."""
        return np.flatnonzero(self.action_mask()).tolist()

    def step(self, action: int) -> None:
        """Take an action for the current player and apply the rules up to the next decision.

        Raises IllegalActionError for an action that is not legal now (none is when the game is
        over) and TypeError for one that is not a whole number; the game is unchanged then.
        """
        action = action_id(action)
        known = 0 <= action < self.board.num_actions
        if not (known and kernels.try_step(self._array, self.board.array, action)):
            raise illegal_action(self._array, 0, self.board, action)
        self._history.append(action)

    def run_bots(self, kinds: np.ndarray, rng_states: np.ndarray) -> None:
        """Let compiled bots decide until a seat without one is to decide, or the game is over.

        kinds, rng_states: as for `busenv.core.bots.run_bots`, which advances `rng_states`.
        """
        actions = np.empty(64, np.int64)
        count = len(actions)
        while count == len(actions):
            count = bots.run_bots(self._array, self.board.array, kinds, rng_states, actions)
            self._history += actions[:count].tolist()

    def undo(self) -> int:
        """Undo the last decision and what the rules applied after it; return its action id.

        Raises ValueError at the initial state.
        """
        if not self._history:
            raise ValueError("nothing to undo: no decision has been taken")
        self._array.view(np.uint8)[:] = self._state_before_last().view(np.uint8)
        return self._history.pop()

    def _state_before_last(self) -> np.ndarray:
        """The state before the last decision."""
        if self._start is None:
            state = new_state(self.board, self.rules, self.num_players, self.first_player)
        else:
            state = copy_state(self._start)
        kernels.replay(state, self.board.array, np.array(self._history[:-1], np.int64))
        return state

    def describe(self, action: int) -> str:
        """Describe an action id in words, such as "grow line 14→20", legal now or not.

        No two ids have the same description. Raises ValueError for an id that the board lacks.
        """
        return describe_action(self.board, action)

    def position(self) -> Position:
        """Return everything on the table as plain Python values."""
        return read_position(self._array, self.board)

    def position_hash(self) -> int:
        """Return a 64-bit hash that equal positions share, for transposition tables.

        It covers board, rules, and which end of a line moved last (R11), and it is the same on
        every machine.
        """
        digest = hashlib.blake2b(self._array.tobytes(), digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the live state (GAME, (1,)) and the board (BOARD, (1,)), for kernels.

        Kernels trust their input: writing anything but a legal step through them breaks the game.
        """
        return self._array, self.board.array

    def record(self) -> Record:
        """Return the record of the game: its setup, its actions, and its result once it is over."""
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
        return Record(
            self.rules,
            self.board.identity,
            self.num_players,
            self.first_player,
            self.seed,
            tuple(self._history),
            result,
            None if self._start is None else read_position(self._start, self.board),
        )

    def save(self, path: str | Path) -> None:
        """Write the game as a JSON record, atomically. Raises OSError."""
        write_whole(path, self.record().to_json())

    def to_bytes(self) -> bytes:
        """Return the game in compact form, with version, rules, board fingerprint and checksum."""
        return self.record().to_bytes()

    def __reduce__(self) -> tuple[object, ...]:
        return Game.from_record, (self.record(), self.board)

    def clone(self) -> Game:
        """Return an independent copy."""
        copy = object.__new__(type(self))
        copy._begin(copy_state(self._array), self.rules, self.board, self.seed, self._start)
        copy._history = self._history.copy()
        return copy

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Game:
        return self.clone()

    def __repr__(self) -> str:
        if self.is_over:
            turn = f"over ({self.ending}), winner seat {self.ranking().index(0)}"
        else:
            turn = f"seat {self.current_player} to decide {self.phase.name}"
        return (
            f"<Bus, {self.num_players} players, {self.rules.name}, {self.board.name}: "
            f"round {self.round}, ply {len(self._history)}, points {self.points}, {turn}>"
        )
