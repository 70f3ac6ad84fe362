"""One step of a game: an action, and the rules up to the next decision (R6, R18, R19)."""

from __future__ import annotations

from busenv.core.bits import ZERO
from busenv.core.jit import kernel
from busenv.core.rules.clock import set_time, stop_time
from busenv.core.rules.drive import pick_up, set_down
from busenv.core.rules.lines import grow_line, start_line
from busenv.core.rules.resolve import arrive, begin_resolving, build, resolve
from busenv.core.rules.select import begin_round, choose, next_seat
from busenv.core.rules.setup import set_up_building, set_up_line
from busenv.core.state import (
    END_MARKERS,
    END_SITES,
    END_TIME,
    FIRST_BUILD,
    NO_ACTION,
    BoardAction,
    Phase,
)


@kernel
def end_round(g):
    """Set the next starting player (R18), and end the game or begin a round (R19)."""
    if g.taken[BoardAction.STARTING_PLAYER] > 0:
        g.start = g.spaces[BoardAction.STARTING_PLAYER, 0]
    else:
        g.start = next_seat(g, g.start)
    holders = 0
    for seat in range(g.players):
        holders += g.markers[seat] > 0
    if g.free_sites == ZERO:
        _finish(g, END_SITES)
    elif holders <= 1:
        _finish(g, END_MARKERS)
    else:
        begin_round(g)


@kernel
def _finish(g, ending):
    """End the game (R15, R19)."""
    g.phase = Phase.OVER
    g.seat = 0
    g.ending = ending
    g.action = NO_ACTION
    g.space = 0
    g.power = 0
    g.waiting = ZERO
    g.vacant = ZERO


@kernel
def _continue_round(g, b):
    """Resolve actions up to the next decision or the next round (R6)."""
    if not resolve(g, b):
        end_round(g)


@kernel
def step(g, b, action):
    """Take a legal action and apply the rules up to the next decision."""
    phase = g.phase
    if phase == Phase.SELECT_ACTIONS:
        if not choose(g, action):
            begin_resolving(g)
            _continue_round(g, b)
        return
    if phase == Phase.SETUP_BUILDINGS or phase == Phase.BUILDINGS:
        build(g, b, (action - FIRST_BUILD) // 3, (action - FIRST_BUILD) % 3)
        if phase == Phase.SETUP_BUILDINGS:
            set_up_building(g, b)
            return
        g.power -= 1
    elif phase == Phase.SETUP_FIRST_LINE:
        start_line(g, b, g.seat, (action - b.first_street) >> 1)
        set_up_line(g, b)
        return
    elif phase == Phase.LINE_EXPANSION or phase == Phase.SETUP_SECOND_LINE:
        line_action = action - b.first_street
        grow_line(g, b, g.seat, line_action >> 1, line_action & 1)
        if phase == Phase.SETUP_SECOND_LINE:
            set_up_line(g, b)
            return
        g.power -= 1
    elif phase == Phase.PASSENGERS:
        arrive(g, b, action - b.first_split)
    elif phase == Phase.CLOCK:
        stopped = action > b.first_clock
        if stopped and stop_time(g) == 0:
            _finish(g, END_TIME)
            return
        set_time(g, b, stopped)
    elif phase == Phase.PICK_UP:
        pick_up(g, b, action - b.first_pick)
        return
    else:
        set_down(g, b, action - b.first_set)
    _continue_round(g, b)
