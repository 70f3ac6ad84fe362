"""Many games side by side, one decision of each in a call, in arrays that are made once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from busenv.batch_threads import Helpers
from busenv.board import Board, as_board
from busenv.checks import check_seed, check_whole, illegal_action
from busenv.core import batch, bots, kernels
from busenv.core.state import GAME, MAX_PLAYERS, OVER
from busenv.rewards import Reward, reward_kind
from busenv.rules import Rules, as_rules, player_counts

OPPONENTS = {"random": bots.RANDOM, "greedy": bots.GREEDY}


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
    reward: a name in `busenv.rewards.REWARDS`, or a function (see there).
    opponent: None, or "random" or "greedy": then one seat of each game is a learner's and the
        others are played by that compiled bot inside of each step.
    learner_seat: with an opponent, the learner's seat; by default game i's is seat i mod 3 (or 4,
        or 5, the smallest number of players).
    same_step: begin a new game in the step that ends one, not in the one after.
    threads: how many share the work of a step. Results do not depend on it.
    first_game: game i of the batch is drawn as game `first_game + i` of the seed, whatever N.

    ValueError says what is allowed instead. A batch is for one Python thread at a time: `step` and
    `reset` raise RuntimeError, nothing changed, while another thread is in one of them.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int | Sequence[int] = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        opponent: str | None = None,
        learner_seat: int | None = None,
        same_step: bool = False,
        threads: int = 1,
        first_game: int = 0,
    ) -> None:
        num_games = check_whole("num_games", num_games, 1)
        threads = check_whole("threads", threads, 1, num_games)
        first_game = check_whole("first_game", first_game, 0)
        counts = player_counts(num_players)
        self.board = as_board(board)
        self._first_game = first_game
        kind = reward_kind(reward)
        self._reward = reward if callable(reward) else None
        size, actions = kernels.observation_size(self.board.array), self.board.num_actions
        self._arrays = batch.Arrays(
            games=np.zeros(num_games, GAME),
            board=self.board.array,
            rules=np.concatenate([as_rules(rules).record(n) for n in counts]),
            streams=np.zeros(num_games, np.uint64),
            episodes=np.zeros(num_games, np.int64),
            plies=np.zeros(num_games, np.int64),
            bots=_bots(opponent, learner_seat, min(counts), num_games, first_game),
            scenes=np.zeros((num_games, batch.scene_length(self.board.array)), np.uint8),
            painted=np.zeros(num_games, GAME),
            kind=kind,
            same_step=same_step,
            actions=np.zeros(num_games, np.int64),
            seats=np.zeros(num_games, np.int64),
            rewards=np.zeros((num_games, MAX_PLAYERS), np.float32),
            over=np.zeros(num_games, np.bool_),
            rows=np.zeros((2, num_games, size), np.uint8),
            turn=np.zeros(1, np.int64),
            masks=np.zeros((num_games, actions), np.bool_),
            finals=np.zeros(num_games, GAME),
        )
        self.games, self.finals = self._arrays.games, self._arrays.finals
        self.seats, self.masks = self._arrays.seats, self._arrays.masks
        self.rewards, self.over = self._arrays.rewards, self._arrays.over
        self._helpers = Helpers(self._arrays, threads)

    @property
    def observations(self) -> np.ndarray:
        """What the deciding seats see: uint8, (N, size)."""
        return self._arrays.rows[self._arrays.turn[0]]

    def reset(self, seed: int) -> None:
        """Begin every game anew from a seed, 0 to 2**64 - 1; ValueError for another."""
        stream, arrays = np.uint64(check_seed(seed)), self._arrays
        with self._helpers.alone():
            self._helpers.close()
            batch.streams_of(stream, self._first_game, arrays.streams)
            arrays.episodes[:] = 0
            arrays.plies[:] = 0
            self.over[:] = False
            self.rewards[:] = 0
            arrays.turn[0] = 0
            batch.begin_all(arrays, self._helpers.workspace)

    def step(self, actions: np.ndarray) -> None:
        """Take one decision in every game: whole numbers, (N,).

        Raises IllegalActionError, nothing changed, naming the first game whose action is illegal;
        ValueError when there is not one whole number for each game. A step that is interrupted may
        have been taken in some games only; begin anew with `reset` then.
        """
        actions = np.asarray(actions)
        if actions.shape != self.seats.shape or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions have shape {actions.shape} and dtype {actions.dtype}; "
                f"allowed: whole numbers of shape {self.seats.shape}"
            )
        with self._helpers.alone():
            self._step(actions)

    def _step(self, actions: np.ndarray) -> None:
        if not self.games["players"][0]:
            raise ValueError("call reset(seed) before step(actions)")
        self._helpers.close()
        chosen = np.array(actions, np.int64)  # a copy: contiguous, and writable as kernels know it
        wrong = kernels.first_illegal(self.games, self.board.array, chosen)
        if wrong >= 0:
            raise illegal_action(self.games, wrong, self.board, int(actions[wrong]))
        before = self.games.copy() if self._reward else None
        self._helpers.call()
        self._arrays.actions[:] = chosen
        self._helpers.step()
        if self._reward and before is not None:
            self._pay(self._reward, before)

    def _pay(self, reward: Reward, before: np.ndarray) -> None:
        """Have the caller's function pay; games that began anew pay nothing."""
        after = self.games.copy()
        after[self.over] = self.finals[self.over]
        reward(before, after, self.rewards)
        self.rewards[before["phase"] == OVER] = 0


def _bots(
    opponent: str | None, learner_seat: int | None, players: int, num_games: int, first_game: int
) -> np.ndarray:
    """Kind of bot at each seat of each game: uint8, (N, 5)."""
    if opponent is None:
        if learner_seat is not None:
            raise ValueError("learner_seat goes with an opponent")
        return np.zeros((num_games, MAX_PLAYERS), np.uint8)
    if not isinstance(opponent, str) or opponent not in OPPONENTS:
        raise ValueError(f"unknown opponent {opponent!r}; allowed: None or one of {[*OPPONENTS]}")
    if learner_seat is not None:
        learner_seat = check_whole("learner_seat", learner_seat, 0, players - 1)
    kinds = np.full((num_games, MAX_PLAYERS), OPPONENTS[opponent], np.uint8)
    games = np.arange(num_games)
    kinds[games, (games + first_game) % players if learner_seat is None else learner_seat] = 0
    return kinds
