"""A picture of the city and the lines, seats as they are; core.observe turns it to a viewer.

Most decisions choose actions and change neither city nor lines, so a picture is kept and painted
anew only where it has changed. It is laid out in planes: all intersections' first feature, then
all their second one, and so on (busenv.observation names them).
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import (
    ONE,
    ZERO,
    clear_bytes,
    load_word,
    lowest,
    popcount,
    spread,
    store_word,
    sum_bytes,
)
from busenv.core.jit import kernel
from busenv.core.rules.lines import growth
from busenv.core.rules.score import points_mark, standing
from busenv.core.state import ALL_SPACES, MAX_PLAYERS, SPACE_AT

# Planes of intersections: passengers, three of buildings, ...
# Planes of seats stand together, seat by seat, two each: line and end, line and growth.
I_BUILDINGS, I_OPEN, I_WAITING, I_VACANT, I_LINE, I_END, PER_INTERSECTION = 1, 4, 5, 8, 11, 12, 21
S_LINE, S_GROW, PER_STREET = 0, 1, 10
PER_SITE = 4
# Of each seat, behind the planes: reached, growth, place, order of the last delivery, three
# waiting, three vacant, three of what a drive would deliver, and the spaces with its markers.
M_REACHED, M_GROWTH, M_PLACE, M_ORDER = 0, 1, 2, 3
M_WAITING, M_VACANT, M_DRIVE, M_SPACES = 4, 7, 10, 13
PER_SEAT = M_SPACES + ALL_SPACES
MARKS = 4  # what tells whether a picture is up to date: see paint
TOPS = np.uint64(0x8080808080808080)


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
def _rest(some, others):
    """What is left of each byte less the other word's, at least 0; all bytes are below 128."""
    borrowed = (some | TOPS) - others
    return borrowed & ~TOPS & ((borrowed & TOPS) >> np.uint64(7)) * np.uint64(255)


@kernel
def _paint_hours(g, width, scene):
    """Who waits and what is vacant, now and at the next two hours (R16)."""
    now, next_hour = np.int64(g.clock), np.int64(g.clock == 0) + 2 * np.int64(g.clock == 1)
    homes, next_homes = (I_BUILDINGS + now) * width, (I_BUILDINGS + next_hour) * width
    last_homes = (I_BUILDINGS + 3 - now - next_hour) * width
    waiting, vacant = I_WAITING * width, I_VACANT * width
    behind = load_word(scene, I_LINE * width)
    # The last words run over the ends of their planes; what they spoil there is written later.
    for at in range((width - 1) & ~7, -1, -8):
        people = load_word(scene, at)
        rooms = load_word(scene, homes + at)
        next_rooms = load_word(scene, next_homes + at)
        last_rooms = load_word(scene, last_homes + at)
        store_word(scene, waiting + at, _rest(people, rooms))
        store_word(scene, waiting + width + at, _rest(people, next_rooms))
        store_word(scene, waiting + 2 * width + at, _rest(people, last_rooms))
        store_word(scene, vacant + at, _rest(rooms, people))
        store_word(scene, vacant + width + at, _rest(next_rooms, people))
        store_word(scene, vacant + 2 * width + at, _rest(last_rooms, people))
    store_word(scene, I_LINE * width, behind)


@kernel
def _paint_standing(g, b, scene):
    """Each seat's place, and the order in which they reached their deliveries (R20)."""
    first = seats_at(b)
    for seat in range(g.players):  # kept for a moment where _add_up will write
        store_word(scene, first + PER_SEAT * seat + M_WAITING, np.uint64(standing(g, seat)))
    for seat in range(g.players):
        sums, order, better = first + PER_SEAT * seat, 0, 0
        mine, last = np.int64(load_word(scene, sums + M_WAITING)), g.last_delivery[seat]
        for other in range(g.players):
            theirs = load_word(scene, first + PER_SEAT * other + M_WAITING)
            better += np.int64(theirs) > mine
            order += 0 < g.last_delivery[other] <= last
        scene[sums + M_PLACE] = better
        scene[sums + M_ORDER] = order


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
        scene[site_planes + 3 * sites + site] = 1
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
def _paint_markers(g, b, scene):
    """Whose markers lie on the action board."""
    for seat in range(MAX_PLAYERS):
        clear_bytes(scene, seats_at(b) + PER_SEAT * seat + M_SPACES, ALL_SPACES)
    for action in range(7):
        for space in range(g.taken[action]):
            seat = np.int64(g.spaces[action, space])
            scene[seats_at(b) + PER_SEAT * seat + M_SPACES + SPACE_AT[action] + space] = 1


@kernel
def paint(g, b, scene, painted):
    """Bring a picture up to date. `painted` (int64, MARKS) tells what it shows; -1 for nothing.

    Its marks are of the lines, the city, the action board and the points.
    """
    if painted[2] != g.markers_changed:
        if painted[2] + 1 == g.markers_changed and painted[2] >= 0:
            owner = seats_at(b) + PER_SEAT * np.int64(g.last_owner)
            scene[owner + M_SPACES + np.int64(g.last_marker)] = 1
        else:
            _paint_markers(g, b, scene)
        painted[2] = g.markers_changed
    points = painted[3] != points_mark(g)
    if points:
        _paint_standing(g, b, scene)
        painted[3] = points_mark(g)
    lines, city = painted[0] != g.lines_changed, painted[1] != g.city_changed
    if city:
        _paint_city(g, b, scene)
        painted[1] = g.city_changed
    if lines:
        _paint_lines(g, b, scene)
        painted[0] = g.lines_changed
    if lines or city or points:
        _add_up(g, b, scene)
