"""Agents that follow a fixed rule, compiled."""

from __future__ import annotations

import numpy as np

from agents.base import Agent
from busenv import Board
from busenv.core import bots


class RandomAgent(Agent):
    """Takes each legal action with the same chance."""

    name, kind = "random", bots.RANDOM

    def __init__(self, seed: int = 0) -> None:
        self._noise = np.array([seed], np.uint64)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        actions = np.zeros(len(games), np.int64)
        bots.bot_actions(games, board.array, self.kind, self._noise, actions)
        return actions


class GreedyAgent(RandomAgent):
    """Looks one step ahead and takes what leaves it best off at once (see busenv.core.bots)."""

    name, kind = "greedy", bots.GREEDY
