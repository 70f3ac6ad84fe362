"""The records that the compiled core works on, field by field, and its numbers.

A set of intersections or sites is one uint64 (bit i: entry i), a set of streets two. Everything
that a decision needs is in `GAME`, a few hundred bytes with no pointer in it: copying the record
clones the game.
"""

from __future__ import annotations

import numpy as np

MAX_INTERSECTIONS, MAX_STREETS, MAX_SITES, MAX_PLAYERS = 64, 128, 64, 5
MAX_SPACES = 8  # of a multi-use action; the rules use six
NO_LIMIT = 255  # line markers: without limit, never counted down
NOWHERE = 255  # an end of a line before its first marker

# Phases (busenv.Phase).
SETUP_BUILDINGS, SETUP_FIRST_LINE, SETUP_SECOND_LINE, SELECT_ACTIONS = 0, 1, 2, 3
LINE_EXPANSION, PASSENGERS, BUILDINGS, CLOCK, PICK_UP, SET_DOWN, OVER = 4, 5, 6, 7, 8, 9, 10

# The seven actions, in the order in which they are resolved (R6).
ACT_LINES, ACT_BUSES, ACT_PASSENGERS, ACT_BUILDINGS, ACT_CLOCK, ACT_VROOM, ACT_START = range(7)
PASS = 7
FIRST_BUILD = 8  # 8 + 3 * site + type
MAX_SPLIT = 12  # passengers to the first station: 0..11
NO_ACTION = 255

# Where the spaces of each action stand among all; Buses, Clock and Starting Player have one. An
# array, since numba looks a number up in a tuple by a chain of branches.
SPACE_AT = np.array([0, 8, 9, 17, 25, 26, 34])
ALL_SPACES = 35

# How a game ended.
END_NOT, END_TIME, END_SITES, END_MARKERS = 0, 1, 2, 3

_B, _H, _W = np.uint8, np.uint16, np.uint64

BOARD = np.dtype(
    [
        ("incident", _W, (MAX_INTERSECTIONS, 2)),  # streets at each intersection
        ("intersection_sites", _W, MAX_INTERSECTIONS),  # sites at each intersection
        ("zone_sites", _W, MAX_SITES),  # sites of each zone, lowest first
        # Where each segment of the action ids begins.
        ("first_street", _H),
        ("first_split", _H),
        ("first_clock", _H),
        ("first_pick", _H),
        ("first_set", _H),
        ("actions", _H),
        ("tag", np.uint32),  # tells boards apart (from their fingerprints)
        ("street_ends", _B, (MAX_STREETS, 2)),
        ("site_intersection", _B, MAX_SITES),
        ("roundabout", _B, MAX_INTERSECTIONS),  # intersections with a roundabout, then padding
        ("station", _B, 2),
        ("intersections", _B),
        ("streets", _B),
        ("sites", _B),
        ("zones", _B),
        ("roundabouts", _B),
    ],
    align=True,
)

GAME = np.dtype(
    [
        ("line", _W, (MAX_PLAYERS, 2)),  # streets that bear a seat's markers
        ("marked", _W, 2),  # streets that bear anybody's marker
        ("grow_head", _W, 2),  # line decisions: where the end that moved last may go
        ("grow_tail", _W, 2),  # ... and where the other end may go
        ("reach", _W, MAX_PLAYERS),  # intersections on a seat's line
        ("free_sites", _W),
        ("type_sites", _W, 3),  # sites built on, by type
        ("built", _W, 3),  # intersections with a building of the type
        ("peopled", _W),  # intersections with a passenger
        ("waiting", _W),  # after the clock: intersections with a waiting passenger (R16)
        ("vacant", _W),  # ... and with a free matching building
        ("deliveries", _H, MAX_PLAYERS),
        ("last_delivery", _H, MAX_PLAYERS),  # its number among all deliveries of the game
        ("delivered", _H),  # all deliveries so far
        ("lines_changed", _H),  # counts what changes lines, and what changes the city around them,
        ("city_changed", _H),  # and the action board, so that a picture of them need not be
        ("markers_changed", _H),  # painted anew (core.scene)
        ("unused", _H),  # keeps what follows in step with its size
        ("round", _H),
        ("board_tag", np.uint32),  # of the board that the game is played on
        ("passengers", _B, MAX_INTERSECTIONS),
        ("spaces", _B, (7, MAX_SPACES)),  # whose marker lies on each space
        ("taken", _B, 7),  # spaces taken of each action
        ("markers", _B, MAX_PLAYERS),  # action markers in hand
        ("line_markers", _B, MAX_PLAYERS),
        ("buses", _B, MAX_PLAYERS),
        ("stones", _B, MAX_PLAYERS),
        ("placed", _B, MAX_PLAYERS),  # markers placed this round
        ("head", _B, MAX_PLAYERS),  # intersection of the end that moved last
        ("tail", _B, MAX_PLAYERS),
        ("head_street", _B, MAX_PLAYERS),  # street by which that end arrived
        ("tail_street", _B, MAX_PLAYERS),
        ("players", _B),
        ("phase", _B),
        ("seat", _B),  # who decides
        ("first", _B),  # starting player of the game
        ("start", _B),  # ... of the round
        ("choosing", _B),  # bit per seat: has a marker and has not passed
        ("open", _B),  # bit per action: has a space left
        ("clock", _B),  # 0 house, 1 office, 2 pub
        ("clock_stones", _B),  # left on the clock
        ("supply", _B),  # passengers not yet in the city
        ("zone", _B),  # lowest zone with a free site; number of zones when there is none
        ("max_buses", _B),
        ("action", _B),  # being resolved; NO_ACTION outside of that
        ("space", _B),  # the next of its spaces (the last-resolved one's index when descending)
        ("power", _B),  # what is left of the current marker, or of the two first buildings
        ("ending", _B),
        # Rules.
        ("space_limit", _B),
        ("bus_limit", _B),
        ("final_segment", _B),
        ("last_marker", _B),  # place of the marker laid last among all spaces (SPACE_AT), and whose
        ("last_owner", _B),
        ("action_markers", _B),  # that each seat began with, for those who judge what is left
        ("spare", _B, 2),  # fills the last word, so that equal games have equal bytes
    ],
    align=True,
)

# What new_game takes: the rules as numbers (busenv.Rules.record).
RULES = np.dtype(
    [
        ("line_markers", _B, MAX_PLAYERS),
        ("action_markers", _B),
        ("bus_limit", _B),
        ("spaces", _B),
        ("time_stones", _B),
        ("passengers", _B),
        ("start_passengers", _B),
        ("final_segment", _B),
        ("players", _B),
    ]
)
