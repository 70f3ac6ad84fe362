"""A scripted player with a plan: one decision ahead, by a tuned outlook on the position."""

from __future__ import annotations

import numpy as np
from busenv.agents.base import Agent
from busenv.agents.planner.outlook import WEIGHTS, appraise, lead, make_room

from busenv import Board
from busenv.checks import check_games, check_seed
from busenv.core.bits import GOLDEN, ONE, ZERO, below, lowest, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import legal_bits
from busenv.core.rules.step import step
from busenv.core.state import OVER, SET_DOWN

NOISE = 0.05  # points: among actions this close it draws, so that games differ


@kernel
def _after_set_down(b, weights, room):
    """What the best end of the drive that has begun in `room.ahead[0]` is worth."""
    driving, arrived = room.ahead[0], room.ahead[1]
    seat, best, bits = driving.seat, -1e9, room.bits[1]
    legal_bits(driving, b, bits)
    for word in range(bits.shape[0]):
        rest = bits[word]
        while rest != ZERO:
            room.ahead[1] = driving
            step(arrived, b, np.int64(64 * word) + np.int64(lowest(rest)))
            rest &= rest - ONE
            appraise(arrived, b, weights, room)
            best = max(best, lead(arrived, weights, room.worth, seat))
    return best


@kernel
def planned_action(g, b, weights, noise, room):
    """The action that leads to the best position; picking up and setting down count as one."""
    seat, best, found = g.seat, -1e9, np.int64(0)
    ahead, bits = room.ahead[0], room.bits[0]
    legal_bits(g, b, bits)
    for word in range(bits.shape[0]):
        rest = bits[word]
        while rest != ZERO:
            action = np.int64(64 * word) + np.int64(lowest(rest))
            rest &= rest - ONE
            room.ahead[0] = g
            step(ahead, b, action)
            if ahead.phase == SET_DOWN:
                value = _after_set_down(b, weights, room)
            else:
                appraise(ahead, b, weights, room)
                value = lead(ahead, weights, room.worth, seat)
            noise += GOLDEN
            value += NOISE * 1e-6 * np.float64(below(mix(noise), 1000000))
            if value > best:
                best, found = value, action
    return found


@kernel
def _planned_actions(games, board, weights, noise, room, actions):
    """An action for every game that is not over; `noise` (uint64, one) moves on."""
    for i in range(games.shape[0]):
        noise[0] += GOLDEN
        if games[i].phase != OVER:
            actions[i] = planned_action(games[i], board[0], weights, mix(noise[0]), room)


class PlannerAgent(Agent):
    """Takes what leaves its company best off: line, buses, sites, the coming drive, rivals."""

    name = "planner"

    def __init__(self, seed: int = 0, weights: np.ndarray = WEIGHTS) -> None:
        self._weights = weights
        self._noise = np.zeros(1, np.uint64)
        self.reset(seed)

    def reset(self, seed: int) -> None:
        self._noise[0] = check_seed(seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        games = check_games(games, board)
        room = make_room(board.num_actions)
        actions = np.zeros(len(games), np.int64)
        _planned_actions(games, board.array, self._weights, self._noise, room, actions)
        return actions
