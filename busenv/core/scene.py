"""A picture of the city and the lines, seats as they are; core.observe turns it to a viewer.

Most decisions choose actions and change neither city nor lines, so a picture is kept beside the
game, with the state that it shows, and painted anew only where the two states differ. It is laid
out in planes: all intersections' first feature, then all their second one, and so on
(core.features names them).
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import (
    ONE,
    ZERO,
    clear_bytes,
    copy_record,
    load_word,
    lowest,
    popcount,
    record_word,
    spread,
    store_word,
    subtract_bytes,
    sum_bytes,
)
from busenv.core.features import SPACES, WIDTHS, column
from busenv.core.jit import kernel
from busenv.core.rules.lines import growth
from busenv.core.rules.score import place
from busenv.core.state import MAX_PLAYERS, MAX_SPACES, offset

# Planes: columns of core.features. Those of seats come in pairs, seat by seat: line and end, line
# and growth.
I_BUILDINGS, I_OPEN = column("intersections", "buildings"), column("intersections", "open_sites")
I_WAITING, I_VACANT = column("intersections", "waiting"), column("intersections", "vacant")
I_LINE, I_END = column("intersections", "on_line"), column("intersections", "line_end")
S_LINE, S_GROW = column("streets", "line"), column("streets", "may_grow")
B_OPEN = column("sites", "open")
PER_INTERSECTION, PER_STREET = WIDTHS["intersections"], WIDTHS["streets"]
PER_SITE = WIDTHS["sites"]
# Behind the planes stand sums for each seat: the features of players from "reached" on.
P_SUMS = column("players", "reached")
PER_SEAT = WIDTHS["players"] - P_SUMS
M_REACHED, M_GROWTH, M_PLACE, M_ORDER, M_WAITING, M_VACANT, M_DRIVE = (
    column("players", name) - P_SUMS
    for name in ("reached", "growth", "place", "delivery_order", "waiting", "vacant", "drive")
)
# Where the spaces of each action stand in a seat's sums. An array, since numba looks a number up
# in a tuple by a chain of branches.
SPACES_OF = np.array([spaces for _, spaces in SPACES])
M_SPACES = np.array([column("players", f"spaces_{name}") - P_SUMS for name, _ in SPACES])

# What pictures show of a game stands at the beginning of its record, part by part.
LINES_FROM, CITY_FROM, MARKERS_FROM, STANDING_FROM, PAINTED_TO = (
    offset(name) for name in ("line", "type_sites", "spaces", "deliveries", "marked")
)


@kernel
def streets_at(b):
    """Where the planes of streets begin."""
    return PER_INTERSECTION * np.int64(b.intersections)


@kernel
def sites_at(b):
    """Where the planes of sites begin."""
    return streets_at(b) + PER_STREET * np.int64(b.streets)


@kernel
def seats_at(b):
    """Where the planes end and the sums by seat begin."""
    return sites_at(b) + PER_SITE * np.int64(b.sites)


@kernel
def scene_size(b):
    """Length of a picture."""
    return seats_at(b) + PER_SEAT * MAX_PLAYERS


@kernel
def _paint_word(scene, people, homes, waiting, vacant):
    """Who waits, and what is vacant, at the intersections whose bytes stand in one word (R16)."""
    here, rooms = load_word(scene, people), load_word(scene, homes)
    store_word(scene, waiting, subtract_bytes(here, rooms))
    store_word(scene, vacant, subtract_bytes(rooms, here))


@kernel
def _paint_byte(scene, people, homes, waiting, vacant):
    """The same at one intersection."""
    here, rooms = np.int64(scene[people]), np.int64(scene[homes])
    scene[waiting] = max(here - rooms, 0)
    scene[vacant] = max(rooms - here, 0)


@kernel
def _paint_hours(g, width, scene):
    """Who waits and what is vacant, now and at the next two hours (R16)."""
    kind = np.int64(g.clock)
    for hour in range(3):
        homes = (I_BUILDINGS + kind) * width
        waiting, vacant = (I_WAITING + hour) * width, (I_VACANT + hour) * width
        if width >= 8:
            for k in range(0, width, 8):  # the last word ends with its plane, over the one before
                at = min(k, width - 8)
                _paint_word(scene, at, homes + at, waiting + at, vacant + at)
        else:
            for at in range(width):
                _paint_byte(scene, at, homes + at, waiting + at, vacant + at)
        kind = kind + 1 if kind < 2 else 0


@kernel
def _paint_standing(g, b, scene):
    """Each seat's place, and the order in which they reached their deliveries (R20)."""
    for seat in range(g.players):
        sums = seats_at(b) + PER_SEAT * seat
        scene[sums + M_PLACE] = place(g, seat)
        scene[sums + M_ORDER] = g.delivery_order[seat]


@kernel
def _paint_city(g, b, scene):
    """Passengers, buildings, sites; who waits, what is free, for three hours; the standing."""
    width, sites = np.int64(b.intersections), np.int64(b.sites)
    clear_bytes(scene, 0, I_WAITING * width)
    site_planes = sites_at(b)
    clear_bytes(scene, site_planes, PER_SITE * sites)
    for kind in range(3):
        plane = (I_BUILDINGS + kind) * width
        rest = g.type_sites[kind]
        while rest != ZERO:
            site = np.int64(lowest(rest))
            scene[site_planes + kind * sites + site] = 1
            scene[plane + b.site_intersection[site]] += 1
            rest &= rest - ONE
    rest = g.free_sites & b.zone_sites[g.zone] if g.free_sites != ZERO else ZERO
    while rest != ZERO:
        site = np.int64(lowest(rest))
        scene[site_planes + B_OPEN * sites + site] = 1
        scene[I_OPEN * width + b.site_intersection[site]] += 1
        rest &= rest - ONE
    for i in range(width):
        scene[i] = g.passengers[i]
    _paint_hours(g, width, scene)


@kernel
def _add_streets(low, high, amount, plane):
    """Add to a plane at every street of a set."""
    while low != ZERO:
        plane[np.int64(lowest(low))] += amount
        low &= low - ONE
    while high != ZERO:
        plane[64 + np.int64(lowest(high))] += amount
        high &= high - ONE


@kernel
def _paint_lines(g, b, scene):
    """Each seat's line: streets, reach, ends, and where it may grow."""
    width, streets = np.int64(b.intersections), np.int64(b.streets)
    first = streets_at(b)
    clear_bytes(scene, I_LINE * width, sites_at(b) - I_LINE * width)
    for seat in range(g.players):
        sums = seats_at(b) + PER_SEAT * seat
        scene[sums + M_REACHED] = popcount(g.reach[seat])
        scene[sums + M_GROWTH] = 0
        rest = g.reach[seat]
        if rest == ZERO:
            continue
        while rest != ZERO:
            scene[(I_LINE + 2 * seat) * width + np.int64(lowest(rest))] = 1
            rest &= rest - ONE
        head, tail = g.head[seat], g.tail[seat]
        scene[(I_END + 2 * seat) * width + head] += 2
        scene[(I_END + 2 * seat) * width + tail] += 1
        line_at = first + (S_LINE + 2 * seat) * streets
        line = scene[line_at : line_at + streets]
        _add_streets(g.line[seat, 0], g.line[seat, 1], 1, line)
        line[g.head_street[seat]] += 2
        line[g.tail_street[seat]] += 1
        if g.line_markers[seat] == 0:
            continue
        grow_at = first + (S_GROW + 2 * seat) * streets
        grow = scene[grow_at : grow_at + streets]
        low, high = growth(g, b, seat, head)
        _add_streets(low, high, 2, grow)
        if tail != head:
            tail_low, tail_high = growth(g, b, seat, tail)
            _add_streets(tail_low, tail_high, 1, grow)
            low |= tail_low
            high |= tail_high
        scene[sums + M_GROWTH] = popcount(low) + popcount(high)


@kernel
def _add_up(g, b, scene):
    """Waiting passengers and free buildings along each seat's line, for the three hours."""
    width = np.int64(b.intersections)
    for seat in range(g.players):
        w0 = w1 = w2 = v0 = v1 = v2 = ZERO
        reach, at = g.reach[seat], I_WAITING * width
        while reach != ZERO:  # eight intersections at a time, a byte each; no sum reaches 256
            along = spread(reach & np.uint64(255)) * np.uint64(255)
            w0 += load_word(scene, at) & along
            w1 += load_word(scene, at + width) & along
            w2 += load_word(scene, at + 2 * width) & along
            v0 += load_word(scene, at + 3 * width) & along
            v1 += load_word(scene, at + 4 * width) & along
            v2 += load_word(scene, at + 5 * width) & along
            reach >>= np.uint64(8)
            at += 8
        sums = seats_at(b) + PER_SEAT * seat
        buses = np.uint64(g.buses[seat])
        w0, w1, w2 = sum_bytes(w0), sum_bytes(w1), sum_bytes(w2)
        v0, v1, v2 = sum_bytes(v0), sum_bytes(v1), sum_bytes(v2)
        scene[sums + M_WAITING] = w0
        scene[sums + M_WAITING + 1] = w1
        scene[sums + M_WAITING + 2] = w2
        scene[sums + M_VACANT] = v0
        scene[sums + M_VACANT + 1] = v1
        scene[sums + M_VACANT + 2] = v2
        scene[sums + M_DRIVE] = min(buses, w0, v0)
        scene[sums + M_DRIVE + 1] = min(buses, w1, v1)
        scene[sums + M_DRIVE + 2] = min(buses, w2, v2)


@kernel
def _paint_markers(g, b, action, scene):
    """Whose markers lie on the spaces of an action: a byte a space, MAX_SPACES in one word."""
    at = seats_at(b) + M_SPACES[action]
    for seat in range(g.players):
        word = ZERO
        for space in range(g.taken[action]):
            word |= np.uint64(g.spaces[action, space] == seat) << np.uint64(8 * space)
        if SPACES_OF[action] == 1:
            scene[at + PER_SEAT * seat] = word
        else:
            store_word(scene, at + PER_SEAT * seat, word)


@kernel
def _differ(g, painted, first, end):
    """Whether two games differ in the bytes of their records from `first` to before `end`."""
    different = ZERO
    for at in range(first, end, 8):
        different |= record_word(g, at) ^ record_word(painted, at)
    return different != ZERO


@kernel
def paint(g, b, scene, painted):
    """Bring a picture up to date. `painted`: a GAME record, the state that it shows; `players` is
    0 for none."""
    fresh = painted.players != g.players
    if fresh or _differ(g, painted, MARKERS_FROM, STANDING_FROM):
        for action in range(7):
            at = MARKERS_FROM + MAX_SPACES * action
            taken = g.taken[action] != painted.taken[action]
            if fresh or taken or _differ(g, painted, at, at + MAX_SPACES):
                _paint_markers(g, b, action, scene)
    if fresh or _differ(g, painted, STANDING_FROM, PAINTED_TO):
        _paint_standing(g, b, scene)
    city = fresh or _differ(g, painted, CITY_FROM, MARKERS_FROM)
    if city:
        _paint_city(g, b, scene)
    lines = fresh or _differ(g, painted, LINES_FROM, CITY_FROM)
    if lines:
        _paint_lines(g, b, scene)
    if lines or city:
        _add_up(g, b, scene)
    copy_record(painted, g, 0, PAINTED_TO)
