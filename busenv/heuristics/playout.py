"""Playouts: weighted random play, much stronger than uniform play at about the same cost.

Actions on the board are drawn by PLAYOUT_WEIGHTS, which favour Vrrooomm! when the line can deliver
at the coming clock type (the type of building that the clock shows), buses early in the game, and
actions with power. Seats pass after two markers, but rarely before they have placed as many as in
their earlier rounds; otherwise playouts, and the search, hoard markers. Line Expansions take the
better of two random streets. Buildings are mostly on the seat's line and of the coming clock type.
The weights were fitted to the actions that the tree search selected, except those of passing after
more than three markers and behind pace.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import GOLDEN, ONE, ZERO, below, has, lowest, mix, nth, popcount
from busenv.core.jit import kernel
from busenv.core.rules.legal import num_arriving, open_actions, open_sites, random_action
from busenv.core.rules.resolve import power_of
from busenv.core.rules.step import step
from busenv.core.state import FIRST_BUILD, PASS, BoardAction, Phase

TO_THE_END = 1000  # rounds; no game has so many

# Weight of each action and of passing; `weight_column` returns the column that applies.
PLAYOUT_WEIGHTS = np.array(
    [
        [3, 12, 23, 19],  # Line Expansion, by action power
        [8, 20, 50, 200],  # Buses, by markers in hand: below 5, 10, 15
        [4, 6, 5, 4],  # Passengers, by action power
        [5, 4, 4, 6],  # Buildings, by action power
        [3, 13, 0, 0],  # Clock, 1 when the line could deliver more if it stood still
        [6, 34, 68, 111],  # Vrrooomm!, by what the line could deliver; 0 for a second marker
        [9, 13, 0, 0],  # Starting Player, 1 for the seat that starts already
        [121, 52, 20, 5],  # passing, by markers placed: 2, 3, more; or behind pace
    ]
)


@kernel
def deliverable(g, seat, clock):
    """Estimate how many passengers a seat's buses could deliver at a clock type (R16, R17)."""
    waiting = g.occupied & ~g.built[clock] & g.reach[seat]
    vacant = g.built[clock] & ~g.occupied & g.reach[seat]
    return min(popcount(waiting), popcount(vacant), np.uint64(g.buses[seat]))


@kernel
def weight_column(g, seat, action, coming):
    """Return the column of PLAYOUT_WEIGHTS that applies to an action.

    coming: how many passengers the seat could deliver at the coming clock type.
    """
    if action == BoardAction.VRROOOMM:
        for space in range(g.taken[BoardAction.VRROOOMM]):
            if g.spaces[BoardAction.VRROOOMM, space] == seat:
                return 0
        return min(np.int64(coming), 3)
    if action == BoardAction.BUSES:
        return min(np.int64(g.markers[seat]) // 5, 3) if g.buses[seat] < g.bus_limit else 0
    if action == BoardAction.CLOCK:
        return 1 if deliverable(g, seat, g.clock) > coming else 0
    if action == BoardAction.STARTING_PLAYER:
        return 1 if g.start == seat else 0
    if action == PASS:
        placed, rounds = np.int64(g.placed[seat]), np.int64(g.round) - 1
        before = np.int64(g.action_markers) - np.int64(g.markers[seat]) - placed
        return 3 if placed * rounds < before - (rounds + 1) // 2 else min(placed - 2, 2)
    if action == BoardAction.PASSENGERS and g.supply == 0:
        return 0
    return min(power_of(g, action, g.taken[action]), 3)


@kernel
def _select_action(g, word):
    """Draw an action to place a marker on, or a pass, by PLAYOUT_WEIGHTS."""
    seat = np.int64(g.seat)
    coming = deliverable(g, seat, g.clock + 1 if g.clock < 2 else 0)
    weights, total = ZERO, np.int64(0)  # eight weights, a byte each
    rest = open_actions(g)
    while rest != ZERO:
        action = np.int64(lowest(rest))
        rest &= rest - ONE
        weight = PLAYOUT_WEIGHTS[action, weight_column(g, seat, action, coming)]
        weights |= np.uint64(weight) << np.uint64(8 * action)
        total += weight
    draw, action = below(word, total), 0
    while True:
        draw -= np.int64(weights & np.uint64(255))
        if draw < 0:
            return action
        weights >>= np.uint64(8)
        action += 1


@kernel
def _select_building(g, b, word):
    """Draw a site and a type.

    A site off the seat's line is drawn again once. On the line, the type is the coming clock type
    with probability 7/12, the one after it with 4/12 and the present one with 1/12; elsewhere it is
    uniform.
    """
    sites, site = open_sites(g, b), ZERO
    for _ in range(2):
        site = nth(sites, below(word, popcount(sites)))
        word = mix(word)
        if has(g.reach[g.seat], b.site_intersection[site]):
            break
    draw = below(word, 12)
    if has(g.reach[g.seat], b.site_intersection[site]):
        later = 1 if draw < 7 else (2 if draw < 11 else 0)
    else:
        later = draw % 3
    return FIRST_BUILD + 3 * np.int64(site) + (np.int64(g.clock) + later) % 3


@kernel
def _select_split(g, b, word):
    """Send all passengers to the station on the own line; draw a split if it has none or both."""
    limit = np.int64(num_arriving(g))
    first, second = has(g.reach[g.seat], b.station[0]), has(g.reach[g.seat], b.station[1])
    if first == second:
        return np.int64(b.first_split) + below(word, limit + 1)
    return np.int64(b.first_split) + (limit if first else 0)


@kernel
def _newly_reached(g, b, action):
    """Score what a new street adds to a line: passengers, stations, buildings, sites."""
    k = action - np.int64(b.first_street)
    at = np.int64(b.street_ends[k >> 1, 1 - (k & 1)])
    if has(g.reach[g.seat], at):
        return np.int64(0)
    score = 1 + 2 * np.int64(g.passengers[at])
    score += 2 * np.int64(g.supply > 0 and (at == b.station[0] or at == b.station[1]))
    for kind in range(3):
        score += np.int64(has(g.built[kind], at))
    open_here = b.intersection_sites[at] & g.free_sites & b.zone_sites[g.zone]
    return score + np.int64(popcount(open_here))


@kernel
def _select_street(g, b, word):
    """Return the better of two random streets for a line."""
    one = np.int64(random_action(g, b, word))
    two = np.int64(random_action(g, b, mix(word)))
    return one if _newly_reached(g, b, one) >= _newly_reached(g, b, two) else two


@kernel
def playout_action(g, b, word):
    """Return a weighted random legal action. word: uint64, a random word."""
    if g.phase == Phase.SELECT_ACTIONS:
        return np.int64(_select_action(g, word))
    if g.phase == Phase.LINE_EXPANSION:
        return _select_street(g, b, word)
    if g.phase == Phase.BUILDINGS:
        return np.int64(_select_building(g, b, word))
    if g.phase == Phase.PASSENGERS:
        return _select_split(g, b, word)
    if g.phase == Phase.CLOCK and below(word, 8) > 0:
        return np.int64(b.first_clock)
    return np.int64(random_action(g, b, word))


@kernel
def playout(g, b, rounds, seed):
    """Play a game until `rounds` more rounds have begun, or to its end. seed: uint64."""
    goal = np.int64(g.round) + rounds
    while g.phase != Phase.OVER and np.int64(g.round) < goal:
        seed += GOLDEN
        step(g, b, playout_action(g, b, mix(seed)))
