"""Begin a game; apply a legal action and run on to the next decision (R1 to R6, R18, R19)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import ZERO, bit, lowest
from busenv.core.jit import kernel
from busenv.core.rules.lines import grow_line, offer_growth, start_line
from busenv.core.rules.resolve import arrive, build, pick_up, resolve, set_down, set_time
from busenv.core.state import (
    ACT_BUSES,
    ACT_CLOCK,
    ACT_LINES,
    ACT_START,
    BUILDINGS,
    CLOCK,
    END_MARKERS,
    END_NOT,
    END_SITES,
    END_TIME,
    FIRST_BUILD,
    LINE_EXPANSION,
    NO_ACTION,
    NOWHERE,
    OVER,
    PASS,
    PASSENGERS,
    PICK_UP,
    SELECT_ACTIONS,
    SETUP_BUILDINGS,
    SETUP_FIRST_LINE,
    SETUP_SECOND_LINE,
    SPACE_AT,
)


@kernel
def new_game(g, b, rules, first):
    """Set up a game (R1): `rules` is a RULES record, `first` the starting player."""
    players = rules.players
    g.spare[:] = 0
    g.unused = 0
    g.markers_changed = 0
    g.last_marker = 0
    g.last_owner = 0
    g.board_tag = b.tag
    g.lines_changed = 0
    g.city_changed = 0
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
    g.last_delivery[:] = 0
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
    g.players = players
    g.phase = SETUP_BUILDINGS
    g.seat = first
    g.first = first
    g.start = first
    g.choosing = 0
    g.open = 0
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


@kernel
def _next_seat(g, seat):
    """The next seat clockwise."""
    return seat + 1 if seat + 1 < g.players else 0


@kernel
def _previous_seat(g, seat):
    return seat - 1 if seat > 0 else g.players - 1


@kernel
def _set_up_building(g, b):
    """After a first building: the same seat's second, the next seat, or the first lines (R2)."""
    g.power -= 1
    if g.power == 0:
        g.power = 2
        g.seat = _next_seat(g, g.seat)
        if g.seat == g.first:
            g.phase = SETUP_FIRST_LINE
    if g.free_sites == ZERO:
        g.phase = SETUP_FIRST_LINE
        g.seat = g.first
    if g.phase == SETUP_FIRST_LINE:
        g.power = 0


@kernel
def _set_up_line(g, b):
    """After a first or second line marker: on round the table, there and back (R3)."""
    if g.phase == SETUP_FIRST_LINE:
        if _next_seat(g, g.seat) != g.first:
            g.seat = _next_seat(g, g.seat)
            return
        g.phase = SETUP_SECOND_LINE
    elif g.seat == g.first:
        _begin_round(g)
        return
    else:
        g.seat = _previous_seat(g, g.seat)
    while not offer_growth(g, b, g.seat):
        if g.seat == g.first:
            _begin_round(g)
            return
        g.seat = _previous_seat(g, g.seat)


@kernel
def _begin_round(g):
    """Clear the action board and let the starting player choose (R4)."""
    g.round += 1
    g.phase = SELECT_ACTIONS
    g.action = NO_ACTION
    g.power = 0
    g.taken[:] = 0
    g.placed[:] = 0
    g.markers_changed += 2  # more than one marker
    g.open = 127
    g.choosing = 0
    for seat in range(g.players):
        if g.markers[seat] > 0:
            g.choosing |= 1 << seat
    g.seat = _first_choosing(g, g.start)


@kernel
def _first_choosing(g, seat):
    """The first seat from `seat` on, clockwise, that still chooses."""
    choosing = np.uint64(g.choosing)
    later = choosing >> np.uint64(seat)
    return seat + lowest(later) if later != ZERO else lowest(choosing)


@kernel
def _choose(g, b, action):
    """Place a marker, or pass for the round (R4, R5); then the next to choose, or resolve."""
    seat = g.seat
    if action == PASS:
        g.choosing &= ~(1 << seat)
    else:
        g.spaces[action, g.taken[action]] = seat
        g.last_marker = SPACE_AT[action] + g.taken[action]
        g.last_owner = seat
        g.markers_changed += 1
        g.taken[action] += 1
        single = action == ACT_BUSES or action == ACT_CLOCK or action == ACT_START
        if single or g.taken[action] == g.space_limit:
            g.open &= ~(1 << action)
        g.placed[seat] += 1
        g.markers[seat] -= 1
        if g.markers[seat] == 0:
            g.choosing &= ~(1 << seat)
    if g.choosing != 0 and g.open != 0:
        g.seat = _first_choosing(g, _next_seat(g, seat))
        return
    g.action = ACT_LINES
    g.space = g.taken[ACT_LINES]
    g.power = 0
    _run_on(g, b)


@kernel
def _run_on(g, b):
    """Resolve actions up to the next decision, or through the end of the round (R18, R19)."""
    if resolve(g, b):
        return
    if g.taken[ACT_START] > 0:
        g.start = g.spaces[ACT_START, 0]
    else:
        g.start = _next_seat(g, g.start)
    holders = 0
    for seat in range(g.players):
        holders += g.markers[seat] > 0
    if g.free_sites == ZERO:
        _finish(g, END_SITES)
    elif holders <= 1:
        _finish(g, END_MARKERS)
    else:
        _begin_round(g)


@kernel
def _finish(g, ending):
    g.phase = OVER
    g.ending = ending
    g.action = NO_ACTION


@kernel
def step(g, b, action):
    """Apply an action, which must be legal, and run on to the next decision."""
    phase = g.phase
    if phase == SELECT_ACTIONS:
        _choose(g, b, action)
        return
    if phase == SETUP_BUILDINGS or phase == BUILDINGS:
        build(g, b, (action - FIRST_BUILD) // 3, (action - FIRST_BUILD) % 3)
        if phase == SETUP_BUILDINGS:
            _set_up_building(g, b)
            return
        g.power -= 1
    elif phase == SETUP_FIRST_LINE:
        start_line(g, b, g.seat, (action - b.first_street) >> 1)
        _set_up_line(g, b)
        return
    elif phase == LINE_EXPANSION or phase == SETUP_SECOND_LINE:
        line_action = action - b.first_street
        grow_line(g, b, g.seat, line_action >> 1, line_action & 1)
        if phase == SETUP_SECOND_LINE:
            _set_up_line(g, b)
            return
        g.power -= 1
    elif phase == PASSENGERS:
        arrive(g, b, action - b.first_split)
    elif phase == CLOCK:
        if action > b.first_clock:
            g.city_changed += 1
            g.stones[g.seat] += 1
            g.clock_stones -= 1
            if g.clock_stones == 0:
                _finish(g, END_TIME)
                return
        set_time(g, b, action > b.first_clock)
    elif phase == PICK_UP:
        pick_up(g, b, action - b.first_pick)
        return
    else:
        set_down(g, b, action - b.first_set)
    _run_on(g, b)
