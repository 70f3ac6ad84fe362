"""Setup: the initial state, first buildings, first lines (R1 to R3)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, bit
from busenv.core.jit import kernel
from busenv.core.rules.lines import offer_growth
from busenv.core.rules.select import begin_round, next_seat
from busenv.core.state import (
    ALL_ACTIONS,
    END_NOT,
    NO_ACTION,
    NOWHERE,
    SETUP_BUILDINGS,
    SETUP_FIRST_LINE,
    SETUP_SECOND_LINE,
)


@kernel
def new_game(g, b, rules, first):
    """Set up a game (R1). rules: a RULES record. first: seat of the first player."""
    players = rules.players
    g.filler[:] = 0
    g.board_tag = b.tag
    g.line[:] = ZERO
    g.marked[:] = ZERO
    g.grow_head[:] = ZERO
    g.grow_tail[:] = ZERO
    g.reach[:] = ZERO
    g.type_sites[:] = ZERO
    g.built[:] = ZERO
    g.peopled = ZERO
    g.waiting = ZERO
    g.vacant = ZERO
    g.free_sites = ~ZERO >> np.uint64(64 - b.sites)
    g.deliveries[:] = 0
    g.delivery_order[:] = 0
    g.delivered = 0
    g.round = 0
    g.passengers[:] = 0
    for k in range(rules.start_passengers):
        intersection = b.roundabout[k % b.roundabouts]
        g.passengers[intersection] += 1
        g.peopled |= bit(intersection)
    g.spaces[:] = 0
    g.taken[:] = 0
    g.placed[:] = 0
    g.stones[:] = 0
    g.markers[:] = 0
    g.line_markers[:] = 0
    g.buses[:] = 0
    for seat in range(players):
        g.markers[seat] = rules.action_markers
        g.line_markers[seat] = rules.line_markers[seat]
        g.buses[seat] = 1
    g.head[:] = NOWHERE
    g.tail[:] = NOWHERE
    g.head_street[:] = NOWHERE
    g.tail_street[:] = NOWHERE
    g.head_shared[:] = 0
    g.tail_shared[:] = 0
    g.players = players
    g.phase = SETUP_BUILDINGS
    g.seat = first
    g.first = first
    g.start = first
    g.choosing = 0
    g.open = ALL_ACTIONS
    g.clock = 0
    g.clock_stones = rules.time_stones
    g.action_markers = rules.action_markers
    g.supply = rules.passengers - rules.start_passengers
    g.zone = 0
    g.max_buses = 1
    g.action = NO_ACTION
    g.space = 0
    g.power = 2
    g.ending = END_NOT
    g.space_limit = rules.spaces
    g.bus_limit = rules.bus_limit
    g.final_segment = rules.final_segment
    g.sharing_again = rules.sharing_again
    g.extra_needs_power = rules.extra_needs_power


@kernel
def _previous_seat(g, seat):
    return seat - 1 if seat > 0 else g.players - 1


@kernel
def set_up_building(g, b):
    """Go to the next first building (two a seat, once round), or to the first lines (R2)."""
    g.power -= 1
    if g.power == 0:
        g.power = 2
        g.seat = next_seat(g, g.seat)
        if g.seat == g.first:
            g.phase = SETUP_FIRST_LINE
    if g.free_sites == ZERO:
        g.phase = SETUP_FIRST_LINE
        g.seat = g.first
    if g.phase == SETUP_FIRST_LINE:
        g.power = 0


@kernel
def set_up_line(g, b):
    """Go to the next first line marker, or second one in reverse order, or to round 1 (R3)."""
    if g.phase == SETUP_FIRST_LINE:
        if next_seat(g, g.seat) != g.first:
            g.seat = next_seat(g, g.seat)
            return
        g.phase = SETUP_SECOND_LINE
    elif g.seat == g.first:
        begin_round(g)
        return
    else:
        g.seat = _previous_seat(g, g.seat)
    while not offer_growth(g, b, g.seat):
        if g.seat == g.first:
            begin_round(g)
            return
        g.seat = _previous_seat(g, g.seat)
