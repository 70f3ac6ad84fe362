"""Validation of GAME records from files and other programs, before kernels use them.

Kernels index arrays by the fields of a record. The checks cover every field that is an index, and
every field that a legal action or the end of a game depends on: with a record that passes, kernels
stay within their arrays and finish. The state need not be reachable by play: `Game.from_position`
also checks points, supplies and buildings.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import EACH, TOPS, ZERO, bit, has, load_word, spread
from busenv.core.jit import kernel
from busenv.core.rules.legal import open_sites, pick_ups, set_downs
from busenv.core.rules.lines import growth
from busenv.core.rules.select import next_seat
from busenv.core.state import (
    ACT_BUILDINGS,
    ACT_BUSES,
    ACT_CLOCK,
    ACT_LINES,
    ACT_PASSENGERS,
    ACT_START,
    ACT_VROOM,
    ALWAYS,
    BUILDINGS,
    CLOCK,
    FIELD,
    LINE_EXPANSION,
    MAX_SPACES,
    NO_ACTION,
    NUM_SPLITS,
    OVER,
    PASSENGERS,
    PICK_UP,
    SELECT_ACTIONS,
    SET_DOWN,
    SETUP_BUILDINGS,
    SETUP_FIRST_LINE,
    SETUP_SECOND_LINE,
    offset,
)

VALID = -1  # kernels return this or the index of an invalid field (FIELD)
# Words of one byte for each action, as in the record; the eighth byte belongs to no action.
SPACES_FROM, TAKEN_FROM = offset("spaces"), offset("taken")
ALL_SEVEN = np.uint64(0x00FFFFFFFFFFFFFF)
SINGLE = np.uint64(sum(1 << 8 * action for action in (ACT_BUSES, ACT_CLOCK, ACT_START)))
MANY = EACH & ALL_SEVEN & ~SINGLE  # actions with several spaces

# The action that is resolved in each phase (R6).
RESOLVED = np.full(OVER + 1, NO_ACTION, np.int64)
RESOLVED[[LINE_EXPANSION, PASSENGERS, BUILDINGS, CLOCK, PICK_UP, SET_DOWN]] = (
    ACT_LINES, ACT_PASSENGERS, ACT_BUILDINGS, ACT_CLOCK, ACT_VROOM, ACT_VROOM,
)  # fmt: skip


@kernel
def _beyond(word, count):
    """Return whether a set has members from `count` on (0 to 64)."""
    return count < 64 and word >> np.uint64(count) != ZERO


@kernel
def _check_numbers(g, b):
    """Ranges of single fields, on which the other checks depend."""
    if g.players < 3 or g.players > 5:
        return FIELD.players
    if g.seat >= g.players:
        return FIELD.seat
    if g.first >= g.players:
        return FIELD.first
    if g.start >= g.players:
        return FIELD.start
    if g.phase > OVER:
        return FIELD.phase
    if g.ending > 3 or (g.ending == 0) != (g.phase != OVER):
        return FIELD.ending
    if g.clock > 2:
        return FIELD.clock
    if g.supply >= NUM_SPLITS:
        return FIELD.supply
    if g.space > MAX_SPACES:
        return FIELD.space
    if g.zone > b.zones:
        return FIELD.zone
    if g.clock_stones == 0 and g.phase != OVER:
        return FIELD.clock_stones
    return FIELD.action if g.action != RESOLVED[g.phase] else VALID


@kernel
def _check_board(g):
    """The action board: markers of existing seats, and `open` for actions with a free space.

    Compares eight bytes at once: a byte is too great if its highest bit is set, or if subtracting
    it from the limit plus 128 clears that bit.
    """
    if g.space_limit < 1 or g.space_limit > MAX_SPACES:
        return FIELD.space_limit
    limits = MANY * np.uint64(g.space_limit) | SINGLE
    taken = load_word(g, TAKEN_FROM) & ALL_SEVEN
    if taken & TOPS != ZERO or ((limits | TOPS) - taken) & TOPS != TOPS:
        return FIELD.taken
    left = ((limits ^ taken) + ~TOPS) & TOPS  # the highest bit of each byte in which the two differ
    if left >> np.uint64(7) != spread(np.uint64(g.open)):
        return FIELD.open
    high, seats = ZERO, np.uint64(g.players - 1) * EACH | TOPS
    for action in range(7):
        owners = load_word(g, SPACES_FROM + MAX_SPACES * action)
        high |= owners | ~(seats - (owners & ~TOPS))
    return FIELD.spaces if high & TOPS != ZERO else VALID


@kernel
def _check_city(g, b):
    """Sites are on the board, and the zone is the lowest with a free one (R14)."""
    if _beyond(g.free_sites, b.sites):
        return FIELD.free_sites
    for kind in range(3):
        if _beyond(g.type_sites[kind], b.sites):
            return FIELD.type_sites
    for zone in range(g.zone):
        if g.free_sites & b.zone_sites[zone] != ZERO:
            return FIELD.zone
    if g.free_sites != ZERO and (g.zone == b.zones or open_sites(g, b) == ZERO):
        return FIELD.zone
    return VALID


@kernel
def _check_ends(g, b, seat):
    """The ends of a line and their arrival streets are on the board."""
    if g.head[seat] >= b.intersections:
        return FIELD.head
    if g.tail[seat] >= b.intersections:
        return FIELD.tail
    if g.head_street[seat] >= b.streets:
        return FIELD.head_street
    return FIELD.tail_street if g.tail_street[seat] >= b.streets else VALID


@kernel
def _line_owners(g):
    """Seats that have a line: those before the current one in the first round, later all (R3)."""
    if g.phase > SETUP_FIRST_LINE:
        return bit(g.players) - np.uint64(1)
    owners = ZERO
    if g.phase == SETUP_FIRST_LINE:
        seat = g.first
        while seat != g.seat:
            owners |= bit(seat)
            seat = np.uint8(next_seat(g, seat))
    return owners


@kernel
def _seats_to_remember(g, seat, street):
    """The seats that an end of a line may remember: the others on its arrival street (R9a).

    None for a line of one street, whose ends have not moved.
    """
    seats = ZERO
    if g.sharing_again == ALWAYS or g.head_street[seat] == g.tail_street[seat]:
        return seats
    for other in range(g.players):
        if other != seat and has(g.line[other, street >> 6], street & 63):
            seats |= bit(other)
    return seats


@kernel
def _check_lines(g, b):
    """Lines are on the board, and each end remembers only seats that R9a allows."""
    low = high = reach = ZERO
    for seat in range(g.players):
        low |= g.line[seat, 0]
        high |= g.line[seat, 1]
        reach |= g.reach[seat]
    if _beyond(low, min(b.streets, 64)) or _beyond(high, max(b.streets, 64) - 64):
        return FIELD.line
    if _beyond(reach, b.intersections):
        return FIELD.reach
    owners = _line_owners(g)
    for seat in range(g.players):
        head_shared = tail_shared = ZERO
        if g.reach[seat] != ZERO:
            wrong = _check_ends(g, b, seat)
            if wrong != VALID:
                return wrong
            head_shared = _seats_to_remember(g, seat, g.head_street[seat])
            tail_shared = _seats_to_remember(g, seat, g.tail_street[seat])
        elif has(owners, seat):
            return FIELD.reach
        if np.uint64(g.head_shared[seat]) & ~head_shared != ZERO:
            return FIELD.head_shared
        if np.uint64(g.tail_shared[seat]) & ~tail_shared != ZERO:
            return FIELD.tail_shared
    return VALID


@kernel
def _check_offers(g, b):
    """`grow_head` and `grow_tail` are what R8 to R11 give, and not both empty."""
    low, high, tail_low, tail_high = growth(g, b, g.seat)
    if g.grow_head[0] != low or g.grow_head[1] != high:
        return FIELD.grow_head
    if g.grow_tail[0] != tail_low or g.grow_tail[1] != tail_high:
        return FIELD.grow_tail
    return FIELD.grow_head if low | high | tail_low | tail_high == ZERO else VALID


@kernel
def _check_selection(g):
    """Seats that select actions have markers, and there is a free space (R4)."""
    choosing = np.uint64(g.choosing)
    if choosing >> np.uint64(g.players) != ZERO or not has(choosing, g.seat):
        return FIELD.choosing
    for seat in range(g.players):
        if has(choosing, seat) and g.markers[seat] == 0:
            return FIELD.markers
    return FIELD.open if g.open == 0 else VALID


@kernel
def _check_setup(g):
    """All seats have markers for the first round (R1)."""
    for seat in range(g.players):
        if g.markers[seat] == 0:
            return FIELD.markers
    if g.phase == SETUP_BUILDINGS and g.power > 2:
        return FIELD.power
    return VALID


@kernel
def _check_turn(g, b):
    """The decision of the phase has a legal action."""
    phase = g.phase
    if phase == SELECT_ACTIONS:
        return _check_selection(g)
    if phase < SELECT_ACTIONS:
        wrong = _check_setup(g)
        if wrong != VALID:
            return wrong
    powered = phase == SETUP_BUILDINGS or (LINE_EXPANSION <= phase <= SET_DOWN and phase != CLOCK)
    if powered and g.power == 0:
        return FIELD.power
    if (phase == BUILDINGS or phase == SETUP_BUILDINGS) and g.free_sites == ZERO:
        return FIELD.free_sites
    if phase == LINE_EXPANSION or phase == SETUP_SECOND_LINE:
        return _check_offers(g, b)
    if phase == PICK_UP and pick_ups(g) == ZERO:
        return FIELD.waiting
    if (phase == PICK_UP or phase == SET_DOWN) and set_downs(g) == ZERO:
        return FIELD.vacant
    return VALID


@kernel
def _check(g, b):
    """Index of the first invalid field, or VALID."""
    wrong = _check_numbers(g, b)
    if wrong == VALID:
        wrong = _check_board(g)
    if wrong == VALID:
        wrong = _check_city(g, b)
    if wrong == VALID:
        wrong = _check_lines(g, b)
    return _check_turn(g, b) if wrong == VALID else wrong


@kernel
def first_invalid(games, board):
    """Return the first invalid game and the index of its invalid field, or (-1, -1).

    The games' tags must be the board's.
    """
    for i in range(games.shape[0]):
        wrong = _check(games[i], board[0])
        if wrong != VALID:
            return i, wrong
    return -1, VALID
