"""What a seat sees, as one row of bytes (the parts are named in busenv.observation).

Seats are told apart only by how far they sit clockwise from the viewer, who is slot 0.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, bit, clear_bytes, copy_bytes, lowest
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
from busenv.core.resolve import power_of
from busenv.core.scene import (
    I_LINE,
    M_GROWTH,
    M_ORDER,
    M_PLACE,
    M_REACHED,
    M_VACANT,
    M_WAITING,
    PER_SEAT,
    seats_at,
    sites_at,
    streets_at,
)

PER_PLAYER, TABLE = 26, 219
P_WAITING, P_VACANT, P_DRIVE = 17, 20, 23
# Where the spaces of each action begin; Buses, Clock and Starting Player have one. An array, since
# numba looks a number up in a tuple by a chain of branches.
T_SPACES = np.array([44, 84, 89, 129, 169, 174, 214])


@kernel
def size(b):
    """Length of an observation on a board."""
    return seats_at(b) + PER_PLAYER * MAX_PLAYERS + TABLE


@kernel
def _byte(number):
    return np.uint8(min(number, 255))


@kernel
def _turn(scene, out, first, width, view, players):
    """Copy five pairs of planes, one a seat, so that the viewer's comes first."""
    width *= 2
    front, back = (players - view) * width, view * width
    copy_bytes(out, first, scene, first + back, front)
    copy_bytes(out, first + front, scene, first, back)
    clear_bytes(out, first + front + back, (MAX_PLAYERS - players) * width)


@kernel
def _player(g, seat, sums, out):
    """What is known of a player; `sums` are the scene's of that seat."""
    out[0] = 1
    out[1] = g.phase != OVER and g.seat == seat
    out[2] = g.markers[seat]
    out[3] = 0 if g.line_markers[seat] == NO_LIMIT else g.line_markers[seat]
    out[4] = g.line_markers[seat] == NO_LIMIT
    out[5] = g.buses[seat]
    out[6] = g.stones[seat]
    out[7] = _byte(g.deliveries[seat])
    out[8] = sums[M_ORDER]
    out[9] = g.placed[seat]
    out[10] = g.phase == SELECT_ACTIONS and g.choosing >> seat & 1
    out[11] = g.start == seat
    out[12] = g.first == seat
    out[13] = sums[M_PLACE]
    out[14] = sums[M_REACHED]
    out[15] = sums[M_GROWTH]
    out[16] = 0
    for hour in range(3):
        waiting, vacant = sums[M_WAITING + hour], sums[M_VACANT + hour]
        out[P_WAITING + hour] = waiting
        out[P_VACANT + hour] = vacant
        out[P_DRIVE + hour] = min(g.buses[seat], waiting, vacant)


@kernel
def _next_power(g, action):
    """Power of the first open space of an action (R7); 0 when none is open."""
    return 0 if g.taken[action] == g.space_limit else power_of(g, action, g.taken[action])


@kernel
def _table(g, view, out):
    """Phase, clock, supplies, what is being resolved, whose markers lie where."""
    clear_bytes(out, 0, TABLE)
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
    for action in range(7):
        out[34 + action] = g.taken[action]
    out[41] = _next_power(g, ACT_LINES)
    out[42] = _next_power(g, ACT_PASSENGERS)
    out[43] = _next_power(g, ACT_BUILDINGS)
    taken = ZERO  # a bit for each space taken, eight (MAX_SPACES) to an action
    for action in range(7):
        taken |= (bit(g.taken[action]) - ONE) << np.uint64(MAX_SPACES * action)
    while taken != ZERO:
        number = np.int64(lowest(taken))
        action, space = number >> 3, number & 7
        slot = np.int64(g.spaces[action, space]) - view
        slot += np.int64(g.players) if slot < 0 else 0
        out[T_SPACES[action] + MAX_PLAYERS * space + slot] = 1
        taken &= taken - ONE


@kernel
def observe(g, b, scene, seat, out):
    """Write what a seat sees into a row of bytes, given an up-to-date picture (core.scene)."""
    view = np.int64(seat)  # signed: distances between seats may be negative
    players = np.int64(g.players)
    width, streets = np.int64(b.intersections), np.int64(b.streets)
    street_planes, first_player = streets_at(b), seats_at(b)
    first_table = first_player + PER_PLAYER * MAX_PLAYERS
    copy_bytes(out, 0, scene, 0, I_LINE * width)
    _turn(scene, out, I_LINE * width, width, view, players)
    _turn(scene, out, street_planes, streets, view, players)
    copy_bytes(out, sites_at(b), scene, sites_at(b), first_player - sites_at(b))

    next_chooser = True
    for slot in range(players):
        other = view + slot if view + slot < players else view + slot - players
        row = out[first_player + PER_PLAYER * slot : first_player + PER_PLAYER * (slot + 1)]
        sums = scene[first_player + PER_SEAT * other : first_player + PER_SEAT * (other + 1)]
        _player(g, np.uint64(other), sums, row)
        if slot > 0 and next_chooser and row[10]:
            row[16] = 1
            next_chooser = False
    clear_bytes(out, first_player + PER_PLAYER * players, PER_PLAYER * (MAX_PLAYERS - players))
    _table(g, view, out[first_table:])
