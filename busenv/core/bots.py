"""Bots that play inside compiled loops: uniformly random, and greedy by one step of lookahead.

They stand in the core because batches of games let them play seats within a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, ONE, ZERO, below, lowest, mix, popcount
from busenv.core.jit import exclusive, kernel
from busenv.core.rules.legal import legal_ids, random_action
from busenv.core.rules.resolve import power_of
from busenv.core.rules.score import points_of
from busenv.core.rules.step import step
from busenv.core.state import (
    ACT_BUILDINGS,
    ACT_BUSES,
    ACT_CLOCK,
    ACT_LINES,
    ACT_PASSENGERS,
    ACT_START,
    ACT_VROOM,
    GAME,
    OVER,
    SELECT_ACTIONS,
)

RANDOM, GREEDY = 1, 2  # kinds of bots; 0 is a seat that is not a bot's


@kernel
def _served(g, b, seat, hour):
    """Passengers that a line could bring to buildings at an hour, buses aside (R16, R17)."""
    kind = (g.clock + hour) % 3
    waiting = vacant = np.int64(0)
    rest = g.reach[seat] & (g.peopled | g.built[kind])
    while rest != ZERO:
        i = lowest(rest)
        people = np.int64(g.passengers[i])
        homes = np.int64(popcount(g.type_sites[kind] & b.intersection_sites[i]))
        waiting += max(people - homes, 0)
        vacant += max(homes - people, 0)
        rest &= rest - ONE
    return min(waiting, vacant), waiting, vacant


@kernel
def _outlook(g, b, seat):
    """What a seat's company is worth: points, and what its line and buses may deliver soon."""
    worth = np.float64(points_of(g, seat))
    buses = np.int64(g.buses[seat])
    soon = 0 if g.action == ACT_VROOM else 1  # the clock moves on before anybody drives
    for turn, weight in ((0, 0.30), (1, 0.20), (2, 0.10)):
        served, waiting, vacant = _served(g, b, seat, soon + turn)
        worth += weight * min(served, buses) + 0.1 * weight * (min(waiting, 6) + min(vacant, 6))
    return worth + 0.02 * np.float64(popcount(g.reach[seat])) + 0.12 * np.float64(buses)


@kernel
def _promise(g, b, seat):
    """What a seat's markers on the action board, and those in its hand, promise."""
    worth = 0.11 * g.markers[seat]
    # The later in its hand a bus is bought, the fewer times it drives.
    worth += 0.045 * g.markers[seat] * _owned(g, ACT_BUSES, seat) * (g.buses[seat] < g.bus_limit)
    worth += 0.10 * _owned(g, ACT_CLOCK, seat) + 0.12 * _owned(g, ACT_START, seat)
    for action, each in ((ACT_LINES, 0.16), (ACT_PASSENGERS, 0.06), (ACT_BUILDINGS, 0.16)):
        for space in range(g.taken[action]):
            if g.spaces[action, space] == seat:
                worth += each * power_of(g, action, space)
    left, _, _ = _served(g, b, seat, 1)
    for space in range(g.taken[ACT_VROOM]):
        owner = g.spaces[ACT_VROOM, space]
        if owner == seat:
            driven = min(left, np.int64(g.buses[seat]))
            worth += 0.75 * driven
            left -= driven
        elif g.reach[owner] & g.reach[seat] != ZERO:
            left = max(left - np.int64(g.buses[owner]), 0)
    return worth


@kernel
def _owned(g, action, seat):
    return np.float64(g.taken[action] > 0 and g.spaces[action, 0] == seat)


@kernel
def _value(g, b, seat):
    """How good a position is for a seat: its outlook less the best of the others'."""
    mine = _outlook(g, b, seat)
    if g.phase == SELECT_ACTIONS:
        mine += _promise(g, b, seat)
    best = -100.0
    for other in range(g.players):
        if other != seat:
            best = max(best, _outlook(g, b, other))
    return mine - 0.3 * best


class BotWorkspace(NamedTuple):
    """Where one thread works, so that nothing is allocated on the way.

    bits: uint64, (words,), legal actions, and ids: int64, (num_actions,), the same as a list.
    ahead: GAME, (1,), a position that a bot looks ahead to.
    """

    bits: np.ndarray
    ids: np.ndarray
    ahead: np.ndarray


def make_bot_workspace(actions: int) -> BotWorkspace:
    """A workspace for boards with a number of action ids."""
    return BotWorkspace(
        np.zeros((actions + 63) // 64, np.uint64),
        np.zeros(actions, np.int64),
        np.zeros(1, GAME),
    )


@kernel
def greedy_action(g, b, work, noise):
    """The action that leads to the best position at once; ties fall by the noise."""
    ids, ahead, seat = work.ids, work.ahead, g.seat
    best, found = -1e9, np.int64(0)
    for k in range(legal_ids(g, b, work.bits, ids)):
        noise += GOLDEN
        ahead[0] = g
        step(ahead[0], b, ids[k])
        value = _value(ahead[0], b, seat) + 1e-6 * np.float64(below(mix(noise), 1000))
        if value > best:
            best, found = value, ids[k]
    return found


@kernel
def bot_actions(games, board, kind, noise, work, actions):
    """Let a bot choose for every game that is not over; `noise` (uint64, shape (1,)) moves on."""
    for i in range(games.shape[0]):
        noise[0] += GOLDEN
        if games[i].phase != OVER:
            if kind == RANDOM:
                actions[i] = random_action(games[i], board[0], mix(noise[0]))
            else:
                actions[i] = greedy_action(games[i], board[0], work, mix(noise[0]))


@exclusive
def run_bots(game, board, kinds, noise, taken):
    """Let bots decide in one game until a seat without one is to, or the game is over.

    kinds: uint8, (5,), by seat, 0: none. noise: uint64, (5,), by seat, moves on as `bot_actions`
    has it. taken: int64, what they decide is written to; returns how many. They stop when it is
    full.
    """
    g, b = game[0], board[0]
    actions = np.int64(b.actions)
    work = BotWorkspace(  # made here, since to be handed so many arrays takes longer
        np.zeros((actions + 63) // 64, np.uint64),
        np.zeros(actions, np.int64),
        np.zeros(1, GAME),
    )
    count = 0
    while count < taken.shape[0] and g.phase != OVER and kinds[g.seat] != 0:
        seat = g.seat
        noise[seat] += GOLDEN
        if kinds[seat] == RANDOM:
            action = random_action(g, b, mix(noise[seat]))
        else:
            action = greedy_action(g, b, work, mix(noise[seat]))
        step(g, b, action)
        taken[count] = action
        count += 1
    return count
