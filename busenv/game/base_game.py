"""A game being played by the rules: deciding, and taking back."""

from __future__ import annotations

import hashlib
import operator
import secrets
from pathlib import Path
from typing import TypeVar

import numpy as np

from busenv.core import bots, kernels
from busenv.core.state import GAME, OVER
from busenv.game.actions import Phase, describe_action
from busenv.game.board import Board, as_board
from busenv.game.initial_state import new_state, state_of
from busenv.game.position import ENDINGS, Position, read_position
from busenv.game.rules import Rules, as_rules, check_players
from busenv.validation import check_seed, check_whole, illegal_action

Self = TypeVar("Self", bound="BaseGame")


class BaseGame:
    """Whose turn it is, what is legal, what has happened: a `busenv.Game` but for its records and
    pictures."""

    __slots__ = ("_array", "_bits", "_history", "_placed", "_rules", "_seed", "_state", "board")

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
        first = np.zeros(1, np.int64)
        kernels.first_players(np.uint64(seed), players, first)
        if first_player is not None:
            first[0] = check_whole("first_player", first_player, 0, players - 1)
        self._begin(new_state(board, rules, players, first), rules, board, seed)

    @classmethod
    def from_position(
        cls: type[Self],
        position: Position,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
    ) -> Self:
        """A game that plays on from a position, which `dataclasses.replace` makes of another.

        >>> import busenv, dataclasses
        >>> position = busenv.Game(3, first_player=1).position()
        >>> nine_to_five = dataclasses.replace(position, clock=busenv.Building.OFFICE)
        >>> busenv.Game.from_position(nine_to_five).position().clock
        1
        >>> busenv.Game.from_position(dataclasses.replace(position, time_stones_left=2))
        Traceback (most recent call last):
        busenv.errors.PositionError: position: time_stones_left is 2; and 0 are taken; 4 in all

        Its history begins there. Raises PositionError when the position cannot be, naming the field
        and what contradicts it; rules and board as for a new game.
        """
        rules, board = as_rules(rules), as_board(board)
        game = object.__new__(cls)
        state = state_of(position, board, rules)
        game._begin(state, rules, board, seed=0, placed=copy_state(state))
        return game

    @classmethod
    def from_state(cls: type[Self], state: np.ndarray, rules: Rules, board: Board) -> Self:
        """A game that plays on from a copy of a state that is known to be one of these rules and
        this board, such as a batch's: GAME, (1,). Its history begins there."""
        game = object.__new__(cls)
        game._begin(copy_state(state), rules, board, seed=0, placed=copy_state(state))
        return game

    def _begin(
        self,
        state: np.ndarray,
        rules: Rules,
        board: Board,
        seed: int,
        placed: np.ndarray | None = None,
    ) -> None:
        """placed: the state that it begins in, never written to; None for the usual set-up."""
        self._array, self._state, self._placed = state, state[0], placed
        self._rules, self._seed, self.board = rules, seed, board
        self._bits = np.zeros((board.num_actions + 63) // 64, np.uint64)
        self._history: list[int] = []

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
        """The seed that the first player was drawn from, given or not; 0 after a position."""
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
    def begun_in_position(self) -> bool:
        """Whether the game began in a position (`Game.from_position`), not in the set-up."""
        return self._placed is not None

    @property
    def history(self) -> list[int]:
        """The action ids so far (a copy)."""
        return self._history.copy()

    @property
    def last_decision(self) -> tuple[int, int] | None:
        """The seat that decided last and the action id that it took; None before the first."""
        if not self._history:
            return None
        return int(self._before_last()["seat"][0]), self._history[-1]

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
        known = 0 <= action < self.board.num_actions
        if not (known and kernels.try_step(self._array, self.board.array, action)):
            raise illegal_action(self._array, 0, self.board, action)
        self._history.append(action)

    def run_bots(self, kinds: np.ndarray, noise: np.ndarray) -> None:
        """Let compiled bots decide until a seat without one is to, or the game is over.

        kinds, noise: as for `busenv.core.bots.run_bots`; noise moves on.
        """
        taken = np.empty(64, np.int64)
        count = len(taken)
        while count == len(taken):
            count = bots.run_bots(self._array, self.board.array, kinds, noise, taken)
            self._history += taken[:count].tolist()

    def snapshot(self) -> tuple[np.ndarray, int]:
        """Return a copy of the state and the number of decisions taken, for `restore`."""
        return copy_state(self._array), len(self._history)

    def restore(self, snapshot: tuple[np.ndarray, int]) -> None:
        """Return to an earlier snapshot of this game."""
        state, decisions = snapshot
        self._array.view(np.uint8)[:] = state.view(np.uint8)
        del self._history[decisions:]

    def undo(self) -> int:
        """Take back the last decision, and what followed from it by the rules; its action id.

        Raises ValueError when there is none: nothing goes back before the game's start, or before
        the position that it began in.
        """
        if not self._history:
            raise ValueError("nothing to undo: no decision has been taken")
        self._array.view(np.uint8)[:] = self._before_last().view(np.uint8)
        return self._history.pop()

    def _before_last(self) -> np.ndarray:
        """The state in which the last decision was taken."""
        if self._placed is None:
            first = np.array([self.first_player])
            state = new_state(self.board, self._rules, self.num_players, first)
        else:
            state = copy_state(self._placed)
        kernels.replay(state, self.board.array, np.array(self._history[:-1], np.int64))
        return state

    def describe(self, action: int) -> str:
        """An action id in the game's words, such as "grow line 14→20"; legal now or not.

        No two ids have the same words. Raises ValueError when the board has no such id.
        """
        return describe_action(self.board, operator.index(action))

    def position(self) -> Position:
        """Everything on the table as plain Python values, for people, drawings and tests."""
        return read_position(self._array, self.board)

    def position_hash(self) -> int:
        """A 64-bit number that equal positions share, however they were reached.

        Which end of a line moved last is part of a position (R11). The number depends on board and
        rules too, and is the same on every machine: fit for tables of
        positions that a search has seen (transposition tables).
        """
        return int.from_bytes(
            hashlib.blake2b(self._array.tobytes(), digest_size=8).digest(), "little"
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The live state (shape (1,), GAME) and the board (shape (1,), BOARD), for kernels.

        Kernels trust their input: writing anything but a legal step through them breaks the game.
        """
        return self._array, self.board.array

    def clone(self: Self) -> Self:
        """An independent copy."""
        copy = object.__new__(type(self))
        copy._rules, copy._seed, copy.board = self._rules, self._seed, self.board
        copy._placed = self._placed
        copy._array = copy_state(self._array)
        copy._state = copy._array[0]
        copy._bits = self._bits.copy()
        copy._history = self._history.copy()
        return copy

    __copy__ = clone

    def __deepcopy__(self: Self, memo: object) -> Self:
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


def copy_state(state: np.ndarray) -> np.ndarray:
    """A copy of a GAME array of one; of its bytes, since numpy copies records, and even looks at
    them in another type, slowly."""
    return np.ndarray((1,), GAME, bytearray(state.tobytes()))
