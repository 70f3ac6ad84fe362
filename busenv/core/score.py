"""Points and the strict ranking (R20)."""

from __future__ import annotations

import numpy as np

from busenv.core.cache import kernel


@kernel
def points(g, seat):
    """Deliveries minus time stones."""
    return np.int64(g.deliveries[seat]) - np.int64(g.stones[seat])


@kernel
def ahead(g, seat, other):
    """Whether a seat stands before another one: points, stones, first to get there, seat (R20)."""
    mine, theirs = points(g, seat), points(g, other)
    if mine != theirs:
        return mine > theirs
    if g.stones[seat] != g.stones[other]:
        return g.stones[seat] > g.stones[other]
    if g.deliveries[seat] > 0:
        return g.last_delivery[seat] < g.last_delivery[other]
    players, first = np.int64(g.players), np.int64(g.first)
    return (seat - first + players) % players < (other - first + players) % players


@kernel
def place(g, seat):
    """Place of a seat on the standing so far: 0 is the winner."""
    better = 0
    for other in range(g.players):
        better += other != seat and ahead(g, other, seat)
    return better
