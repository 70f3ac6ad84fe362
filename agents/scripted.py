"""The `random` and `greedy` agents: the compiled bots of `busenv.core.bots`."""

from __future__ import annotations

import numpy as np

from busenv import Board
from busenv.agents.base import Agent
from busenv.core import bots
from busenv.validation import check_games, check_seed


class _Scripted(Agent):
    """A bot of the core; subclasses set its kind."""

    kind: int

    def __init__(self, seed: int = 0) -> None:
        self._noise = np.zeros(1, np.uint64)
        self._work = bots.make_bot_workspace(0)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self._noise[0] = check_seed(seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self._choose(check_games(games, board), board)

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        actions = np.zeros(len(games), np.int64)
        if len(self._work.ids) != board.num_actions:
            self._work = bots.make_bot_workspace(board.num_actions)
        bots.bot_actions(games, board.array, self.kind, self._noise, self._work, actions)
        return actions


class RandomAgent(_Scripted):
    """Takes a legal action uniformly at random."""

    name, kind = "random", bots.RANDOM


class GreedyAgent(_Scripted):
    """Takes the action with the best next position (one step of lookahead)."""

    name, kind = "greedy", bots.GREEDY
