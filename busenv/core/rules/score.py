"""Points and the strict ranking (R20)."""

from __future__ import annotations

import numpy as np

from busenv.core.jit import kernel


@kernel
def points_of(g, seat):
    """Points of a seat: deliveries minus time stones (R20)."""
    return np.int64(g.deliveries[seat]) - np.int64(g.stones[seat])


@kernel
def standing(g, seat):
    """Sort key of a seat: greater for a better rank, different for any two seats (R20).

    Points decide, then time stones, then the earlier last delivery, then, without deliveries, the
    distance clockwise from the first player.
    """
    points = points_of(g, seat)
    if g.deliveries[seat] > 0:
        last = 0xFF - np.int64(g.delivery_order[seat])
    else:
        last = np.int64(g.first) - np.int64(seat) + (0 if seat < g.first else np.int64(g.players))
    return (points << 32) + (np.int64(g.stones[seat]) << 16) + last


@kernel
def rank_of(g, seat):
    """Rank of a seat so far; 0 is the lead (R20)."""
    mine, better = standing(g, seat), 0
    for other in range(g.players):
        better += standing(g, other) > mine
    return better


@kernel
def points_version(g):
    """A number that changes whenever any seat's points change."""
    return np.int64(g.delivered) << 8 | np.int64(g.clock_stones)
