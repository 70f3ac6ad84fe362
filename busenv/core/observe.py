"""What a seat sees, as one row of bytes (the parts are named in busenv.observation).

Seats are told apart only by how far they sit clockwise from the viewer, who is slot 0.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, has, lowest, popcount
from busenv.core.cache import kernel
from busenv.core.layout import (
    ACT_BUILDINGS,
    ACT_LINES,
    ACT_PASSENGERS,
    MAX_PLAYERS,
    MAX_SPACES,
    NO_ACTION,
    NO_LIMIT,
    OVER,
    SELECT_ACTIONS,
)
from busenv.core.lines import growth
from busenv.core.score import place

# Features of each intersection, street, site and player, and of the table as a whole.
PER_INTERSECTION, PER_STREET, PER_SITE, PER_PLAYER, TABLE = 22, 10, 4, 26, 219

# Where they begin within an entry (see busenv.observation for their meaning).
I_BUILDINGS, I_OPEN, I_FREE, I_WAITING, I_VACANT, I_LINE, I_END = 1, 4, 5, 6, 9, 12, 17
S_GROW = 5
P_WAITING, P_VACANT, P_DRIVE = 17, 20, 23
T_SPACES = 44


@kernel
def size(b):
    """Length of an observation on a board."""
    return (
        PER_INTERSECTION * b.intersections
        + PER_STREET * b.streets
        + PER_SITE * b.sites
        + PER_PLAYER * MAX_PLAYERS
        + TABLE
    )


@kernel
def _byte(number):
    return np.uint8(min(number, 255))


@kernel
def _intersections(g, b, out):
    """Passengers, buildings, who waits and what is free now and at the next two hours.

    Returns the sums of the last six along each seat's line, packed as one byte each in a word.
    """
    sums = (ZERO, ZERO, ZERO, ZERO, ZERO)
    settled = g.peopled | g.built[0] | g.built[1] | g.built[2]
    while settled != ZERO:
        i = lowest(settled)
        settled &= settled - ONE
        at = i * np.uint64(PER_INTERSECTION)
        people = np.uint64(g.passengers[i])
        out[at] = people
        packed = ZERO
        for hour in range(3):
            kind = g.clock + hour if g.clock + hour < 3 else g.clock + hour - 3
            homes = popcount(g.type_sites[kind] & b.intersection_sites[i])
            out[at + np.uint64(I_BUILDINGS + kind)] = homes
            waiting, vacant = people - min(people, homes), homes - min(people, homes)
            out[at + np.uint64(I_WAITING + hour)] = waiting
            out[at + np.uint64(I_VACANT + hour)] = vacant
            packed |= (waiting << np.uint64(8 * hour)) | (vacant << np.uint64(24 + 8 * hour))
        sums = (
            sums[0] + packed * ((g.reach[0] >> i) & ONE),
            sums[1] + packed * ((g.reach[1] >> i) & ONE),
            sums[2] + packed * ((g.reach[2] >> i) & ONE),
            sums[3] + packed * ((g.reach[3] >> i) & ONE),
            sums[4] + packed * ((g.reach[4] >> i) & ONE),
        )
    return sums


@kernel
def _sites(g, b, intersections, out):
    """Type of each building; which sites may be built on, here and at each intersection."""
    for kind in range(3):
        rest = g.type_sites[kind]
        while rest != ZERO:
            out[lowest(rest) * np.uint64(PER_SITE) + np.uint64(kind)] = 1
            rest &= rest - ONE
    open_now = g.free_sites & b.zone_sites[g.zone] if g.free_sites != ZERO else ZERO
    rest = g.free_sites
    while rest != ZERO:
        site = lowest(rest)
        at = np.uint64(b.site_intersection[site]) * np.uint64(PER_INTERSECTION)
        intersections[at + np.uint64(I_FREE)] += 1
        if has(open_now, site):
            intersections[at + np.uint64(I_OPEN)] += 1
            out[site * np.uint64(PER_SITE) + np.uint64(3)] = 1
        rest &= rest - ONE


@kernel
def _add_streets(low, high, offset, amount, out):
    """Add to a feature of every street of a set."""
    for word in range(2):
        rest = low if word == 0 else high
        while rest != ZERO:
            street = np.uint64(64 * word) + lowest(rest)
            out[street * np.uint64(PER_STREET) + np.uint64(offset)] += amount
            rest &= rest - ONE


@kernel
def _line(g, b, seat, slot, intersections, streets):
    """A seat's line: streets, reach, ends, and where it may grow; the number of such streets."""
    if g.reach[seat] == ZERO:
        return np.uint64(0)
    rest = g.reach[seat]
    while rest != ZERO:
        intersections[lowest(rest) * np.uint64(PER_INTERSECTION) + np.uint64(I_LINE + slot)] = 1
        rest &= rest - ONE
    head, tail = g.head[seat], g.tail[seat]
    intersections[np.uint64(head) * np.uint64(PER_INTERSECTION) + np.uint64(I_END + slot)] += 2
    intersections[np.uint64(tail) * np.uint64(PER_INTERSECTION) + np.uint64(I_END + slot)] += 1
    _add_streets(g.line[seat, 0], g.line[seat, 1], slot, 1, streets)
    streets[np.uint64(g.head_street[seat]) * np.uint64(PER_STREET) + np.uint64(slot)] += 2
    streets[np.uint64(g.tail_street[seat]) * np.uint64(PER_STREET) + np.uint64(slot)] += 1
    if g.line_markers[seat] == 0:
        return np.uint64(0)
    low, high = growth(g, b, seat, head)
    _add_streets(low, high, S_GROW + slot, 2, streets)
    if tail != head:
        tail_low, tail_high = growth(g, b, seat, tail)
        _add_streets(tail_low, tail_high, S_GROW + slot, 1, streets)
        low |= tail_low
        high |= tail_high
    return popcount(low) + popcount(high)


@kernel
def _prospects(g, seat, sums, out):
    """Waiting passengers and free buildings on the line, and what one Vrrooomm! would deliver."""
    for hour in range(3):
        waiting = (sums >> np.uint64(8 * hour)) & np.uint64(255)
        vacant = (sums >> np.uint64(24 + 8 * hour)) & np.uint64(255)
        out[P_WAITING + hour] = waiting
        out[P_VACANT + hour] = vacant
        out[P_DRIVE + hour] = min(np.uint64(g.buses[seat]), waiting, vacant)


@kernel
def _player(g, seat, grown, sums, out):
    out[0] = 1
    out[1] = g.phase != OVER and g.seat == seat
    out[2] = g.markers[seat]
    out[3] = 0 if g.line_markers[seat] == NO_LIMIT else g.line_markers[seat]
    out[4] = g.line_markers[seat] == NO_LIMIT
    out[5] = g.buses[seat]
    out[6] = g.stones[seat]
    out[7] = _byte(g.deliveries[seat])
    if g.last_delivery[seat] > 0:
        for other in range(g.players):
            out[8] += 0 < g.last_delivery[other] <= g.last_delivery[seat]
    out[9] = g.placed[seat]
    out[10] = g.phase == SELECT_ACTIONS and g.choosing >> seat & 1
    out[11] = g.start == seat
    out[12] = g.first == seat
    out[13] = place(g, seat)
    out[14] = popcount(g.reach[seat])
    out[15] = grown
    _prospects(g, seat, sums, out)


@kernel
def _table(g, view, out):
    """Phase, clock, supplies, what is being resolved, whose markers lie where."""
    out[g.phase] = 1
    out[11 + g.players - 3] = 1
    out[14] = _byte(g.round)
    out[15 + g.clock] = 1
    out[18] = g.clock_stones
    out[19] = g.supply
    out[20] = g.zone
    out[21] = g.max_buses
    if g.action != NO_ACTION:
        out[22 + g.action] = 1
    out[29] = g.space
    out[30] = g.power
    out[31] = g.space_limit
    out[32] = g.bus_limit
    out[33] = g.final_segment
    bonus = np.int64(g.players == 5)
    for action in range(7):
        out[34 + action] = g.taken[action]
    out[41] = _next_power(g, ACT_LINES, bonus)
    out[42] = _next_power(g, ACT_PASSENGERS, 0)
    out[43] = _next_power(g, ACT_BUILDINGS, 0)
    at = T_SPACES
    for action in range(7):
        for space in range(g.taken[action]):
            slot = np.int64(g.spaces[action, space]) - view
            if slot < 0:
                slot += g.players
            out[at + MAX_PLAYERS * space + slot] = 1
        at += MAX_PLAYERS * (1 if action == 1 or action == 4 or action == 6 else MAX_SPACES)


@kernel
def _next_power(g, action, bonus):
    """Power of the first open space of an action (R7); 0 when none is open."""
    if g.taken[action] == g.space_limit:
        return 0
    return max(np.int64(g.max_buses) - np.int64(g.taken[action]) + bonus, 0)


@kernel
def observe(g, b, seat, out):
    """Write what a seat sees into a row of bytes."""
    out[:] = 0
    view = np.int64(seat)  # signed: distances between seats may be negative
    first_street = PER_INTERSECTION * np.int64(b.intersections)
    first_site = first_street + PER_STREET * np.int64(b.streets)
    first_player = first_site + PER_SITE * np.int64(b.sites)
    first_table = first_player + PER_PLAYER * MAX_PLAYERS
    intersections = out[:first_street]
    streets = out[first_street:first_site]
    sums = _intersections(g, b, intersections)
    _sites(g, b, intersections, out[first_site:first_player])
    next_chooser = True
    for slot in range(g.players):
        other = view + slot if view + slot < g.players else view + slot - g.players
        row = out[first_player + PER_PLAYER * slot : first_player + PER_PLAYER * (slot + 1)]
        grown = _line(g, b, other, slot, intersections, streets)
        _player(g, other, grown, sums[other], row)
        if slot > 0 and next_chooser and row[10]:
            row[16] = 1
            next_chooser = False
    _table(g, view, out[first_table:])
