"""Vrrooomm!: buses carry waiting passengers to free buildings (R17)."""

from __future__ import annotations

from busenv.core.bits import ZERO, bit
from busenv.core.jit import kernel
from busenv.core.rules.clock import matching
from busenv.core.rules.legal import pick_ups, set_downs
from busenv.core.state import BoardAction, Phase


@kernel
def next_passenger(g):
    """Go to the next bus that can carry a passenger (R17); return whether there is one."""
    if g.power > 0 and pick_ups(g) != ZERO and set_downs(g) != ZERO:
        return True
    while g.space < g.taken[BoardAction.VRROOOMM]:
        g.seat = g.spaces[BoardAction.VRROOOMM, g.space]
        g.power = g.buses[g.seat]
        g.space += 1
        if pick_ups(g) != ZERO and set_downs(g) != ZERO:
            return True
    return False


@kernel
def pick_up(g, b, intersection):
    """Pick up a waiting passenger (R17)."""
    g.passengers[intersection] -= 1
    if g.passengers[intersection] == 0:
        g.occupied &= ~bit(intersection)
    if g.passengers[intersection] == matching(g, b, intersection):
        g.waiting &= ~bit(intersection)
    g.phase = Phase.SET_DOWN


@kernel
def set_down(g, b, intersection):
    """Set the passenger down at a free building: one delivery (R17)."""
    g.passengers[intersection] += 1
    g.occupied |= bit(intersection)
    if g.passengers[intersection] == matching(g, b, intersection):
        g.vacant &= ~bit(intersection)
    g.power -= 1
    g.deliveries[g.seat] += 1
    g.delivered += 1
    order_last_delivery(g, g.seat)


@kernel
def order_last_delivery(g, seat):
    """Order a seat's last delivery after all other seats' last ones (R20)."""
    before, latest = g.delivery_order[seat], 0
    for other in range(g.players):
        if other != seat:
            if before > 0 and g.delivery_order[other] > before:
                g.delivery_order[other] -= 1
            latest = max(latest, g.delivery_order[other])
    g.delivery_order[seat] = latest + 1
