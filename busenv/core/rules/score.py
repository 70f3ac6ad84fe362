"""The strict ranking (R20)."""

from __future__ import annotations

import numpy as np

from busenv.core.jit import kernel


@kernel
def points_of(g, seat):
    """A seat's points: deliveries minus time stones (R20)."""
    return np.int64(g.deliveries[seat]) - np.int64(g.stones[seat])


@kernel
def standing(g, seat):
    """A number that is greater the better a seat stands; no two seats' are equal (R20).

    Points come first, then time stones. Where both are equal so are the deliveries, and the order
    in which they were reached decides, or, without any, the seats from the first player on.
    """
    points = points_of(g, seat)
    if g.deliveries[seat] > 0:
        last = 0xFF - np.int64(g.delivery_order[seat])
    else:
        last = np.int64(g.first) - np.int64(seat) + (0 if seat < g.first else np.int64(g.players))
    return (points << 32) + (np.int64(g.stones[seat]) << 16) + last


@kernel
def rank_of(g, seat):
    """Place of a seat on the standing so far: 0 is the winner."""
    mine, better = standing(g, seat), 0
    for other in range(g.players):
        better += standing(g, other) > mine
    return better


@kernel
def points_mark(g):
    """A number that changes whenever a seat's points do: they come of deliveries and stones."""
    return np.int64(g.delivered) << 8 | np.int64(g.clock_stones)
