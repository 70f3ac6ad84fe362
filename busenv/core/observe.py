"""Observations: one row of bytes for a seat, whose parts `core.features` names.

Players are in clockwise order from the viewer, who is player 0.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, clear_bytes, copy_bytes, has, spread, store_word
from busenv.core.features import INTERSECTION_AT, PLAYER_AT, TABLE_AT, WIDTHS
from busenv.core.jit import kernel
from busenv.core.observation_cache import PER_SEAT, seats_at, streets_at
from busenv.core.rules.resolve import power_of
from busenv.core.state import MAX_PLAYERS, NO_ACTION, NO_LIMIT, BoardAction, Phase

PER_PLAYER, TABLE = WIDTHS["players"], WIDTHS["table"]


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
    return g.phase == Phase.SELECT_ACTIONS and has(g.choosing, seat)


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
        _byte_at(first, PLAYER_AT.present, 1)
        | _byte_at(first, PLAYER_AT.decides, g.phase != Phase.OVER and g.seat == seat)
        | _byte_at(first, PLAYER_AT.action_markers, g.markers[seat])
        | _byte_at(first, PLAYER_AT.line_markers, 0 if unlimited else g.line_markers[seat])
        | _byte_at(first, PLAYER_AT.line_unlimited, unlimited)
        | _byte_at(first, PLAYER_AT.buses, g.buses[seat])
        | _byte_at(first, PLAYER_AT.time_stones, g.stones[seat])
        | _byte_at(first, PLAYER_AT.deliveries, _byte(g.deliveries[seat]))
        | _byte_at(first, PLAYER_AT.placed, g.placed[seat])
        | _byte_at(first, PLAYER_AT.choosing, _selects(g, seat))
        | _byte_at(first, PLAYER_AT.starts, g.start == seat)
        | _byte_at(first, PLAYER_AT.started_game, g.first == seat)
        | _byte_at(first, PLAYER_AT.chooses_next, chooses_next)
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
    out[TABLE_AT.phase + g.phase] = 1
    out[TABLE_AT.num_players + g.players - 3] = 1
    out[TABLE_AT.round] = _byte(g.round)
    out[TABLE_AT.clock + g.clock] = 1
    out[TABLE_AT.stones_left] = g.clock_stones
    out[TABLE_AT.supply] = g.supply
    out[TABLE_AT.zone] = g.zone
    out[TABLE_AT.max_buses] = g.max_buses
    if g.action != NO_ACTION:
        out[TABLE_AT.action + g.action] = 1
    out[TABLE_AT.space] = g.space
    out[TABLE_AT.power] = g.power
    out[TABLE_AT.space_limit] = g.space_limit
    out[TABLE_AT.bus_limit] = g.bus_limit
    out[TABLE_AT.final_segment] = g.final_segment
    out[TABLE_AT.sharing_again] = g.sharing_again
    out[TABLE_AT.extra_needs_power] = g.extra_needs_power
    for action in range(7):
        out[TABLE_AT.taken + action] = g.taken[action]
    out[TABLE_AT.next_power] = _next_power(g, BoardAction.LINE_EXPANSION)
    out[TABLE_AT.next_power + 1] = _next_power(g, BoardAction.PASSENGERS)
    out[TABLE_AT.next_power + 2] = _next_power(g, BoardAction.BUILDINGS)


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
        _rotate(cache, row, INTERSECTION_AT.on_line * width, width, viewer, players)
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
        store_word(row, at + PLAYER_AT.head_shared, head_shared)
        tail_shared = _relative(g.tail_shared[other], viewer, players)
        store_word(row, at + PLAYER_AT.tail_shared, tail_shared)
        copy_bytes(row, at + PLAYER_AT.reached, cache, first_player + PER_SEAT * other, PER_SEAT)
    for slot in range(players, MAX_PLAYERS):
        clear_bytes(row, first_player + PER_PLAYER * slot, PER_PLAYER)
    _write_table(g, row[first_player + PER_PLAYER * MAX_PLAYERS :])
