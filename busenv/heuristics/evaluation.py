"""The evaluation of positions: weighted sums of handcrafted features of each seat.

Features are points, what the line could deliver at each clock type (the type of building that the
clock shows), stations, open sites and other lines along it, buses, and the expected result of
markers on the action board. `weights.json` has four weights for every feature: one in points, to
compare positions ("value"), and one for each stage of a round, for the logits of winning. Those of
"value" were fitted by CMA-ES to games of one planner against three `greedy`, the others by a
conditional logit to positions of games between different agents; `git show
5369269:experiments/studies/tune.py` is the program. The logits are means of fits to different
line-ups. Those of markers are lowered: with the fitted ones, the search hoards markers against
players who spend theirs quickly.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from busenv.core.bits import (
    ONE,
    ZERO,
    load_word,
    lowest,
    popcount,
    spread,
    subtract_bytes,
    sum_bytes,
)
from busenv.core.jit import kernel
from busenv.core.rules.resolve import power_of
from busenv.core.rules.score import points_of, rank_of
from busenv.core.state import GAME, MAX_PLAYERS, BoardAction, Phase


class Features(NamedTuple):
    """The features of a seat, in order; `AT` has the index of each.

    "_left" is multiplied by the share of the seat's markers that are still to be used, since
    long-term assets lose value as markers run out. "now" is the clock type of the coming Vrrooomm!,
    "next" and "last" are the two after it; the three are adjacent.
    """

    points: int
    drive_now: int  # passengers that the line could deliver at that type, at most one per bus
    drive_next: int
    drive_last: int
    drive_now_left: int
    drive_next_left: int
    drive_last_left: int
    waiting_left: int  # passengers waiting on the line, over the three clock types
    vacant_left: int  # free buildings on the line, over the three clock types
    beyond_buses_left: int  # passengers that more buses could deliver, over the three clock types
    reach: int  # intersections on the line
    reach_left: int
    shared_left: int  # ... that another line reaches too
    buses: int
    buses_left: int
    stations_left: int  # train stations on the line, while passengers are in supply
    open_sites_left: int  # free sites on the line in the lowest zone
    later_sites_left: int  # ... and in later zones
    people_left: int  # passengers on the line
    markers: int  # in hand, that can be used before the others run out
    lines_pending: int  # power of own markers on the action board, not yet resolved
    passengers_pending: int
    buildings_pending: int
    bus_pending: int
    bus_pending_left: int
    clock_pending: int
    start_pending: int
    vroom_pending: int  # deliveries that own markers on Vrrooomm! will bring, in space order
    vroom_markers: int
    clock_choice: int  # passengers that the owner of the clock gains by stopping it
    # Weights of the other seats' values in `relative_value`; not features of the seat.
    others_best: int
    others_mean: int


FEATURES = Features._fields
COUNT = len(FEATURES)
AT = Features(*range(COUNT))
OWN = AT.others_best  # the features before it are the seat's own
MARKER_SHARE = COUNT  # column behind the features: the share of markers still to be used

# Rows of the weights: in points, and the logits of winning by how far the round is.
STAGES = ("value", "selecting", "resolving", "driving")
VALUE, SELECTING, RESOLVING, DRIVING = range(len(STAGES))

FULL_HAND = 20.0  # markers for a share of 1
LAST_ROUND = 3  # markers that a player may use in the round in which the others' run out
WIN = 3.0  # points that the first place is worth
MOST_COUNTED = 6  # passengers waiting, or free buildings, on a line at a clock type

# Rows of `Evaluation.counts`: three by type of building, with a byte per intersection,
BUILDINGS, WAITING, VACANT = 0, 3, 6
# and three with a number per seat: what the line could deliver with unlimited buses, what earlier
# drives take of that, and what the seat's own drives will deliver.
SERVED, TAKEN, DRIVEN, ROWS = 9, 10, 11, 12

BYTE = np.uint64(255)
EIGHT = np.uint64(8)


class Evaluation(NamedTuple):
    """Results and workspace of `evaluate` and `find_chances`.

    counts: uint64, (ROWS, 8). features: float64, (5, COUNT + 1), a row per seat.
    values, win_logits, chances: float64, (5,), by seat.
    """

    counts: np.ndarray
    features: np.ndarray
    values: np.ndarray
    win_logits: np.ndarray
    chances: np.ndarray


class EvaluationWorkspace(NamedTuple):
    """Arrays for kernels that try actions and evaluate the next positions.

    ahead: GAME, (2,), positions after one decision and after two. bits: uint64, (words,), legal
    actions as bits. actions, next_actions: int64, (num_actions,), of one decision and of the next.
    """

    ahead: np.ndarray
    bits: np.ndarray
    actions: np.ndarray
    next_actions: np.ndarray
    evaluation: Evaluation


def make_evaluation() -> Evaluation:
    """Return arrays for any board."""
    return Evaluation(
        np.zeros((ROWS, 8), np.uint64),
        np.zeros((MAX_PLAYERS, COUNT + 1)),
        np.zeros(MAX_PLAYERS),
        np.zeros(MAX_PLAYERS),
        np.zeros(MAX_PLAYERS),
    )


def make_evaluation_workspace(num_actions: int) -> EvaluationWorkspace:
    """Return a workspace for boards with `num_actions` action ids."""
    return EvaluationWorkspace(
        np.zeros(2, GAME),
        np.zeros((num_actions + 63) // 64, np.uint64),
        np.zeros(num_actions, np.int64),
        np.zeros(num_actions, np.int64),
        make_evaluation(),
    )


def parse_weights(text: str) -> np.ndarray:
    """Parse weights from JSON, an object of FEATURES for each of STAGES: float64, (4, COUNT)."""
    weights = json.loads(text)
    return np.array([[weights[stage][name] for name in FEATURES] for stage in STAGES])


WEIGHTS = parse_weights((Path(__file__).parent / "weights.json").read_text())


@kernel
def _count_waiting(g, b, counts):
    """Count buildings, waiting passengers and free buildings by intersection and building type."""
    counts[BUILDINGS:WAITING] = ZERO
    for kind in range(3):
        rest = g.type_sites[kind]
        while rest != ZERO:
            at = np.uint64(b.site_intersection[lowest(rest)])
            counts[BUILDINGS + kind, at >> np.uint64(3)] += ONE << (EIGHT * (at & np.uint64(7)))
            rest &= rest - ONE
    for word in range((np.int64(b.intersections) + 7) >> 3):
        people = load_word(g.passengers, 8 * word)
        for kind in range(3):
            buildings = counts[BUILDINGS + kind, word]
            counts[WAITING + kind, word] = subtract_bytes(people, buildings)
            counts[VACANT + kind, word] = subtract_bytes(buildings, people)


@kernel
def _line_features(g, b, seat, counts, own):
    """Write the features of a seat's line: deliveries and reach."""
    reach, buses, marker_share = g.reach[seat], np.int64(g.buses[seat]), own[MARKER_SHARE]
    waiting, vacant, beyond = 0, 0, 0
    soon = 0 if g.action == BoardAction.VRROOOMM else 1  # the clock advances before the next drive
    for later in range(3):
        kind = (np.int64(g.clock) + soon + later) % 3
        rest, word = reach, 0
        wait = free = ZERO
        while rest != ZERO:
            along = spread(rest & BYTE) * BYTE
            wait += counts[WAITING + kind, word] & along
            free += counts[VACANT + kind, word] & along
            rest >>= EIGHT
            word += 1
        here, there = np.int64(sum_bytes(wait)), np.int64(sum_bytes(free))
        served = min(here, there)
        if later == 0:
            counts[SERVED, seat] = served
        drive = np.float64(min(served, buses))
        own[AT.drive_now + later] = drive
        own[AT.drive_now_left + later] = drive * marker_share
        waiting += min(here, MOST_COUNTED)
        vacant += min(there, MOST_COUNTED)
        beyond += max(served - buses, 0)
    own[AT.waiting_left] = waiting * marker_share
    own[AT.vacant_left] = vacant * marker_share
    own[AT.beyond_buses_left] = beyond * marker_share
    others = ZERO
    for other in range(g.players):
        if other != seat:
            others |= g.reach[other]
    count = np.float64(popcount(reach))
    own[AT.reach] = count
    own[AT.reach_left] = count * marker_share
    own[AT.shared_left] = np.float64(popcount(reach & others)) * marker_share
    own[AT.buses] = buses
    own[AT.buses_left] = buses * marker_share
    stations = (reach >> np.uint64(b.station[0]) & ONE) + (reach >> np.uint64(b.station[1]) & ONE)
    own[AT.stations_left] = np.float64(stations) * marker_share if g.supply > 0 else 0.0


@kernel
def _site_features(g, b, seat, own):
    """Write the features of free sites and passengers on a seat's line."""
    reach, marker_share = g.reach[seat], own[MARKER_SHARE]
    opened = later = people = ZERO
    now = g.free_sites & b.zone_sites[g.zone] if g.free_sites != ZERO else ZERO
    while reach != ZERO:
        at = lowest(reach)
        sites = b.intersection_sites[at] & g.free_sites
        opened += popcount(sites & now)
        later += popcount(sites & ~now)
        people += np.uint64(g.passengers[at])
        reach &= reach - ONE
    own[AT.open_sites_left] = np.float64(opened) * marker_share
    own[AT.later_sites_left] = np.float64(later) * marker_share
    own[AT.people_left] = np.float64(people) * marker_share


@kernel
def _count_drives(g, counts):
    """Count the deliveries of markers on Vrrooomm! in space order, earlier drives first."""
    counts[TAKEN] = ZERO
    counts[DRIVEN] = ZERO
    first = 0
    if g.action == BoardAction.VRROOOMM:
        first = np.int64(g.space)
        driven = min(np.uint64(g.power), counts[SERVED, g.seat])  # of the seat that is driving
        counts[DRIVEN, g.seat] = driven
        counts[TAKEN, g.seat] = driven
    for space in range(first, g.taken[BoardAction.VRROOOMM]):
        owner = np.int64(g.spaces[BoardAction.VRROOOMM, space])
        served, taken = np.int64(counts[SERVED, owner]), np.int64(counts[TAKEN, owner])
        driven = np.uint64(max(min(served - taken, np.int64(g.buses[owner])), 0))
        counts[DRIVEN, owner] += driven
        for seat in range(g.players):
            if g.reach[seat] & g.reach[owner] != ZERO:
                counts[TAKEN, seat] += driven


@kernel
def _marker_features(g, seat, counts, own):
    """Write the features of a seat's markers on the action board."""
    own[AT.lines_pending : OWN] = 0.0
    if g.phase == Phase.SELECT_ACTIONS:
        for feature, action in (
            (AT.lines_pending, BoardAction.LINE_EXPANSION),
            (AT.passengers_pending, BoardAction.PASSENGERS),
            (AT.buildings_pending, BoardAction.BUILDINGS),
        ):
            for space in range(g.taken[action]):
                if g.spaces[action, space] == seat:
                    own[feature] += power_of(g, action, space)
        if g.taken[BoardAction.BUSES] > 0 and g.spaces[BoardAction.BUSES, 0] == seat:
            new_bus = np.float64(g.buses[seat] < g.bus_limit)
            own[AT.bus_pending] = new_bus
            own[AT.bus_pending_left] = new_bus * own[MARKER_SHARE]
    own[AT.start_pending] = (
        g.taken[BoardAction.STARTING_PLAYER] > 0
        and g.spaces[BoardAction.STARTING_PLAYER, 0] == seat
    )
    own[AT.vroom_pending] = np.float64(counts[DRIVEN, seat])
    if g.action != BoardAction.VRROOOMM:
        for space in range(g.taken[BoardAction.VRROOOMM]):
            own[AT.vroom_markers] += g.spaces[BoardAction.VRROOOMM, space] == seat
        if g.taken[BoardAction.CLOCK] > 0 and g.spaces[BoardAction.CLOCK, 0] == seat:
            own[AT.clock_pending] = 1.0
            if own[AT.vroom_markers] > 0.0:  # stopping the clock means to drive at "last"
                own[AT.clock_choice] = max(own[AT.drive_last] - own[AT.drive_now], 0.0)


@kernel
def _usable_markers(g, seat):
    """Count the markers in hand that can be used before the others have none (R19)."""
    most = np.int64(0)
    for other in range(g.players):
        if other != seat:
            most = max(most, np.int64(g.markers[other]))
    return np.float64(min(np.int64(g.markers[seat]), most + LAST_ROUND))


@kernel
def compute_features(g, b, evaluation):
    """Write every seat's features of a game that is not over into `evaluation.features`."""
    _count_waiting(g, b, evaluation.counts)
    for seat in range(g.players):
        own = evaluation.features[seat]
        own[AT.markers] = _usable_markers(g, seat)
        own[MARKER_SHARE] = own[AT.markers] / FULL_HAND
        own[AT.points] = np.float64(points_of(g, seat))
        _line_features(g, b, seat, evaluation.counts, own)
        _site_features(g, b, seat, own)
    _count_drives(g, evaluation.counts)
    for seat in range(g.players):
        _marker_features(g, seat, evaluation.counts, evaluation.features[seat])


@kernel
def stage(g):
    """Return the row of the weights for the logits of winning."""
    if g.phase <= Phase.SELECT_ACTIONS:
        return SELECTING
    return DRIVING if g.action == BoardAction.VRROOOMM else RESOLVING


@kernel
def evaluate(g, b, weights, evaluation):
    """Write each seat's value, in points, and logit of winning into `evaluation`.

    When the game is over, both are the points, and the winner's value is WIN higher.
    """
    if g.phase == Phase.OVER:
        for seat in range(g.players):
            points = np.float64(points_of(g, seat))
            evaluation.win_logits[seat] = points
            evaluation.values[seat] = points + (WIN if rank_of(g, seat) == 0 else 0.0)
        return
    compute_features(g, b, evaluation)
    row = stage(g)
    for seat in range(g.players):
        value = logit = 0.0
        for k in range(OWN):
            value += weights[VALUE, k] * evaluation.features[seat, k]
            logit += weights[row, k] * evaluation.features[seat, k]
        evaluation.values[seat] = value
        evaluation.win_logits[seat] = logit


@kernel
def find_chances(g, evaluation):
    """Write the chances to win of an evaluated position into `evaluation.chances`."""
    logits, chances = evaluation.win_logits, evaluation.chances
    best, total = logits[0], 0.0
    for seat in range(1, g.players):
        best = max(best, logits[seat])
    for seat in range(g.players):
        chances[seat] = (
            math.exp(logits[seat] - best) if g.phase != Phase.OVER else rank_of(g, seat) == 0
        )
        total += chances[seat]
    for seat in range(g.players):
        chances[seat] /= total


@kernel
def relative_value(g, weights, values, seat):
    """Return a seat's value minus weighted best and mean values of the others."""
    best, total = -1e9, 0.0
    for other in range(g.players):
        if other != seat:
            best = max(best, values[other])
            total += values[other]
    mean = total / (np.float64(g.players) - 1.0)
    best_weight, mean_weight = weights[VALUE, AT.others_best], weights[VALUE, AT.others_mean]
    return values[seat] - best_weight * best - mean_weight * mean
