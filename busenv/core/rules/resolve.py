"""Resolution of actions, space by space, up to the next decision (R6, R7, R12 to R14)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, bit
from busenv.core.jit import kernel
from busenv.core.rules.clock import set_time
from busenv.core.rules.drive import next_passenger
from busenv.core.rules.legal import num_arriving
from busenv.core.rules.lines import offer_growth
from busenv.core.state import BoardAction, Phase


@kernel
def power_of(g, action, space):
    """Action power of a space, at least 0 (R7)."""
    power = np.int64(g.max_buses) - np.int64(space)
    has_extra = action == BoardAction.LINE_EXPANSION and g.players == 5
    if has_extra and (power > 0 or not g.extra_needs_power):
        power += 1
    return max(power, 0)


@kernel
def _next_growth(g, b):
    """Line Expansion, from the last space taken to A: return whether a street is to be chosen."""
    if g.power > 0 and offer_growth(g, b, g.seat):
        return True
    while g.space > 0:
        g.space -= 1
        g.seat = g.spaces[BoardAction.LINE_EXPANSION, g.space]
        g.power = power_of(g, BoardAction.LINE_EXPANSION, g.space)
        if g.power > 0 and offer_growth(g, b, g.seat):
            return True
    return False


@kernel
def add_bus(g):
    """Buses: one more bus, up to the limit (R12)."""
    if g.taken[BoardAction.BUSES] > 0:
        seat = g.spaces[BoardAction.BUSES, 0]
        if g.buses[seat] < g.bus_limit:
            g.buses[seat] += 1
            g.max_buses = max(g.max_buses, g.buses[seat])


@kernel
def _next_passengers(g):
    """Passengers, from A on: return whether a split over the stations is to be chosen (R13)."""
    while g.space < g.taken[BoardAction.PASSENGERS] and g.supply > 0:
        g.seat = g.spaces[BoardAction.PASSENGERS, g.space]
        g.power = power_of(g, BoardAction.PASSENGERS, g.space)
        g.space += 1
        if g.power > 0:
            return True
    return False


@kernel
def _next_building(g):
    """Buildings, from the last space taken to A: return whether a site is to be chosen (R14)."""
    if g.free_sites == ZERO:
        return False
    while g.power == 0 and g.space > 0:
        g.space -= 1
        g.seat = g.spaces[BoardAction.BUILDINGS, g.space]
        g.power = power_of(g, BoardAction.BUILDINGS, g.space)
    return g.power > 0


@kernel
def begin_resolving(g):
    """Begin the resolution with Line Expansion (R6)."""
    g.action = BoardAction.LINE_EXPANSION
    g.space = g.taken[BoardAction.LINE_EXPANSION]
    g.power = 0


@kernel
def resolve(g, b):
    """Resolve actions up to the next decision (R6); return False when all are resolved.

    `g.action`, `g.space` and `g.power` hold the action, its space (as in `GAME`), and the power
    left of the current marker.
    """
    if g.action == BoardAction.LINE_EXPANSION:
        if _next_growth(g, b):
            g.phase = Phase.LINE_EXPANSION
            return True
        g.grow_head[:] = ZERO
        g.grow_tail[:] = ZERO
        add_bus(g)
        g.action = BoardAction.PASSENGERS
        g.space = 0
    if g.action == BoardAction.PASSENGERS:
        if _next_passengers(g):
            g.phase = Phase.PASSENGERS
            return True
        g.action = BoardAction.BUILDINGS
        g.space = g.taken[BoardAction.BUILDINGS]
        g.power = 0
    if g.action == BoardAction.BUILDINGS:
        if _next_building(g):
            g.phase = Phase.BUILDINGS
            return True
        g.action = BoardAction.CLOCK
        g.space = 0
        g.power = 0
        if g.taken[BoardAction.CLOCK] > 0:
            g.seat = g.spaces[BoardAction.CLOCK, 0]
            g.phase = Phase.CLOCK
            return True
        set_time(g, b, False)
    if next_passenger(g):
        g.phase = Phase.PICK_UP
        return True
    return False


@kernel
def build(g, b, site, kind):
    """Erect a building (R14), and open the next zone when the lowest is full."""
    site_bit, intersection = bit(site), bit(b.site_intersection[site])
    g.free_sites &= ~site_bit
    g.type_sites[kind] |= site_bit
    g.built[kind] |= intersection
    while g.zone < b.zones and g.free_sites & b.zone_sites[g.zone] == ZERO:
        g.zone += 1


@kernel
def arrive(g, b, to_first):
    """Add passengers: `to_first` at the first station, the rest at the other (R13)."""
    arriving = num_arriving(g)
    g.supply -= arriving
    for k in range(2):
        count = to_first if k == 0 else arriving - to_first
        if count > 0:
            g.passengers[b.station[k]] += count
            g.occupied |= bit(b.station[k])
