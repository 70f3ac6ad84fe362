"""Record types and constants of the compiled core.

A set of intersections or sites is one uint64 (bit i: entry i), a set of streets two. `GAME` holds
the whole state of a game in a few hundred bytes without pointers: copying the record clones the
game. Equal positions have equal bytes: fields that do not apply to a phase are 0 (growth of a line
outside of line decisions, markers of a finished round), and no field depends on the order in which
a position was reached.
"""

from __future__ import annotations

from collections import namedtuple
from enum import IntEnum
from typing import Any

import numpy as np

MAX_INTERSECTIONS, MAX_STREETS, MAX_SITES, MAX_PLAYERS = 64, 128, 64, 5
MAX_SPACES = 8  # of a multi-use action; the rules use six
NO_LIMIT = 255  # line markers without limit, which are not counted
NOWHERE = 255  # end of a line before its first marker


class Phase(IntEnum):
    """The kind of a decision, with its rule."""

    SETUP_BUILDINGS = 0  # type and site of a first building (R2)
    SETUP_FIRST_LINE = 1  # any street (R3)
    SETUP_SECOND_LINE = 2  # a street that the line may grow onto (R3, R8 to R10)
    SELECT_ACTIONS = 3  # an action to place a marker on, or to pass (R4)
    LINE_EXPANSION = 4  # a street that the line may grow onto (R8 to R11)
    PASSENGERS = 5  # how many to the first station (R13)
    BUILDINGS = 6  # type and site (R14)
    CLOCK = 7  # advance or stop (R15)
    PICK_UP = 8  # from which intersection (R17)
    SET_DOWN = 9  # at which intersection (R17)
    OVER = 10  # no decision (R15, R19)


OVER = int(Phase.OVER)  # for NumPy, which compares arrays more slowly with the member of an enum


class BoardAction(IntEnum):
    """The seven actions, in the order in which they are resolved (R6); ids 0 to 6."""

    LINE_EXPANSION = 0
    BUSES = 1
    PASSENGERS = 2
    BUILDINGS = 3
    CLOCK = 4
    VRROOOMM = 5
    STARTING_PLAYER = 6


class Building(IntEnum):
    """Types of buildings, which are also the steps of the clock in order (R15)."""

    HOUSE = 0
    OFFICE = 1
    PUB = 2


SINGLE = (BoardAction.BUSES, BoardAction.CLOCK, BoardAction.STARTING_PLAYER)  # one space each (R5)
# The action whose marker is resolved in a phase (R6); Buses and Starting Player take no decision.
RESOLVED_IN = {
    Phase.LINE_EXPANSION: BoardAction.LINE_EXPANSION,
    Phase.PASSENGERS: BoardAction.PASSENGERS,
    Phase.BUILDINGS: BoardAction.BUILDINGS,
    Phase.CLOCK: BoardAction.CLOCK,
    Phase.PICK_UP: BoardAction.VRROOOMM,
    Phase.SET_DOWN: BoardAction.VRROOOMM,
}

ALL_ACTIONS = 127  # one bit per action
PASS = 7
FIRST_BUILD = 8  # 8 + 3 * site + type
NUM_SPLITS = 12  # numbers of passengers to the first station: 0..11
NO_ACTION = 255

# Sharing again at the next intersection (R9a).
NEVER, OTHER_LINE, ALWAYS = 0, 1, 2

END_TIME, END_SITES, END_MARKERS = 1, 2, 3  # how a game ended; 0 while it runs

_B, _H, _W = np.uint8, np.uint16, np.uint64

BOARD = np.dtype(
    [
        ("incident", _W, (MAX_INTERSECTIONS, 2)),  # streets at each intersection
        ("intersection_sites", _W, MAX_INTERSECTIONS),  # sites at each intersection
        ("zone_sites", _W, MAX_SITES),  # sites of each zone, lowest first
        # First id of each segment of the action ids.
        ("first_street", _H),
        ("first_split", _H),
        ("first_clock", _H),
        ("first_pick", _H),
        ("first_set", _H),
        ("actions", _H),
        ("tag", np.uint32),  # first 32 bits of the board's fingerprint
        ("street_ends", _B, (MAX_STREETS, 2)),
        ("site_intersection", _B, MAX_SITES),
        ("roundabout", _B, MAX_INTERSECTIONS),  # intersections with a roundabout, then zeros
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
        # Lines, and fields that change at the start and end only.
        ("line", _W, (MAX_PLAYERS, 2)),  # streets that bear a seat's markers
        ("line_markers", _B, MAX_PLAYERS),
        ("head", _B, MAX_PLAYERS),  # intersection of the end that moved last
        ("tail", _B, MAX_PLAYERS),
        ("head_street", _B, MAX_PLAYERS),  # street by which that end arrived
        ("tail_street", _B, MAX_PLAYERS),
        ("head_shared", _B, MAX_PLAYERS),  # seats that the end may not share with here (R9a)
        ("tail_shared", _B, MAX_PLAYERS),
        ("players", _B),
        ("ending", _B),
        ("final_segment", _B),
        ("sharing_again", _B),  # NEVER, OTHER_LINE or ALWAYS (R9a)
        ("extra_needs_power", _B),  # whether five players' extra street needs power (R7)
        ("space_limit", _B),
        ("bus_limit", _B),
        ("action_markers", _B),  # of each seat at the start
        ("filler", _B, 5),  # aligns the next field to a word
        # The city, and the buses in it.
        ("type_sites", _W, 3),  # sites built on, by type
        ("passengers", _B, MAX_INTERSECTIONS),
        ("buses", _B, MAX_PLAYERS),
        ("max_buses", _B),
        ("supply", _B),  # passengers not yet in the city
        ("clock", _B),  # 0 house, 1 office, 2 pub
        # The action board.
        ("spaces", _B, (7, MAX_SPACES)),  # seat whose marker is on each space
        ("taken", _B, 7),  # spaces taken of each action
        ("open", _B),  # bit per action: has a space left
        # The standing.
        ("deliveries", _H, MAX_PLAYERS),
        ("delivered", _H),  # all deliveries so far
        ("stones", _B, MAX_PLAYERS),
        ("delivery_order", _B, MAX_PLAYERS),  # rank of a seat's last delivery, 1 the earliest
        ("clock_stones", _B),  # left on the clock
        ("first", _B),  # starting player of the game
        # Derived from the fields above.
        ("marked", _W, 2),  # streets with any player's marker
        ("reach", _W, MAX_PLAYERS),  # intersections on a seat's line
        ("free_sites", _W),
        ("built", _W, 3),  # intersections with a building of the type
        ("occupied", _W),  # intersections with a passenger
        ("grow_head", _W, 2),  # line decisions: streets for the end that moved last (else 0)
        ("grow_tail", _W, 2),  # ... and for the other end
        ("waiting", _W),  # Vrrooomm!: intersections with a waiting passenger (R16; else 0)
        ("vacant", _W),  # ... and with a free matching building
        # Whose turn it is, and what is decided.
        ("board_tag", np.uint32),  # of the board that the game is played on
        ("round", _H),
        ("markers", _B, MAX_PLAYERS),  # action markers in hand
        ("placed", _B, MAX_PLAYERS),  # markers placed this round
        ("phase", _B),
        ("seat", _B),  # seat that decides; 0 when the game is over
        ("start", _B),  # starting player of the round
        ("choosing", _B),  # selection: bit per seat, has a marker and has not passed
        ("zone", _B),  # lowest zone with a free site; number of zones when there is none
        ("action", _B),  # being resolved; NO_ACTION outside of that
        ("space", _B),  # index of the one being resolved, A is 0; of the next one if ascending (R6)
        ("power", _B),  # left of the current marker, or of the two first buildings
    ],
    align=True,
)

# The rules as numbers (`busenv.Rules.record`), for `new_game`.
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
        ("sharing_again", _B),
        ("extra_needs_power", _B),
        ("players", _B),
    ]
)

FIELDS: tuple[str, ...] = GAME.names or ()
# The index of each field in FIELDS, such as FIELD.clock.
FIELD: Any = namedtuple("FIELD", FIELDS)(*range(len(FIELDS)))


def offset(field: str) -> int:
    """Offset of a field in a GAME record in bytes."""
    assert GAME.fields is not None
    return GAME.fields[field][1]
