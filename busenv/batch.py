"""Many games side by side, one decision of each in a call, in arrays that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from busenv.board import Board, as_board
from busenv.core import batch
from busenv.core.layout import GAME, MAX_PLAYERS
from busenv.core.playout import observation_size
from busenv.game import IllegalActionError, check_seed
from busenv.rewards import REWARDS, check_reward
from busenv.rules import Rules, as_rules, check_players


class Batch:
    """N games at their decisions. The arrays below are overwritten by each step.

    games: GAME, (N,), the states. board: the busenv.Board.
    seats: int64, (N,), who decides. masks: bool, (N, num_actions), what is legal; all true where a
        game is over (there the next action is ignored and a new game begins).
    observations: uint8, (N, size), as the deciding seats see it. Two buffers take turns, so what
        was seen before a step is still there after it (and gone after the next).
    rewards: float32, (N, 5), of the last decision, by seat. over: bool, (N,), whether it ended the
        game. finals: GAME, (N,), the final state of the last game that ended in each place.

    num_players: 3, 4 or 5, or several of them to draw from for each game.
    reward: a name in `busenv.REWARDS`.
    same_step: begin a new game in the step that ends one, not in the one after.
    first_game: game i of the batch is drawn as game `first_game + i` of the seed, whatever N.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int | Sequence[int] = 4,
        rules: str | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str = "win",
        same_step: bool = False,
        first_game: int = 0,
    ) -> None:
        if num_games < 1:
            raise ValueError(f"num_games is {num_games!r}; allowed: 1 or more")
        counts = [num_players] if isinstance(num_players, int) else list(num_players)
        if not counts:
            raise ValueError("num_players is empty; allowed: 3, 4 or 5, or several of them")
        self.board = as_board(board)
        self._rules = np.concatenate([as_rules(rules).record(check_players(n)) for n in counts])
        self._kind = REWARDS[check_reward(reward)]
        self._same_step = same_step
        self._first_game = first_game
        size = observation_size(self.board.array)
        actions = self.board.num_actions
        self.games = np.zeros(num_games, GAME)
        self.finals = np.zeros(num_games, GAME)
        self.seats = np.zeros(num_games, np.int64)
        self.masks = np.zeros((num_games, actions), np.bool_)
        self.rewards = np.zeros((num_games, MAX_PLAYERS), np.float32)
        self.over = np.zeros(num_games, np.bool_)
        self._rows = np.zeros((2, num_games, size), np.uint8)
        self._scenes = np.zeros((num_games, batch.scene_length(self.board.array)), np.uint8)
        self._painted = np.zeros((num_games, 2), np.int64)
        self._turn = 0
        self._bits = np.zeros((actions + 63) // 64, np.uint64)
        self._streams = np.zeros(num_games, np.uint64)
        self._episodes = np.zeros(num_games, np.int64)

    @property
    def observations(self) -> np.ndarray:
        """What the deciding seats see: uint8, (N, size)."""
        return self._rows[self._turn]

    def reset(self, seed: int) -> None:
        """Begin every game anew from a seed."""
        batch.streams_of(np.uint64(check_seed(seed)), self._first_game, self._streams)
        self._episodes[:] = 0
        self._turn = 0
        batch.begin_all(
            self.games,
            self.board.array,
            self._rules,
            self._streams,
            self._episodes,
            self._scenes,
            self._painted,
            self.seats,
            self._rows[0],
            self.masks,
            self._bits,
        )

    def step(self, actions: np.ndarray) -> None:
        """Take one decision in every game: whole numbers, (N,).

        Raises IllegalActionError, nothing changed, naming the first game whose action is illegal;
        ValueError when there is not one whole number for each game.
        """
        actions = np.asarray(actions)
        if actions.shape != self.seats.shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions have shape {actions.shape} and dtype {actions.dtype}; "
                f"allowed: whole numbers of shape {self.seats.shape}"
            )
        actions = actions.astype(np.int64, copy=False)
        wrong = batch.first_illegal(self.games, self.board.array, actions)
        if wrong >= 0:
            legal = np.flatnonzero(self.masks[wrong]).tolist()
            raise IllegalActionError(
                f"action {actions[wrong]} of game {wrong} is illegal for seat "
                f"{self.seats[wrong]}; legal: {legal}"
            )
        self._turn = 1 - self._turn
        batch.advance(
            self.games,
            self.board.array,
            self._rules,
            self._streams,
            self._episodes,
            self._scenes,
            self._painted,
            self._kind,
            self._same_step,
            actions,
            self.seats,
            self.rewards,
            self.over,
            self._rows[self._turn],
            self.masks,
            self.finals,
            self._bits,
        )
