"""What a seat sees, as one row of bytes (core.features names its parts).

Seats are told apart only by how far they sit clockwise from the viewer, who is slot 0.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, clear_bytes, copy_bytes, has, store_word
from busenv.core.features import WIDTHS, column
from busenv.core.jit import kernel
from busenv.core.observation_cache import (
    I_LINE,
    P_SUMS,
    PER_SEAT,
    seats_at,
    streets_at,
)
from busenv.core.rules.resolve import power_of
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

PER_PLAYER, TABLE = WIDTHS["players"], WIDTHS["table"]
(
    P_PRESENT, P_DECIDES, P_ACTION_MARKERS, P_LINE_MARKERS, P_UNLIMITED, P_BUSES, P_STONES,
    P_DELIVERIES, P_PLACED, P_CHOOSING, P_STARTS, P_STARTED_GAME, P_CHOOSES_NEXT,
) = (
    column("players", name)
    for name in (
        "present", "decides", "action_markers", "line_markers", "line_unlimited", "buses",
        "time_stones", "deliveries", "placed", "choosing", "starts", "started_game", "chooses_next",
    )
)  # fmt: skip
(
    T_PHASE, T_PLAYERS, T_ROUND, T_CLOCK, T_STONES, T_SUPPLY, T_ZONE, T_MAX_BUSES, T_ACTION,
    T_SPACE, T_POWER, T_SPACE_LIMIT, T_BUS_LIMIT, T_FINAL_SEGMENT, T_TAKEN, T_NEXT_POWER,
) = (
    column("table", name)
    for name in (
        "phase", "num_players", "round", "clock", "stones_left", "supply", "zone", "max_buses",
        "action", "space", "power", "space_limit", "bus_limit", "final_segment", "taken",
        "next_power",
    )
)  # fmt: skip


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
def _at(first, column, value):
    """A feature's value at its place among the eight columns from `first` on, or 0."""
    inside = first <= column < first + 8
    return np.uint64(value) << np.uint64(8 * (column - first)) if inside else ZERO


@kernel
def _player_word(g, seat, chooses_next, first):
    """Eight columns of what the state itself tells of a player, as the bytes of a word."""
    unlimited = g.line_markers[seat] == NO_LIMIT
    return (
        _at(first, P_PRESENT, 1)
        | _at(first, P_DECIDES, g.phase != OVER and g.seat == seat)
        | _at(first, P_ACTION_MARKERS, g.markers[seat])
        | _at(first, P_LINE_MARKERS, 0 if unlimited else g.line_markers[seat])
        | _at(first, P_UNLIMITED, unlimited)
        | _at(first, P_BUSES, g.buses[seat])
        | _at(first, P_STONES, g.stones[seat])
        | _at(first, P_DELIVERIES, _byte(g.deliveries[seat]))
        | _at(first, P_PLACED, g.placed[seat])
        | _at(first, P_CHOOSING, _chooses(g, seat))
        | _at(first, P_STARTS, g.start == seat)
        | _at(first, P_STARTED_GAME, g.first == seat)
        | _at(first, P_CHOOSES_NEXT, chooses_next)
    )


@kernel
def _next_power(g, action):
    """Power of the first open space of an action (R7); 0 when none is open."""
    return 0 if g.taken[action] == g.space_limit else power_of(g, action, g.taken[action])


@kernel
def _table(g, out):
    """Phase, clock, supplies, what is being resolved."""
    clear_bytes(out, 0, TABLE)
    out[T_PHASE + g.phase] = 1
    out[T_PLAYERS + g.players - 3] = 1
    out[T_ROUND] = _byte(g.round)
    out[T_CLOCK + g.clock] = 1
    out[T_STONES] = g.clock_stones
    out[T_SUPPLY] = g.supply
    out[T_ZONE] = g.zone
    out[T_MAX_BUSES] = g.max_buses
    if g.action != NO_ACTION:
        out[T_ACTION + g.action] = 1
    out[T_SPACE] = g.space
    out[T_POWER] = g.power
    out[T_SPACE_LIMIT] = g.space_limit
    out[T_BUS_LIMIT] = g.bus_limit
    out[T_FINAL_SEGMENT] = g.final_segment
    for action in range(7):
        out[T_TAKEN + action] = g.taken[action]
    out[T_NEXT_POWER] = _next_power(g, ACT_LINES)
    out[T_NEXT_POWER + 1] = _next_power(g, ACT_PASSENGERS)
    out[T_NEXT_POWER + 2] = _next_power(g, ACT_BUILDINGS)


@kernel
def observe(g, b, scene, seat, row, turned):
    """Write what a seat sees into a row of bytes that is painted, like the scene (core.observation_cache).

    turned: whether the row holds the scene as it is, turned to this seat.
    """
    view = np.int64(seat)  # signed: distances between seats may be negative
    players = np.int64(g.players)
    first_player = seats_at(b)
    if not turned:
        width = np.int64(b.intersections)
        _turn(scene, row, I_LINE * width, width, view, players)
        _turn(scene, row, streets_at(b), np.int64(b.streets), view, players)
    found = False
    for slot in range(players):
        other = view + slot if view + slot < players else view + slot - players
        at = first_player + PER_PLAYER * slot
        chooses_next = slot > 0 and not found and _chooses(g, np.uint64(other))
        found |= chooses_next
        # Two words, the second with three columns too many, which the sums are written over.
        store_word(row, at, _player_word(g, np.uint64(other), chooses_next, 0))
        store_word(row, at + 8, _player_word(g, np.uint64(other), chooses_next, 8))
        copy_bytes(row, at + P_SUMS, scene, first_player + PER_SEAT * other, PER_SEAT)
    for slot in range(players, MAX_PLAYERS):
        clear_bytes(row, first_player + PER_PLAYER * slot, PER_PLAYER)
    _table(g, row[first_player + PER_PLAYER * MAX_PLAYERS :])
