"""Observations: one row of bytes for a seat, whose parts `core.features` names.

Players are in clockwise order from the viewer, who is player 0.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, clear_bytes, copy_bytes, has, spread, store_word
from busenv.core.features import WIDTHS, column
from busenv.core.jit import kernel
from busenv.core.observation_cache import I_LINE, P_CACHED, PER_SEAT, seats_at, streets_at
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
    P_DELIVERIES, P_PLACED, P_CHOOSING, P_STARTS, P_STARTED_GAME, P_CHOOSES_NEXT, P_HEAD_SHARED,
    P_TAIL_SHARED,
) = (
    column("players", name)
    for name in (
        "present", "decides", "action_markers", "line_markers", "line_unlimited", "buses",
        "time_stones", "deliveries", "placed", "choosing", "starts", "started_game", "chooses_next",
        "head_shared", "tail_shared",
    )
)  # fmt: skip
(
    T_PHASE, T_PLAYERS, T_ROUND, T_CLOCK, T_STONES, T_SUPPLY, T_ZONE, T_MAX_BUSES, T_ACTION,
    T_SPACE, T_POWER, T_SPACE_LIMIT, T_BUS_LIMIT, T_FINAL_SEGMENT, T_SHARING_AGAIN,
    T_EXTRA_NEEDS_POWER, T_TAKEN, T_NEXT_POWER,
) = (
    column("table", name)
    for name in (
        "phase", "num_players", "round", "clock", "stones_left", "supply", "zone", "max_buses",
        "action", "space", "power", "space_limit", "bus_limit", "final_segment", "sharing_again",
        "extra_needs_power", "taken", "next_power",
    )
)  # fmt: skip


@kernel
def observation_size(b):
    """Length of an observation on a board in bytes."""
    return seats_at(b) + PER_PLAYER * MAX_PLAYERS + TABLE


@kernel
def _byte(number):
    return np.uint8(min(number, 255))


@kernel
def _rotate(cache, row, first, width, viewer, players):
    """Copy five pairs of planes, one pair a seat, starting with the viewer's."""
    width *= 2
    front, back = (players - viewer) * width, viewer * width
    copy_bytes(row, first, cache, first + back, front)
    copy_bytes(row, first + front, cache, first, back)
    clear_bytes(row, first + front + back, (MAX_PLAYERS - players) * width)


@kernel
def _selects(g, seat):
    """Return whether a seat still selects actions this round (R4)."""
    return g.phase == SELECT_ACTIONS and has(g.choosing, seat)


@kernel
def _byte_at(first, column, value):
    """A value as the byte of a column in the word of eight columns from `first`; 0 outside it."""
    inside = first <= column < first + 8
    return np.uint64(value) << np.uint64(8 * (column - first)) if inside else ZERO


@kernel
def _player_word(g, seat, chooses_next, first):
    """Eight columns of a player's features, from column `first`, as the bytes of a word."""
    unlimited = g.line_markers[seat] == NO_LIMIT
    return (
        _byte_at(first, P_PRESENT, 1)
        | _byte_at(first, P_DECIDES, g.phase != OVER and g.seat == seat)
        | _byte_at(first, P_ACTION_MARKERS, g.markers[seat])
        | _byte_at(first, P_LINE_MARKERS, 0 if unlimited else g.line_markers[seat])
        | _byte_at(first, P_UNLIMITED, unlimited)
        | _byte_at(first, P_BUSES, g.buses[seat])
        | _byte_at(first, P_STONES, g.stones[seat])
        | _byte_at(first, P_DELIVERIES, _byte(g.deliveries[seat]))
        | _byte_at(first, P_PLACED, g.placed[seat])
        | _byte_at(first, P_CHOOSING, _selects(g, seat))
        | _byte_at(first, P_STARTS, g.start == seat)
        | _byte_at(first, P_STARTED_GAME, g.first == seat)
        | _byte_at(first, P_CHOOSES_NEXT, chooses_next)
    )


@kernel
def _relative(seats, viewer, players):
    """A set of seats as one byte per player, in clockwise order from the viewer."""
    seats = np.uint64(seats)
    turned = seats >> np.uint64(viewer) | seats << np.uint64(players - viewer)
    return spread(turned & ((ONE << np.uint64(players)) - ONE))


@kernel
def _next_power(g, action):
    """Power of the first open space of an action (R7); 0 without one."""
    return 0 if g.taken[action] == g.space_limit else power_of(g, action, g.taken[action])


@kernel
def _write_table(g, out):
    """Write the features that belong to no player: phase, clock, supplies, action power."""
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
    out[T_SHARING_AGAIN] = g.sharing_again
    out[T_EXTRA_NEEDS_POWER] = g.extra_needs_power
    for action in range(7):
        out[T_TAKEN + action] = g.taken[action]
    out[T_NEXT_POWER] = _next_power(g, ACT_LINES)
    out[T_NEXT_POWER + 1] = _next_power(g, ACT_PASSENGERS)
    out[T_NEXT_POWER + 2] = _next_power(g, ACT_BUILDINGS)


@kernel
def observe(g, b, cache, seat, row, rotated):
    """Write the observation of a seat into a row that `update_cache` has updated.

    cache: uint8, (cache_size,), the game's observation cache. row: uint8, (observation_size,).
    rotated: whether the row already holds the cache's planes for this viewer.
    """
    viewer = np.int64(seat)  # signed, since distances between seats may be negative
    players = np.int64(g.players)
    first_player = seats_at(b)
    if not rotated:
        width = np.int64(b.intersections)
        _rotate(cache, row, I_LINE * width, width, viewer, players)
        _rotate(cache, row, streets_at(b), np.int64(b.streets), viewer, players)
    next_known = False
    for slot in range(players):
        other = viewer + slot if viewer + slot < players else viewer + slot - players
        at = first_player + PER_PLAYER * slot
        chooses_next = slot > 0 and not next_known and _selects(g, np.uint64(other))
        next_known |= chooses_next
        # Each word overwrites the surplus columns of the one before, the cached features the last.
        store_word(row, at, _player_word(g, np.uint64(other), chooses_next, 0))
        store_word(row, at + 8, _player_word(g, np.uint64(other), chooses_next, 8))
        head_shared = _relative(g.head_shared[other], viewer, players)
        store_word(row, at + P_HEAD_SHARED, head_shared)
        tail_shared = _relative(g.tail_shared[other], viewer, players)
        store_word(row, at + P_TAIL_SHARED, tail_shared)
        copy_bytes(row, at + P_CACHED, cache, first_player + PER_SEAT * other, PER_SEAT)
    for slot in range(players, MAX_PLAYERS):
        clear_bytes(row, first_player + PER_PLAYER * slot, PER_PLAYER)
    _write_table(g, row[first_player + PER_PLAYER * MAX_PLAYERS :])
