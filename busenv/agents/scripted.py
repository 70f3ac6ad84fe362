"""The `random` and `greedy` agents, compiled bots of the core, and the `planner`.

The planner looks one decision ahead by the tuned evaluation of positions.
"""

from __future__ import annotations

import numpy as np

from busenv import Board
from busenv.agents.base import CompiledAgent
from busenv.core import bots
from busenv.core.bits import GOLDEN, below, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import legal_ids
from busenv.core.rules.step import step
from busenv.core.state import Phase
from busenv.heuristics.evaluation import (
    WEIGHTS,
    evaluate,
    make_evaluation_workspace,
    relative_value,
)

NOISE = 0.05  # points of uniform noise on each action, so that games differ


@kernel
def _best_set_down(b, weights, work):
    """Return the best value of setting down the passenger picked up in `work.ahead[0]`."""
    positions, actions, evaluation = work.ahead, work.next_actions, work.evaluation
    driving, arrived = positions[0], positions[1]
    seat, best = driving.seat, -1e9
    for k in range(legal_ids(driving, b, work.bits, actions)):
        positions[1] = driving
        step(arrived, b, actions[k])
        evaluate(arrived, b, weights, evaluation)
        best = max(best, relative_value(arrived, weights, evaluation.values, seat))
    return best


@kernel
def planned_action(g, b, weights, word, work):
    """Return the best action; picking up and setting down count as one decision.

    word: uint64, the random word from which the noise on the values is drawn.
    """
    positions, actions, evaluation = work.ahead, work.actions, work.evaluation
    seat, best, best_action, ahead = g.seat, -1e9, np.int64(0), positions[0]
    for k in range(legal_ids(g, b, work.bits, actions)):
        positions[0] = g
        step(ahead, b, actions[k])
        if ahead.phase == Phase.SET_DOWN:
            value = _best_set_down(b, weights, work)
        else:
            evaluate(ahead, b, weights, evaluation)
            value = relative_value(ahead, weights, evaluation.values, seat)
        word += GOLDEN
        value += NOISE * 1e-6 * np.float64(below(mix(word), 1000000))
        if value > best:
            best, best_action = value, actions[k]
    return best_action


@kernel
def _planned_actions(games, board, weights, rng_state, work, actions):
    """Write an action for every game that is not over. rng_state: uint64, (1,), a random stream."""
    for i in range(games.shape[0]):
        rng_state[0] += GOLDEN
        if games[i].phase != Phase.OVER:
            actions[i] = planned_action(games[i], board[0], weights, mix(rng_state[0]), work)


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


class PlannerAgent(CompiledAgent):
    """Takes the action with the highest value of the seat relative to the others."""

    def __init__(self, seed: int = 0) -> None:
        self._work = make_evaluation_workspace(0)
        super().__init__("planner", seed)

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        actions = np.zeros(len(games), np.int64)
        if len(self._work.actions) != board.num_actions:
            self._work = make_evaluation_workspace(board.num_actions)
        _planned_actions(games, board.array, WEIGHTS, self._rng_state, self._work, actions)
        return actions
