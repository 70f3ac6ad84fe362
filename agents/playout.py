"""Quick play to the end of a round or of the game, better than uniform.

Uniform play passes too early and seldom drives. Here every choice is random still, but leans: to
Vrrooomm! when the line can deliver at the coming hour, to lines, buses and buildings while they
have power, to sites on one's own line, to passengers at a station on it. A choice costs about as
much as a uniform one.
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import GOLDEN, below, has, mix, nth, popcount
from busenv.core.cache import kernel
from busenv.core.layout import (
    ACT_BUSES,
    ACT_PASSENGERS,
    ACT_VROOM,
    BUILDINGS,
    CLOCK,
    FIRST_BUILD,
    OVER,
    PASS,
    PASSENGERS,
    SELECT_ACTIONS,
)
from busenv.core.legal import open_sites, random_action, split_limit
from busenv.core.step import step

# How the leanings weigh, by action: when there is something to gain, and when there is not.
GAIN = np.array([16, 16, 6, 12, 3, 60, 6, 20])
IDLE = np.array([1, 1, 1, 1, 3, 1, 6, 20])


@kernel
def _could_deliver(g, seat):
    """Roughly how many passengers a seat's line could deliver at the coming hour (R16, R17)."""
    hour = np.int64(g.clock) + 1 if g.clock < 2 else 0
    waiting = g.peopled & ~g.built[hour] & g.reach[seat]
    vacant = g.built[hour] & ~g.peopled & g.reach[seat]
    return min(popcount(waiting), popcount(vacant))


@kernel
def _leaning(g, seat, action):
    """Weight of choosing an action now."""
    taken = np.int64(g.taken[action])
    if action == ACT_VROOM:
        gain = _could_deliver(g, seat) > np.uint64(taken)
    elif action == ACT_BUSES:
        gain = g.buses[seat] < g.bus_limit and g.markers[seat] > 5
    elif action == ACT_PASSENGERS:
        gain = g.supply > 0 and g.max_buses > taken
    else:
        gain = g.max_buses > taken
    return GAIN[action] if gain else IDLE[action]


@kernel
def _lean_select(g, noise):
    """An action, or a pass."""
    seat = np.int64(g.seat)
    total = GAIN[PASS] * (np.int64(g.placed[seat]) - 1) if g.placed[seat] >= 2 else 0
    passing = total
    for action in range(7):
        if has(np.uint64(g.open), action):
            total += _leaning(g, seat, action)
    rank = below(noise, total) - passing
    if rank < 0:
        return PASS
    last = 0
    for action in range(7):
        if has(np.uint64(g.open), action):
            rank -= _leaning(g, seat, action)
            last = action
            if rank < 0:
                break
    return last


@kernel
def _lean_build(g, b, noise):
    """A site, on one's own line if one of three picks is; a type that is soon asked for."""
    sites, site = open_sites(g, b), np.uint64(0)
    for _ in range(3):
        site = nth(sites, below(noise, popcount(sites)))
        noise = mix(noise)
        if has(g.reach[g.seat], b.site_intersection[site]):
            break
    own = has(g.reach[g.seat], b.site_intersection[site])
    kind = (np.int64(g.clock) + below(noise, 3) + (1 if own else 0)) % 3
    return FIRST_BUILD + 3 * np.int64(site) + kind


@kernel
def _lean_split(g, b, noise):
    """All passengers to a station on one's own line, or any split when it has none or both."""
    limit = np.int64(split_limit(g))
    first, second = has(g.reach[g.seat], b.station[0]), has(g.reach[g.seat], b.station[1])
    if first == second:
        return np.int64(b.first_split) + below(noise, limit + 1)
    return np.int64(b.first_split) + (limit if first else 0)


@kernel
def lean_action(g, b, noise):
    """A random legal action that leans to what pays."""
    if g.phase == SELECT_ACTIONS:
        return np.int64(_lean_select(g, noise))
    if g.phase == BUILDINGS:
        return np.int64(_lean_build(g, b, noise))
    if g.phase == PASSENGERS:
        return _lean_split(g, b, noise)
    if g.phase == CLOCK and below(noise, 8) > 0:
        return np.int64(b.first_clock)
    return np.int64(random_action(g, b, noise))


@kernel
def play_on(g, b, rounds, noise):
    """Play a game on until `rounds` more rounds have begun, or to its end."""
    goal = np.int64(g.round) + rounds
    while g.phase != OVER and np.int64(g.round) < goal:
        noise += GOLDEN
        step(g, b, lean_action(g, b, mix(noise)))
