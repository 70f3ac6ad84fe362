"""The `random` and `greedy` agents: the compiled bots of `busenv.core.bots`."""

from __future__ import annotations

import numpy as np

from busenv import Board
from busenv.agents.base import CompiledAgent
from busenv.core import bots


class _Scripted(CompiledAgent):
    """A bot of the core; subclasses set its kind."""

    kind: int

    def __init__(self, seed: int = 0) -> None:
        self._work = bots.make_bot_workspace(0)
        super().__init__(self.name, seed)

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        actions = np.zeros(len(games), np.int64)
        if len(self._work.ids) != board.num_actions:
            self._work = bots.make_bot_workspace(board.num_actions)
        bots.bot_actions(games, board.array, self.kind, self._rng_state, self._work, actions)
        return actions


class RandomAgent(_Scripted):
    """Takes a legal action uniformly at random."""

    name, kind = "random", bots.RANDOM


class GreedyAgent(_Scripted):
    """Takes the action with the best next position (one step of lookahead)."""

    name, kind = "greedy", bots.GREEDY
