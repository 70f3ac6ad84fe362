"""Many games side by side, one decision of each in a call, in arrays that are made once."""

from __future__ import annotations

import _thread
import os
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

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

    ValueError says what is allowed instead.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int | Sequence[int] = 4,
        rules: str | Rules = "capstone-2024",
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
        self._rules = np.concatenate([as_rules(rules).record(n) for n in counts])
        self._kind = reward_kind(reward)
        self._reward = reward if callable(reward) else None
        self._bots = _bots(opponent, learner_seat, min(counts), num_games, first_game)
        self._same_step = same_step
        self._threads = threads
        self._first_game = first_game
        size, actions = kernels.observation_size(self.board.array), self.board.num_actions
        self.games = np.zeros(num_games, GAME)
        self.finals = np.zeros(num_games, GAME)
        self.seats = np.zeros(num_games, np.int64)
        self.masks = np.zeros((num_games, actions), np.bool_)
        self.rewards = np.zeros((num_games, MAX_PLAYERS), np.float32)
        self.over = np.zeros(num_games, np.bool_)
        self._rows = np.zeros((2, num_games, size), np.uint8)
        self._turn = np.zeros(1, np.int64)
        self._actions = np.zeros(num_games, np.int64)
        self._streams = np.zeros(num_games, np.uint64)
        self._episodes = np.zeros(num_games, np.int64)
        self._plies = np.zeros(num_games, np.int64)
        self._scenes = np.zeros((num_games, batch.scene_length(self.board.array)), np.uint8)
        self._painted = np.zeros(num_games, GAME)
        # Room for each thread: a bitset, a game to look ahead in, points and stones before a step.
        self._bits = np.zeros((threads, (actions + 63) // 64), np.uint64)
        self._ahead = np.zeros((threads, 1), GAME)
        self._before = np.zeros((threads, 2, MAX_PLAYERS), np.float64)
        # Games claimed in this step of each thread's part, a row each, and games done; 64 bytes
        # apart, since all threads write them. No step is open at first.
        self._claimed = np.full((threads, 8), num_games)
        self._finished = np.full(8, num_games)
        self._wakes: list[_thread.LockType] = []  # one for each thread; released to wake it
        self._failures: list[BaseException] = []  # of threads
        self._process = 0  # that has the threads: one that is forked has none

    @property
    def observations(self) -> np.ndarray:
        """What the deciding seats see: uint8, (N, size)."""
        return self._rows[self._turn[0]]

    def reset(self, seed: int) -> None:
        """Begin every game anew from a seed, 0 to 2**64 - 1; ValueError for another."""
        stream = np.uint64(check_seed(seed))
        self._close()
        batch.streams_of(stream, self._first_game, self._streams)
        self._episodes[:] = 0
        self._plies[:] = 0
        self.over[:] = False
        self.rewards[:] = 0
        self._turn[0] = 0
        batch.begin_all(
            self.games,
            self.board.array,
            self._rules,
            self._streams,
            self._episodes,
            self._plies,
            self._bots,
            self._scenes,
            self._painted,
            self.seats,
            self._rows[0],
            self.masks,
            self._bits[0],
            self._ahead[0],
        )

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
        if not self.games["players"][0]:
            raise ValueError("call reset(seed) before step(actions)")
        self._close()
        chosen = np.array(actions, np.int64)  # a copy: contiguous, and writable as kernels know it
        wrong = kernels.first_illegal(self.games, self.board.array, chosen)
        if wrong >= 0:
            raise illegal_action(self.games, wrong, self.board, int(actions[wrong]))
        before = self.games.copy() if self._reward else None
        if self._threads > 1:
            self._call_helpers()
        self._actions[:] = chosen
        batch.open_step(self._claimed, self._finished, self._turn)
        batch.advance(*self._shared(), *self._own(0))
        self._wait(len(self.games))
        if self._reward and before is not None:
            self._pay(before)

    def _call_helpers(self) -> None:
        """See that all threads wait for this step and for those that follow soon.

        No lock of Python's own is taken here, which Ctrl-C could leave taken.
        """
        if self._process != os.getpid():
            shared, wakes = self._shared(), [_thread.allocate_lock() for _ in self._bits[1:]]
            batch.help_on(shared, self._own(0))  # compiled here, not beside the caller
            ended: list[bool] = []
            weakref.finalize(self, _dismiss, wakes, ended)
            for thread, wake in enumerate(wakes, 1):
                wake.acquire()
                arguments = wake, ended, self._failures, shared, self._own(thread)
                _thread.start_new_thread(_help, arguments)
            self._wakes, self._process = wakes, os.getpid()
        self._tell_failures()
        for wake in self._wakes:
            if wake.locked():
                wake.release()

    def _tell_failures(self) -> None:
        if self._failures:
            raise self._failures.pop()

    def _close(self) -> None:
        """Wait for threads that are still at a step, since it was interrupted."""
        batch.close_step(self._claimed, self._finished, len(self.games))
        self._wait(len(self.games))

    def _wait(self, number: int) -> None:
        """Wait until so many games of a step are done. Raises what a thread has failed with."""
        while not batch.wait_for(self._finished, number):
            self._tell_failures()
            time.sleep(0)  # a thread may need this core

    def _shared(self) -> tuple[Any, ...]:
        """What all threads share of what `batch.advance` takes."""
        return (
            self.games,
            self.board.array,
            self._rules,
            self._streams,
            self._episodes,
            self._plies,
            self._bots,
            self._scenes,
            self._painted,
            self._kind,
            self._same_step,
            self._actions,
            self.seats,
            self.rewards,
            self.over,
            self._rows,
            self._turn,
            self.masks,
            self.finals,
            self._claimed,
            self._finished,
        )

    def _own(self, thread: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
        """A thread's number and its own room, for `batch.advance`."""
        return thread, self._bits[thread], self._ahead[thread], self._before[thread]

    def _pay(self, before: np.ndarray) -> None:
        """Have the caller's function pay; games that began anew pay nothing."""
        after = self.games.copy()
        after[self.over] = self.finals[self.over]
        assert self._reward is not None
        self._reward(before, after, self.rewards)
        self.rewards[before["phase"] == OVER] = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_wakes": [], "_failures": [], "_process": 0}


def _help(
    wake: _thread.LockType,
    ended: list[bool],
    failures: list[BaseException],
    shared: tuple[Any, ...],
    own: tuple[Any, ...],
) -> None:
    """What a thread does: sleep until it is woken, then help until no step comes for a while."""
    while True:
        wake.acquire()
        if ended:
            return
        try:
            batch.help_on(shared, own)
        except BaseException as error:
            failures.append(error)


def _dismiss(wakes: list[_thread.LockType], ended: list[bool]) -> None:
    """End the threads of a batch that is no more."""
    ended.append(True)
    for wake in wakes:
        if wake.locked():
            wake.release()


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
