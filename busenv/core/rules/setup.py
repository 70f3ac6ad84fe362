"""Setup: the initial state, first buildings, first lines (R1 to R3)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, bit, clear_bytes
from busenv.core.jit import kernel
from busenv.core.rules.lines import offer_growth
from busenv.core.rules.select import begin_round, next_seat
from busenv.core.state import ALL_ACTIONS, GAME, NO_ACTION, NOWHERE, Phase

SIZE = GAME.itemsize


@kernel
def new_game(g, b, rules, first):
    """Set up a game (R1). rules: a RULES record. first: seat of the first player."""
    players = rules.players
    clear_bytes(g, 0, SIZE)
    g.board_tag = b.tag
    g.free_sites = ~ZERO >> np.uint64(64 - b.sites)
    for k in range(rules.start_passengers):
        intersection = b.roundabout[k % b.roundabouts]
        g.passengers[intersection] += 1
        g.occupied |= bit(intersection)
    for seat in range(players):
        g.markers[seat] = rules.action_markers
        g.line_markers[seat] = rules.line_markers[seat]
        g.buses[seat] = 1
    g.head[:] = NOWHERE
    g.tail[:] = NOWHERE
    g.head_street[:] = NOWHERE
    g.tail_street[:] = NOWHERE
    g.players = players
    g.phase = Phase.SETUP_BUILDINGS
    g.seat = first
    g.first = first
    g.start = first
    g.open = ALL_ACTIONS
    g.clock_stones = rules.time_stones
    g.action_markers = rules.action_markers
    g.supply = rules.passengers - rules.start_passengers
    g.max_buses = 1
    g.action = NO_ACTION
    g.power = 2
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
    """Go to the next first building (two per seat, once round), or to the first lines (R2)."""
    g.power -= 1
    if g.power == 0:
        g.power = 2
        g.seat = next_seat(g, g.seat)
        if g.seat == g.first:
            g.phase = Phase.SETUP_FIRST_LINE
    if g.free_sites == ZERO:
        g.phase = Phase.SETUP_FIRST_LINE
        g.seat = g.first
    if g.phase == Phase.SETUP_FIRST_LINE:
        g.power = 0


@kernel
def set_up_line(g, b):
    """Go to the next first line marker, or second one in reverse order, or to round 1 (R3)."""
    if g.phase == Phase.SETUP_FIRST_LINE:
        if next_seat(g, g.seat) != g.first:
            g.seat = next_seat(g, g.seat)
            return
        g.phase = Phase.SETUP_SECOND_LINE
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
