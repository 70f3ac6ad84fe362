"""The clock, and who waits when it has struck (R15, R16)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, bit, lowest, popcount
from busenv.core.jit import kernel
from busenv.core.state import ACT_VROOM


@kernel
def matching(g, b, intersection):
    """Number of buildings at an intersection that the clock points to (R16)."""
    return popcount(g.type_sites[g.clock] & b.intersection_sites[intersection])


@kernel
def stop_time(g):
    """The owner of the clock takes a time stone (R15); how many are left."""
    g.stones[g.seat] += 1
    g.clock_stones -= 1
    return g.clock_stones


@kernel
def set_time(g, b, stopped):
    """Move the hand unless it was stopped (R15); who waits and what is free from now on (R16)."""
    if not stopped:
        g.clock = g.clock + 1 if g.clock < 2 else 0
    g.action = ACT_VROOM
    g.space = 0
    g.power = 0
    built = g.built[g.clock]
    waiting, vacant = g.peopled & ~built, built & ~g.peopled
    both = built & g.peopled
    while both != ZERO:
        intersection = lowest(both)
        people, homes = np.uint64(g.passengers[intersection]), matching(g, b, intersection)
        if people > homes:
            waiting |= bit(intersection)
        elif homes > people:
            vacant |= bit(intersection)
        both &= both - ONE
    g.waiting = waiting
    g.vacant = vacant
