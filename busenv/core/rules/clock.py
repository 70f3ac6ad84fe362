"""The clock, waiting passengers and free buildings (R15, R16)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, bit, lowest, popcount
from busenv.core.jit import kernel
from busenv.core.state import BoardAction


@kernel
def matching(g, b, intersection):
    """Number of buildings of the clock's type at an intersection (R16)."""
    return popcount(g.type_sites[g.clock] & b.intersection_sites[intersection])


@kernel
def stop_time(g):
    """Stop time: the seat takes a time stone (R15). Returns the stones left on the clock."""
    g.stones[g.seat] += 1
    g.clock_stones -= 1
    return g.clock_stones


@kernel
def find_waiting(g, b):
    """Write where passengers wait, and where matching buildings are free (R16).

    At each intersection passengers beyond the matching buildings wait, and matching buildings
    beyond the passengers are free.
    """
    built = g.built[g.clock]
    waiting, vacant = g.occupied & ~built, built & ~g.occupied
    both = built & g.occupied
    while both != ZERO:
        intersection = lowest(both)
        passengers = np.uint64(g.passengers[intersection])
        buildings = matching(g, b, intersection)
        if passengers > buildings:
            waiting |= bit(intersection)
        elif buildings > passengers:
            vacant |= bit(intersection)
        both &= both - ONE
    g.waiting = waiting
    g.vacant = vacant


@kernel
def set_time(g, b, stopped):
    """Advance the clock unless it was stopped (R15), and begin Vrrooomm! (R16)."""
    if not stopped:
        g.clock = g.clock + 1 if g.clock < 2 else 0
    g.action = BoardAction.VRROOOMM
    g.space = 0
    g.power = 0
    find_waiting(g, b)
