"""Validation of GAME records from files, positions and other programs, before kernels use them.

Kernels index arrays by the fields of a record and trust them. A valid record has derived fields
that follow from the others, and offers a legal action, so kernels stay within their arrays and
finish. The state need not be reachable by play: the setup may be incomplete, markers may have
been placed out of turn, and the sharing of streets is not traced.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ONE, ZERO, bit, has, load_word, lowest
from busenv.core.jit import gil_kernel, kernel
from busenv.core.observation_cache import street_ends
from busenv.core.rules.clock import find_waiting
from busenv.core.rules.legal import pick_ups, set_downs
from busenv.core.rules.lines import offer_growth
from busenv.core.rules.resolve import power_of
from busenv.core.rules.select import next_seat, num_spaces
from busenv.core.state import (
    ALWAYS,
    END_MARKERS,
    END_SITES,
    END_TIME,
    FIELD,
    FIELDS,
    GAME,
    MAX_SPACES,
    NO_ACTION,
    NOWHERE,
    NUM_SPLITS,
    RESOLVED_IN,
    Phase,
    offset,
)

VALID = -1  # kernels return this or the index of an invalid field (FIELD)
OFFSETS = np.array([offset(field) for field in FIELDS])
WORDS = GAME.itemsize // 8
# The action that is resolved in each phase (R6).
RESOLVED = np.array([RESOLVED_IN.get(phase, NO_ACTION) for phase in Phase], np.uint8)


@kernel
def _beyond(word, count):
    """Return whether a set has members from `count` on (0 to 64)."""
    return count < 64 and word >> np.uint64(count) != ZERO


@kernel
def _check_ranges(g, b):
    """Fields that index arrays, on which everything else depends."""
    if g.players < 3 or g.players > 5:
        return FIELD.players
    if g.seat >= g.players:
        return FIELD.seat
    if g.first >= g.players:
        return FIELD.first
    if g.start >= g.players:
        return FIELD.start
    if g.phase > Phase.OVER:
        return FIELD.phase
    if g.clock > 2:
        return FIELD.clock
    if g.supply >= NUM_SPLITS:
        return FIELD.supply
    if g.space_limit < 1 or g.space_limit > MAX_SPACES:
        return FIELD.space_limit
    for action in range(7):
        if g.taken[action] > num_spaces(g, action):
            return FIELD.taken
        for space in range(MAX_SPACES):
            if g.spaces[action, space] >= (g.players if space < g.taken[action] else 1):
                return FIELD.spaces
    built = ZERO
    for kind in range(3):
        if _beyond(g.type_sites[kind], b.sites) or built & g.type_sites[kind] != ZERO:
            return FIELD.type_sites
        built |= g.type_sites[kind]
    for seat in range(g.players):
        low, high = g.line[seat, 0], g.line[seat, 1]
        if _beyond(low, min(b.streets, 64)) or _beyond(high, max(b.streets, 64) - 64):
            return FIELD.line
    return VALID


@kernel
def derive(g, b):
    """Write the fields of a state that follow from its other fields and the board."""
    g.max_buses = g.delivered = 0
    g.marked[:] = ZERO
    for seat in range(g.players):
        g.max_buses = max(g.max_buses, g.buses[seat])
        g.delivered += g.deliveries[seat]
        g.marked[0] |= g.line[seat, 0]
        g.marked[1] |= g.line[seat, 1]
        g.reach[seat], _ = street_ends(b, g.line[seat, 0], g.line[seat, 1])
    g.placed[:] = g.open = 0
    for action in range(7):
        g.open |= np.uint8(g.taken[action] < num_spaces(g, action)) << action
        for space in range(g.taken[action]):
            g.placed[g.spaces[action, space]] += 1
    g.occupied = ZERO
    for intersection in range(b.intersections):
        if g.passengers[intersection] > 0:
            g.occupied |= bit(intersection)
    g.free_sites = ~ZERO >> np.uint64(64 - b.sites)
    for kind in range(3):
        g.free_sites &= ~g.type_sites[kind]
        g.built[kind] = ZERO
        rest = g.type_sites[kind]
        while rest != ZERO:
            g.built[kind] |= bit(b.site_intersection[lowest(rest)])
            rest &= rest - ONE
    g.zone = 0
    while g.zone < b.zones and g.free_sites & b.zone_sites[g.zone] == ZERO:
        g.zone += 1
    g.action = RESOLVED[g.phase]
    g.ending = 0
    if g.phase == Phase.OVER:
        running_out = END_SITES if g.free_sites == ZERO else END_MARKERS
        g.ending = END_TIME if g.clock_stones == 0 else running_out
    g.grow_head[:] = ZERO
    g.grow_tail[:] = ZERO
    if g.phase == Phase.LINE_EXPANSION or g.phase == Phase.SETUP_SECOND_LINE:
        offer_growth(g, b, g.seat)
    g.waiting = g.vacant = ZERO
    if g.phase == Phase.PICK_UP or g.phase == Phase.SET_DOWN:
        find_waiting(g, b)


@gil_kernel
def derive_state(game, board):
    """Write the derived fields of a state: GAME, (1,). board: BOARD, (1,)."""
    derive(game[0], board[0])


@kernel
def _first_difference(g, other):
    """Index of the first field in which two states differ, or VALID."""
    for k in range(WORDS):
        different = load_word(g, 8 * k) ^ load_word(other, 8 * k)
        if different != ZERO:
            byte = 8 * k + np.int64(lowest(different) >> np.uint64(3))
            return np.searchsorted(OFFSETS, byte, "right") - 1
    return VALID


@kernel
def _line_owners(g):
    """Seats that have a line: those before the current one in the first round, later all (R3)."""
    if g.phase > Phase.SETUP_FIRST_LINE:
        return bit(g.players) - ONE
    owners = ZERO
    if g.phase == Phase.SETUP_FIRST_LINE:
        seat = g.first
        while seat != g.seat:
            owners |= bit(seat)
            seat = np.uint8(next_seat(g, seat))
    return owners


@kernel
def _opposite(b, street, end):
    """The other end of a street."""
    return b.street_ends[street, 1 if b.street_ends[street, 0] == end else 0]


@kernel
def _is_trail(g, b, seat):
    """Return whether a line is a trail that begins and ends with its arrival streets (R8, R11).

    The other streets must form a trail between the far ends of these two: connected, with an even
    number of streets everywhere but at two different ends (Euler).
    """
    low, high = g.line[seat, 0], g.line[seat, 1]
    inner = ZERO  # set of the far ends, empty if they are one
    for k in range(2):
        end = g.head[seat] if k == 0 else g.tail[seat]
        street = g.head_street[seat] if k == 0 else g.tail_street[seat]
        if street >= b.streets or not has(g.line[seat, street >> 6], street & 63):
            return False
        if b.street_ends[street, 0] != end and b.street_ends[street, 1] != end:
            return False
        inner ^= bit(_opposite(b, street, end))
        if street < 64:
            low &= ~bit(street)
        else:
            high &= ~bit(street - 64)
    if g.head_street[seat] == g.tail_street[seat]:
        return g.head[seat] != g.tail[seat] and low | high == ZERO
    _, odd = street_ends(b, low, high)
    if odd != inner:
        return False
    reached = frontier = bit(_opposite(b, g.head_street[seat], g.head[seat]))
    while frontier != ZERO:
        k = lowest(frontier)
        here_low, here_high = b.incident[k, 0] & low, b.incident[k, 1] & high
        low &= ~here_low
        high &= ~here_high
        ends, _ = street_ends(b, here_low, here_high)
        frontier = (frontier & (frontier - ONE)) | (ends & ~reached)
        reached |= ends
    return low | high == ZERO


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
    """Lines are trails, and each end remembers only seats that R9a allows."""
    owners = _line_owners(g)
    for seat in range(g.players):
        has_line = g.reach[seat] != ZERO
        if has_line != has(owners, seat) or (has_line and not _is_trail(g, b, seat)):
            return FIELD.line
        if not has_line and (g.head[seat] != NOWHERE or g.tail[seat] != NOWHERE):
            return FIELD.head
        head_shared = tail_shared = ZERO
        if has_line:
            head_shared = _seats_to_remember(g, seat, g.head_street[seat])
            tail_shared = _seats_to_remember(g, seat, g.tail_street[seat])
        if np.uint64(g.head_shared[seat]) & ~head_shared != ZERO:
            return FIELD.head_shared
        if np.uint64(g.tail_shared[seat]) & ~tail_shared != ZERO:
            return FIELD.tail_shared
    return VALID


@kernel
def _check_pieces(g, b):
    """Markers, zones (R14), and the order of the last deliveries (R20)."""
    holders, ranks, ranked = 0, ZERO, ZERO
    for seat in range(g.players):
        if np.int64(g.markers[seat]) + np.int64(g.placed[seat]) > g.action_markers:
            return FIELD.markers
        holders += g.markers[seat] > 0
        if (g.deliveries[seat] > 0) != (g.delivery_order[seat] > 0) or g.delivery_order[seat] > 5:
            return FIELD.delivery_order
        if g.deliveries[seat] > 0:
            ranks |= bit(g.delivery_order[seat] - 1)
            ranked = ranked << ONE | ONE
    if ranks != ranked:
        return FIELD.delivery_order
    for zone in range(g.zone + 1, b.zones):
        if b.zone_sites[zone] & ~g.free_sites != ZERO:
            return FIELD.type_sites
    if g.clock_stones == 0 and g.phase != Phase.OVER:
        return FIELD.clock_stones
    return FIELD.ending if g.ending == END_MARKERS and holders > 1 else VALID


@kernel
def _check_selection(g):
    """Round 0 is the setup (R1). Seats have markers in it and while they select actions (R4)."""
    in_setup, choosing = g.phase < Phase.SELECT_ACTIONS, np.uint64(g.choosing)
    if (g.round == 0) != in_setup:
        return FIELD.round
    if g.phase == Phase.SELECT_ACTIONS:
        if choosing >> np.uint64(g.players) != ZERO or not has(choosing, g.seat):
            return FIELD.choosing
    elif choosing != ZERO:
        return FIELD.choosing
    for seat in range(g.players):
        if (in_setup or has(choosing, seat)) and g.markers[seat] == 0:
            return FIELD.markers
        if in_setup and g.placed[seat] > 0:
            return FIELD.spaces
    return FIELD.open if g.phase == Phase.SELECT_ACTIONS and g.open == 0 else VALID


@kernel
def _check_resolution(g):
    """The marker that is resolved is the seat's, with the power that it can have (R2, R6, R7)."""
    driving = g.phase == Phase.PICK_UP or g.phase == Phase.SET_DOWN
    space = np.int64(g.space) - (driving or g.phase == Phase.PASSENGERS)
    if g.action == NO_ACTION:
        if g.space != 0:
            return FIELD.space
    elif space < 0 or space >= g.taken[g.action]:
        return FIELD.space
    elif g.spaces[g.action, space] != g.seat:
        return FIELD.seat
    most = np.int64(2)  # first buildings
    if g.phase != Phase.SETUP_BUILDINGS:
        if g.action == NO_ACTION or g.phase == Phase.CLOCK:
            return FIELD.power if g.power > 0 else VALID
        most = np.int64(g.buses[g.seat]) if driving else power_of(g, g.action, space)
    return FIELD.power if g.power == 0 or g.power > most else VALID


@kernel
def _check_decision(g):
    """The decision of the phase has a legal action."""
    phase = g.phase
    if (phase == Phase.BUILDINGS or phase == Phase.SETUP_BUILDINGS) and g.free_sites == ZERO:
        return FIELD.free_sites
    if phase == Phase.PASSENGERS and g.supply == 0:
        return FIELD.supply
    if phase == Phase.LINE_EXPANSION or phase == Phase.SETUP_SECOND_LINE:
        offered = g.grow_head[0] | g.grow_head[1] | g.grow_tail[0] | g.grow_tail[1]
        return FIELD.grow_head if offered == ZERO else VALID
    if phase == Phase.PICK_UP and pick_ups(g) == ZERO:
        return FIELD.waiting
    if (phase == Phase.PICK_UP or phase == Phase.SET_DOWN) and set_downs(g) == ZERO:
        return FIELD.vacant
    return VALID


@kernel
def _check(g, b, scratch):
    """Index of the first invalid field, or VALID. scratch: a GAME record."""
    wrong = _check_ranges(g, b)
    if wrong != VALID:
        return wrong
    derive(scratch, b)
    wrong = _first_difference(g, scratch)
    if wrong == VALID:
        wrong = _check_lines(g, b)
    if wrong == VALID:
        wrong = _check_pieces(g, b)
    if wrong == VALID:
        wrong = _check_selection(g)
    if wrong == VALID:
        wrong = _check_resolution(g)
    return _check_decision(g) if wrong == VALID else wrong


@kernel
def first_invalid(games, board):
    """Return the first invalid game and the index of its invalid field, or (-1, -1).

    The games' tags must be the board's.
    """
    scratch = np.zeros(1, GAME)
    for i in range(games.shape[0]):
        scratch[0] = games[i]
        wrong = _check(games[i], board[0], scratch[0])
        if wrong != VALID:
            return i, wrong
    return -1, VALID
