"""Bots for compiled loops: uniformly random, and greedy by one step of lookahead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, ONE, ZERO, below, lowest, mix, popcount
from busenv.core.jit import gil_kernel, kernel
from busenv.core.rules.legal import legal_ids, random_action
from busenv.core.rules.resolve import power_of
from busenv.core.rules.score import points_of
from busenv.core.rules.step import step
from busenv.core.state import GAME, BoardAction, Phase

RANDOM, GREEDY = 1, 2  # kinds of bots; 0 for a seat without a bot


@kernel
def _deliverable(g, b, seat, steps):
    """Passengers that a line could deliver a number of clock steps from now (R17).

    The count ignores the number of buses. Also returns the waiting passengers and the free
    buildings along the line (R16).
    """
    kind = (g.clock + steps) % 3
    waiting = vacant = np.int64(0)
    rest = g.reach[seat] & (g.occupied | g.built[kind])
    while rest != ZERO:
        i = lowest(rest)
        passengers = np.int64(g.passengers[i])
        buildings = np.int64(popcount(g.type_sites[kind] & b.intersection_sites[i]))
        waiting += max(passengers - buildings, 0)
        vacant += max(buildings - passengers, 0)
        rest &= rest - ONE
    return min(waiting, vacant), waiting, vacant


@kernel
def _seat_value(g, b, seat):
    """Value of a seat alone: points, and what its line and buses may deliver soon."""
    value = np.float64(points_of(g, seat))
    buses = np.int64(g.buses[seat])
    # The clock advances before the next Vrrooomm!.
    next_drive = 0 if g.action == BoardAction.VRROOOMM else 1
    for later, weight in ((0, 0.30), (1, 0.20), (2, 0.10)):
        served, waiting, vacant = _deliverable(g, b, seat, next_drive + later)
        value += weight * min(served, buses) + 0.1 * weight * (min(waiting, 6) + min(vacant, 6))
    return value + 0.02 * np.float64(popcount(g.reach[seat])) + 0.12 * np.float64(buses)


@kernel
def _marker_value(g, b, seat):
    """Value of a seat's action markers on the board and in hand."""
    value = 0.11 * g.markers[seat]
    # A bus drives once more for each marker left, roughly.
    new_bus = _owns(g, BoardAction.BUSES, seat) * (g.buses[seat] < g.bus_limit)
    value += 0.045 * g.markers[seat] * new_bus
    clock, start = _owns(g, BoardAction.CLOCK, seat), _owns(g, BoardAction.STARTING_PLAYER, seat)
    value += 0.10 * clock + 0.12 * start
    for action, each in (
        (BoardAction.LINE_EXPANSION, 0.16),
        (BoardAction.PASSENGERS, 0.06),
        (BoardAction.BUILDINGS, 0.16),
    ):
        for space in range(g.taken[action]):
            if g.spaces[action, space] == seat:
                value += each * power_of(g, action, space)
    left, _, _ = _deliverable(g, b, seat, 1)
    for space in range(g.taken[BoardAction.VRROOOMM]):
        owner = g.spaces[BoardAction.VRROOOMM, space]
        if owner == seat:
            driven = min(left, np.int64(g.buses[seat]))
            value += 0.75 * driven
            left -= driven
        elif g.reach[owner] & g.reach[seat] != ZERO:
            left = max(left - np.int64(g.buses[owner]), 0)
    return value


@kernel
def _owns(g, action, seat):
    return np.float64(g.taken[action] > 0 and g.spaces[action, 0] == seat)


@kernel
def _position_value(g, b, seat):
    """Heuristic value of a position for a seat.

    Its own value minus 0.3 times that of the best opponent.
    """
    mine = _seat_value(g, b, seat)
    if g.phase == Phase.SELECT_ACTIONS:
        mine += _marker_value(g, b, seat)
    best = -100.0
    for other in range(g.players):
        if other != seat:
            best = max(best, _seat_value(g, b, other))
    return mine - 0.3 * best


class BotWorkspace(NamedTuple):
    """Arrays in which the bots of one thread work, so that a decision allocates nothing.

    bits: uint64, (words,), legal actions as a bitset. ids: int64, (num_actions,), as a list.
    ahead: GAME, (1,), the position after an action.
    """

    bits: np.ndarray
    ids: np.ndarray
    ahead: np.ndarray


def make_bot_workspace(actions: int) -> BotWorkspace:
    """Make a workspace for boards with a number of action ids."""
    return BotWorkspace(
        np.zeros((actions + 63) // 64, np.uint64), np.zeros(actions, np.int64), np.zeros(1, GAME)
    )


@kernel
def greedy_action(g, b, work, word):
    """The action with the best position after it; the random word `word` breaks ties."""
    ids, ahead, seat = work.ids, work.ahead, g.seat
    best, best_action = -1e9, np.int64(0)
    for k in range(legal_ids(g, b, work.bits, ids)):
        word += GOLDEN
        ahead[0] = g
        step(ahead[0], b, ids[k])
        value = _position_value(ahead[0], b, seat) + 1e-6 * np.float64(below(mix(word), 1000))
        if value > best:
            best, best_action = value, ids[k]
    return best_action


@kernel
def bot_actions(games, board, kind, rng_state, work, actions):
    """Write a bot's action for every running game into `actions` (int64, (N,)).

    rng_state: uint64, (1,), state of the random stream, advanced.
    """
    for i in range(games.shape[0]):
        rng_state[0] += GOLDEN
        if games[i].phase != Phase.OVER:
            if kind == RANDOM:
                actions[i] = random_action(games[i], board[0], mix(rng_state[0]))
            else:
                actions[i] = greedy_action(games[i], board[0], work, mix(rng_state[0]))


@gil_kernel
def run_bots(game, board, kinds, rng_states, taken):
    """Let bots decide in one game until a seat without one is to decide, or the game is over.

    kinds: uint8, (5,), by seat; 0 without a bot. rng_states: uint64, (5,), states of the random
    streams by seat, advanced. taken: int64, receives the actions; the bots stop when it is full.
    Returns the number of actions.
    """
    g, b = game[0], board[0]
    actions = np.int64(b.actions)
    work = BotWorkspace(  # made here, because passing the arrays takes longer
        np.zeros((actions + 63) // 64, np.uint64), np.zeros(actions, np.int64), np.zeros(1, GAME)
    )
    count = 0
    while count < taken.shape[0] and g.phase != Phase.OVER and kinds[g.seat] != 0:
        seat = g.seat
        rng_states[seat] += GOLDEN
        if kinds[seat] == RANDOM:
            action = random_action(g, b, mix(rng_states[seat]))
        else:
            action = greedy_action(g, b, work, mix(rng_states[seat]))
        step(g, b, action)
        taken[count] = action
        count += 1
    return count
