"""Selection of actions, one marker at a time (R4, R5)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, lowest
from busenv.core.jit import kernel
from busenv.core.state import ALL_ACTIONS, NO_ACTION, PASS, SINGLE, Phase


@kernel
def next_seat(g, seat):
    """The next seat clockwise."""
    return seat + 1 if seat + 1 < g.players else 0


@kernel
def num_spaces(g, action):
    """Number of spaces of an action (R5)."""
    return np.uint8(1) if action in SINGLE else g.space_limit


@kernel
def begin_round(g):
    """Begin a round: clear the action board; the starting player selects first (R4)."""
    g.round += 1
    g.phase = Phase.SELECT_ACTIONS
    g.action = NO_ACTION
    g.space = 0
    g.power = 0
    g.waiting = ZERO
    g.vacant = ZERO
    g.grow_head[:] = ZERO
    g.grow_tail[:] = ZERO
    g.spaces[:] = 0
    g.taken[:] = 0
    g.placed[:] = 0
    g.open = ALL_ACTIONS
    g.choosing = 0
    for seat in range(g.players):
        if g.markers[seat] > 0:
            g.choosing |= 1 << seat
    g.seat = _first_choosing(g, g.start)


@kernel
def _first_choosing(g, seat):
    """The first seat from `seat` on, clockwise, that still selects (R4)."""
    choosing = np.uint64(g.choosing)
    later = choosing >> np.uint64(seat)
    return seat + lowest(later) if later != ZERO else lowest(choosing)


@kernel
def choose(g, action):
    """Place a marker, or pass for the round (R4, R5); return whether the selection continues."""
    seat = g.seat
    if action == PASS:
        g.choosing &= ~(1 << seat)
    else:
        g.spaces[action, g.taken[action]] = seat
        g.taken[action] += 1
        if g.taken[action] == num_spaces(g, action):
            g.open &= ~(1 << action)
        g.placed[seat] += 1
        g.markers[seat] -= 1
        if g.markers[seat] == 0:
            g.choosing &= ~(1 << seat)
    if g.choosing != 0 and g.open != 0:
        g.seat = _first_choosing(g, next_seat(g, seat))
        return True
    g.choosing = 0
    return False
