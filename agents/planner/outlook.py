"""What a position promises each company: a weighted sum of what a player sees at the table.

The features are those that a person weighs: points; what the line could deliver at the coming
clock and the two after it; whether it runs past stations, open sites and other lines; buses; and
what the markers on the action board will bring. `weights.json` has a weight for each, once for
choosing between positions ("plan") and three times for the odds of winning. They were found by
play, by the methods of `experiments.studies.tune plan` and `odds`; the odds are a blend of fits
to different line-ups, and markers weigh less in them than fitted: else the search hoards markers
against players who spend theirs quickly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from busenv.core.bits import ONE, ZERO, load_word, lowest, popcount, spread, sum_bytes
from busenv.core.jit import kernel
from busenv.core.rules.resolve import power_of
from busenv.core.rules.score import place
from busenv.core.state import (
    ACT_BUILDINGS,
    ACT_BUSES,
    ACT_CLOCK,
    ACT_LINES,
    ACT_PASSENGERS,
    ACT_START,
    ACT_VROOM,
    GAME,
    MAX_PLAYERS,
    OVER,
    SELECT_ACTIONS,
)

# What each weight is of. "_left" is times the share of a seat's markers still to be used, so that
# what pays over many rounds counts less as they run out. "now" is the hour of the coming drive.
FEATURES = (
    "points",
    "drive_now",  # passengers that the line could deliver at that hour, at most one a bus
    "drive_next",
    "drive_last",
    "drive_now_left",
    "drive_next_left",
    "drive_last_left",
    "waiting_left",  # passengers waiting on the line, over the three hours
    "vacant_left",  # free buildings on the line, over the three hours
    "beyond_buses_left",  # what could be delivered with more buses
    "reach",  # intersections on the line
    "reach_left",
    "shared_left",  # ... that another line reaches too
    "buses",
    "buses_left",
    "stations_left",  # train stations on the line, while passengers are in supply
    "open_sites_left",  # free sites on the line in the lowest zone
    "later_sites_left",  # ... and in later zones
    "people_left",  # passengers on the line
    "markers",  # in hand, as far as they can be used before the others run out
    "lines_pending",  # power of own markers on the action board, not yet resolved
    "passengers_pending",
    "buildings_pending",
    "bus_pending",
    "bus_pending_left",
    "clock_pending",
    "start_pending",
    "vroom_pending",  # deliveries that own markers on Vrrooomm! will bring, in order of the spaces
    "vroom_markers",
    "clock_choice",  # what the owner of the clock gains by stopping it
    "others_best",  # the best of the others' sums, taken off
    "others_mean",
)
COUNT = len(FEATURES)
LEFT = COUNT  # behind the features: the share of a seat's markers still to be used
OTHERS_BEST, OTHERS_MEAN = COUNT - 2, COUNT - 1
DRIVE, DRIVE_LEFT = FEATURES.index("drive_now"), FEATURES.index("drive_now_left")
WAITING_LEFT, REACH = FEATURES.index("waiting_left"), FEATURES.index("reach")
SITES_LEFT, MARKERS = FEATURES.index("open_sites_left"), FEATURES.index("markers")
PENDING, BUS_PENDING = FEATURES.index("lines_pending"), FEATURES.index("bus_pending")
CLOCK_PENDING, VROOM_PENDING = FEATURES.index("clock_pending"), FEATURES.index("vroom_pending")
# Rows of the weights.
PLAN, CHOOSING, RESOLVING, DRIVING = range(4)
STAGES = ("plan", "choosing", "resolving", "driving")
TOPS = np.uint64(0x8080808080808080)
BYTES = np.uint64(255)
EIGHT = np.uint64(8)
LAST_ROUND = 3  # markers that a player may use in the round in which the others' run out
WIN = 3.0  # points that the first place is worth

# Rows of a room's sight: a byte an intersection in the first nine, then numbers by seat.
WAITING, VACANT, SERVED, LOST, VROOM, ROWS = 3, 6, 9, 10, 11, 12


class Room(NamedTuple):
    """Where kernels that look at positions work, so that nothing is allocated on the way.

    ahead: GAME, (3,), positions looked ahead to. bits: uint64, (2, words), legal actions.
    sight: uint64, (ROWS, 8). features: float64, (5, COUNT + 1), a row a seat.
    worth, odds: float64, (5,), what `appraise` finds.
    """

    ahead: np.ndarray
    bits: np.ndarray
    sight: np.ndarray
    features: np.ndarray
    worth: np.ndarray
    odds: np.ndarray


def make_room(actions: int) -> Room:
    """A room for boards with a number of action ids."""
    return Room(
        np.zeros(3, GAME),
        np.zeros((2, (actions + 63) // 64), np.uint64),
        np.zeros((ROWS, 8), np.uint64),
        np.zeros((MAX_PLAYERS, COUNT + 1)),
        np.zeros(MAX_PLAYERS),
        np.zeros(MAX_PLAYERS),
    )


def read_weights(text: str) -> np.ndarray:
    """Weights from JSON, one object of FEATURES for each of STAGES: float64, (4, COUNT)."""
    found = json.loads(text)
    return np.array([[found[stage][name] for name in FEATURES] for stage in STAGES])


WEIGHTS = read_weights((Path(__file__).parent / "weights.json").read_text())


@kernel
def _less(some, others):
    """Each byte of a word less the other's, at least 0; all bytes are below 128."""
    borrowed = (some | TOPS) - others
    return borrowed & ~TOPS & ((borrowed & TOPS) >> np.uint64(7)) * BYTES


@kernel
def _look_around(g, b, sight):
    """Who would wait and what would be free at each intersection, for each type of building."""
    sight[:WAITING] = ZERO
    for kind in range(3):
        rest = g.type_sites[kind]
        while rest != ZERO:
            at = np.uint64(b.site_intersection[lowest(rest)])
            sight[kind, at >> np.uint64(3)] += ONE << (EIGHT * (at & np.uint64(7)))
            rest &= rest - ONE
    for word in range((np.int64(b.intersections) + 7) >> 3):
        people = load_word(g.passengers, 8 * word)
        for kind in range(3):
            homes = sight[kind, word]
            sight[WAITING + kind, word] = _less(people, homes)
            sight[VACANT + kind, word] = _less(homes, people)


@kernel
def _look_along(g, b, seat, sight, own):
    """What a seat's line could deliver, and where it runs."""
    reach, buses, left = g.reach[seat], np.int64(g.buses[seat]), own[LEFT]
    waiting, vacant, beyond = 0, 0, 0
    soon = 0 if g.action == ACT_VROOM else 1  # the clock moves on before anybody drives
    for later in range(3):
        kind = (np.int64(g.clock) + soon + later) % 3
        rest, word = reach, 0
        wait = free = ZERO
        while rest != ZERO:
            along = spread(rest & BYTES) * BYTES
            wait += sight[WAITING + kind, word] & along
            free += sight[VACANT + kind, word] & along
            rest >>= EIGHT
            word += 1
        here, there = np.int64(sum_bytes(wait)), np.int64(sum_bytes(free))
        served = min(here, there)
        if later == 0:
            sight[SERVED, seat] = served
        drive = np.float64(min(served, buses))
        own[DRIVE + later] = drive
        own[DRIVE_LEFT + later] = drive * left
        waiting += min(here, 6)
        vacant += min(there, 6)
        beyond += max(served - buses, 0)
    own[WAITING_LEFT] = waiting * left
    own[WAITING_LEFT + 1] = vacant * left
    own[WAITING_LEFT + 2] = beyond * left
    others = ZERO
    for other in range(g.players):
        if other != seat:
            others |= g.reach[other]
    count = np.float64(popcount(reach))
    own[REACH] = count
    own[REACH + 1] = count * left
    own[REACH + 2] = np.float64(popcount(reach & others)) * left
    own[REACH + 3] = buses
    own[REACH + 4] = buses * left
    stations = (reach >> np.uint64(b.station[0]) & ONE) + (reach >> np.uint64(b.station[1]) & ONE)
    own[REACH + 5] = np.float64(stations) * left if g.supply > 0 else 0.0


@kernel
def _look_at_sites(g, b, seat, own):
    """Free sites and passengers on a seat's line."""
    opened = later = people = ZERO
    now = g.free_sites & b.zone_sites[g.zone] if g.free_sites != ZERO else ZERO
    rest = g.reach[seat]
    while rest != ZERO:
        at = lowest(rest)
        sites = b.intersection_sites[at] & g.free_sites
        opened += popcount(sites & now)
        later += popcount(sites & ~now)
        people += np.uint64(g.passengers[at])
        rest &= rest - ONE
    own[SITES_LEFT] = np.float64(opened) * own[LEFT]
    own[SITES_LEFT + 1] = np.float64(later) * own[LEFT]
    own[SITES_LEFT + 2] = np.float64(people) * own[LEFT]


@kernel
def _drives_to_come(g, sight):
    """Deliveries that each seat's markers on Vrrooomm! will bring, each taking from those after."""
    sight[LOST] = ZERO
    sight[VROOM] = ZERO
    first = 0
    if g.action == ACT_VROOM:
        first = np.int64(g.space)
        driven = min(np.uint64(g.power), sight[SERVED, g.seat])  # by the seat that is driving
        sight[VROOM, g.seat] = driven
        sight[LOST, g.seat] = driven
    for space in range(first, g.taken[ACT_VROOM]):
        owner = np.int64(g.spaces[ACT_VROOM, space])
        served, lost = np.int64(sight[SERVED, owner]), np.int64(sight[LOST, owner])
        driven = np.uint64(max(min(served - lost, np.int64(g.buses[owner])), 0))
        sight[VROOM, owner] += driven
        for seat in range(g.players):
            if g.reach[seat] & g.reach[owner] != ZERO:
                sight[LOST, seat] += driven


@kernel
def _look_at_markers(g, seat, sight, own):
    """A seat's markers, in hand and on the action board."""
    own[PENDING:OTHERS_BEST] = 0.0
    if g.phase == SELECT_ACTIONS:
        for at, action in ((0, ACT_LINES), (1, ACT_PASSENGERS), (2, ACT_BUILDINGS)):
            for space in range(g.taken[action]):
                if g.spaces[action, space] == seat:
                    own[PENDING + at] += power_of(g, action, space)
        if g.taken[ACT_BUSES] > 0 and g.spaces[ACT_BUSES, 0] == seat:
            gained = np.float64(g.buses[seat] < g.bus_limit)
            own[BUS_PENDING] = gained
            own[BUS_PENDING + 1] = gained * own[LEFT]
    own[CLOCK_PENDING + 1] = g.taken[ACT_START] > 0 and g.spaces[ACT_START, 0] == seat
    own[VROOM_PENDING] = np.float64(sight[VROOM, seat])
    if g.action != ACT_VROOM:
        for space in range(g.taken[ACT_VROOM]):
            own[VROOM_PENDING + 1] += g.spaces[ACT_VROOM, space] == seat
        if g.taken[ACT_CLOCK] > 0 and g.spaces[ACT_CLOCK, 0] == seat:
            own[CLOCK_PENDING] = 1.0
            if own[VROOM_PENDING + 1] > 0.0:  # to stop the clock is to drive two hours later
                own[VROOM_PENDING + 2] = max(own[DRIVE + 2] - own[DRIVE], 0.0)


@kernel
def _usable(g, seat):
    """Markers in hand that can still be of use: the game ends when the others have none (R19)."""
    most = np.int64(0)
    for other in range(g.players):
        if other != seat:
            most = max(most, np.int64(g.markers[other]))
    return np.float64(min(np.int64(g.markers[seat]), most + LAST_ROUND))


@kernel
def look(g, b, room):
    """Work out the features of every seat of a game that is not over, into `room.features`."""
    _look_around(g, b, room.sight)
    for seat in range(g.players):
        own = room.features[seat]
        own[MARKERS] = _usable(g, seat)
        own[LEFT] = own[MARKERS] / 20.0
        own[0] = np.float64(g.deliveries[seat]) - np.float64(g.stones[seat])
        _look_along(g, b, seat, room.sight, own)
        _look_at_sites(g, b, seat, own)
    _drives_to_come(g, room.sight)
    for seat in range(g.players):
        _look_at_markers(g, seat, room.sight, room.features[seat])


@kernel
def stage(g):
    """Which row of the weights tells the odds of winning."""
    if g.phase <= SELECT_ACTIONS:
        return CHOOSING
    return DRIVING if g.action == ACT_VROOM else RESOLVING


@kernel
def appraise(g, b, weights, room):
    """What a position is worth to each seat, in points, and its odds of winning, as logits.

    They go to `room.worth` and `room.odds`. When the game is over the points count, and winning.
    """
    if g.phase == OVER:
        for seat in range(g.players):
            points = np.float64(g.deliveries[seat]) - np.float64(g.stones[seat])
            room.odds[seat] = points
            room.worth[seat] = points + (WIN if place(g, seat) == 0 else 0.0)
        return
    look(g, b, room)
    row = stage(g)
    for seat in range(g.players):
        worth = odds = 0.0
        for k in range(OTHERS_BEST):
            worth += weights[PLAN, k] * room.features[seat, k]
            odds += weights[row, k] * room.features[seat, k]
        room.worth[seat] = worth
        room.odds[seat] = odds


@kernel
def lead(g, weights, worth, seat):
    """What a seat's position is worth compared with the best and the mean of the others'."""
    best, total = -1e9, 0.0
    for other in range(g.players):
        if other != seat:
            best = max(best, worth[other])
            total += worth[other]
    mean = total / (np.float64(g.players) - 1.0)
    return worth[seat] - weights[PLAN, OTHERS_BEST] * best - weights[PLAN, OTHERS_MEAN] * mean
