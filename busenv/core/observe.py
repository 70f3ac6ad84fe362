"""What a seat sees, as one row of bytes (the parts are named in busenv.observation).

Seats are told apart only by how far they sit clockwise from the viewer, who is slot 0.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import clear_bytes, copy_bytes, has, store_word, word_of
from busenv.core.jit import kernel
from busenv.core.rules.resolve import power_of
from busenv.core.scene import (
    I_LINE,
    PER_SEAT,
    seats_at,
    sites_at,
    streets_at,
)
from busenv.core.state import (
    ACT_BUILDINGS,
    ACT_LINES,
    ACT_PASSENGERS,
    MAX_PLAYERS,
    NO_ACTION,
    NO_LIMIT,
    OVER,
    SELECT_ACTIONS,
)

P_SCENE = 13  # where what the picture knows of a player stands in a row, and how long that is
PER_PLAYER, TABLE = P_SCENE + PER_SEAT, 44


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
def _chooses(g, seat):
    """Whether a seat still takes part in the choosing of actions."""
    return g.phase == SELECT_ACTIONS and has(g.choosing, seat)


@kernel
def _player(g, seat, next_chooser, out, at):
    """What the state knows of a player, P_SCENE bytes (and three zeros behind them)."""
    unlimited = g.line_markers[seat] == NO_LIMIT
    store_word(
        out,
        at,
        word_of(
            1,
            g.phase != OVER and g.seat == seat,
            g.markers[seat],
            0 if unlimited else g.line_markers[seat],
            unlimited,
            g.buses[seat],
            g.stones[seat],
            _byte(g.deliveries[seat]),
        ),
    )
    store_word(
        out,
        at + 8,
        word_of(
            g.placed[seat],
            _chooses(g, seat),
            g.start == seat,
            g.first == seat,
            next_chooser,
            0,
            0,
            0,
        ),
    )


@kernel
def _next_power(g, action):
    """Power of the first open space of an action (R7); 0 when none is open."""
    return 0 if g.taken[action] == g.space_limit else power_of(g, action, g.taken[action])


@kernel
def _table(g, out):
    """Phase, clock, supplies, what is being resolved."""
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

    found = False
    for slot in range(players):
        other = view + slot if view + slot < players else view + slot - players
        at = first_player + PER_PLAYER * slot
        next_chooser = slot > 0 and not found and _chooses(g, np.uint64(other))
        found |= next_chooser
        _player(g, np.uint64(other), next_chooser, out, at)
        copy_bytes(out, at + P_SCENE, scene, first_player + PER_SEAT * other, PER_SEAT)
    for slot in range(players, MAX_PLAYERS):
        clear_bytes(out, first_player + PER_PLAYER * slot, PER_PLAYER)
    _table(g, out[first_table:])
