"""A picture of the city and the lines; core.observe turns what is the seats' own to a viewer.

Most decisions choose actions and change neither city nor lines, so a picture is kept beside the
game, with the state that it shows, and painted anew only where the two states differ. The city,
the same for all who look, is painted straight into the observation, the rest into a scene, at the
same places. Both are laid out in planes: all intersections' first feature, then all their second
one, and so on (core.features names them).
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import (
    ONE,
    ZERO,
    bit,
    clear_bytes,
    copy_record,
    equal_bytes,
    has,
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
from busenv.core.rules.score import rank_of
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
LINES_FROM, CITY_FROM, PASSENGERS_FROM, MARKERS_FROM, STANDING_FROM, PAINTED_TO = (
    offset(name) for name in ("line", "type_sites", "passengers", "spaces", "deliveries", "marked")
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
def _paint_word(row, people, homes, waiting, vacant):
    """Who waits, and what is vacant, at the intersections whose bytes stand in one word (R16)."""
    here, rooms = load_word(row, people), load_word(row, homes)
    store_word(row, waiting, subtract_bytes(here, rooms))
    store_word(row, vacant, subtract_bytes(rooms, here))


@kernel
def _paint_byte(row, people, homes, waiting, vacant):
    """The same at one intersection."""
    here, rooms = np.int64(row[people]), np.int64(row[homes])
    row[waiting] = max(here - rooms, 0)
    row[vacant] = max(rooms - here, 0)


@kernel
def _paint_hours(g, width, row):
    """Who waits and what is vacant, now and at the next two hours (R16)."""
    kind = np.int64(g.clock)
    for hour in range(3):
        homes = (I_BUILDINGS + kind) * width
        waiting, vacant = (I_WAITING + hour) * width, (I_VACANT + hour) * width
        if width >= 8:
            for k in range(0, width, 8):  # the last word ends with its plane, over the one before
                at = min(k, width - 8)
                _paint_word(row, at, homes + at, waiting + at, vacant + at)
        else:
            for at in range(width):
                _paint_byte(row, at, homes + at, waiting + at, vacant + at)
        kind = kind + 1 if kind < 2 else 0


@kernel
def _paint_standing(g, b, scene):
    """Each seat's place, and the order in which they reached their deliveries (R20)."""
    for seat in range(g.players):
        sums = seats_at(b) + PER_SEAT * seat
        scene[sums + M_PLACE] = rank_of(g, seat)
        scene[sums + M_ORDER] = g.delivery_order[seat]


@kernel
def _paint_people(g, width, row):
    """Passengers at each intersection."""
    if width >= 8:
        for k in range(0, width, 8):
            at = min(k, width - 8)
            store_word(row, at, record_word(g, PASSENGERS_FROM + at))
    else:
        for at in range(width):
            row[at] = g.passengers[at]


@kernel
def _paint_sites(g, b, row, painted, fresh):
    """Buildings, and sites that may be built on now (R14). `painted` holds those that are shown."""
    width, sites, site_planes = np.int64(b.intersections), np.int64(b.sites), sites_at(b)
    if fresh:
        clear_bytes(row, I_BUILDINGS * width, (I_WAITING - I_BUILDINGS) * width)
        clear_bytes(row, site_planes, PER_SITE * sites)
    different = ZERO
    for kind in range(3):
        plane = (I_BUILDINGS + kind) * width
        rest = g.type_sites[kind] ^ (ZERO if fresh else painted.type_sites[kind])
        different |= rest
        while rest != ZERO:
            site = np.int64(lowest(rest))
            built = np.int64((g.type_sites[kind] >> np.uint64(site)) & ONE)
            row[site_planes + kind * sites + site] = built
            row[plane + b.site_intersection[site]] += 2 * built - 1
            rest &= rest - ONE
    if different == ZERO and not fresh:
        return
    clear_bytes(row, I_OPEN * width, width)
    clear_bytes(row, site_planes + B_OPEN * sites, sites)
    rest = g.free_sites & b.zone_sites[g.zone] if g.free_sites != ZERO else ZERO
    while rest != ZERO:
        site = np.int64(lowest(rest))
        row[site_planes + B_OPEN * sites + site] = 1
        row[I_OPEN * width + b.site_intersection[site]] += 1
        rest &= rest - ONE


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
def _paint_line(g, b, scene, seat):
    """A seat's line: streets, reach, ends."""
    width, streets = np.int64(b.intersections), np.int64(b.streets)
    clear_bytes(scene, (I_LINE + 2 * seat) * width, 2 * width)
    line_at = streets_at(b) + (S_LINE + 2 * seat) * streets
    clear_bytes(scene, line_at, streets)
    rest = g.reach[seat]
    scene[seats_at(b) + PER_SEAT * seat + M_REACHED] = popcount(rest)
    if rest == ZERO:
        return
    while rest != ZERO:
        scene[(I_LINE + 2 * seat) * width + np.int64(lowest(rest))] = 1
        rest &= rest - ONE
    scene[(I_END + 2 * seat) * width + g.head[seat]] += 2
    scene[(I_END + 2 * seat) * width + g.tail[seat]] += 1
    line = scene[line_at : line_at + streets]
    _add_streets(g.line[seat, 0], g.line[seat, 1], 1, line)
    line[g.head_street[seat]] += 2
    line[g.tail_street[seat]] += 1


@kernel
def _paint_growth(g, b, scene, seat):
    """Where a seat's line may grow (R9)."""
    streets = np.int64(b.streets)
    grow_at = streets_at(b) + (S_GROW + 2 * seat) * streets
    sums = seats_at(b) + PER_SEAT * seat
    clear_bytes(scene, grow_at, streets)
    scene[sums + M_GROWTH] = 0
    if g.reach[seat] == ZERO or g.line_markers[seat] == 0:
        return
    head, tail = g.head[seat], g.tail[seat]
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
def _ends(g, seat):
    """The two ends of a seat's line, as a set of intersections; none when there is no line."""
    if g.line[seat, 0] | g.line[seat, 1] == ZERO:
        return ZERO
    return bit(g.head[seat]) | bit(g.tail[seat])


@kernel
def _corners(b, low, high):
    """The intersections that a set of streets leads to."""
    found = ZERO
    while low != ZERO:
        street = lowest(low)
        found |= bit(b.street_ends[street, 0]) | bit(b.street_ends[street, 1])
        low &= low - ONE
    while high != ZERO:
        street = np.uint64(64) + lowest(high)
        found |= bit(b.street_ends[street, 0]) | bit(b.street_ends[street, 1])
        high &= high - ONE
    return found


@kernel
def _paint_lines(g, b, scene, painted, fresh):
    """Lines that have changed, and the growth of those that end where one has; a bit for each seat
    whose line has."""
    moved = touched = ZERO
    for seat in range(g.players):
        low = g.line[seat, 0] ^ painted.line[seat, 0]
        high = g.line[seat, 1] ^ painted.line[seat, 1]
        if (
            fresh
            or low | high != ZERO
            or g.head[seat] != painted.head[seat]
            or g.tail[seat] != painted.tail[seat]
            or g.head_street[seat] != painted.head_street[seat]
            or g.tail_street[seat] != painted.tail_street[seat]
        ):
            moved |= bit(seat)
            touched |= _corners(b, low, high) | _ends(g, seat) | _ends(painted, seat)
            _paint_line(g, b, scene, seat)
    for seat in range(g.players):
        if fresh or has(moved, seat) or _ends(g, seat) & touched != ZERO:
            _paint_growth(g, b, scene, seat)
    return moved


@kernel
def _add_up(g, b, row, chosen, scene):
    """Waiting passengers and free buildings along the lines of some seats (a bit each), for the
    three hours."""
    width = np.int64(b.intersections)
    for seat in range(g.players):
        if not has(chosen, seat):
            continue
        w0 = w1 = w2 = v0 = v1 = v2 = ZERO
        reach, at = g.reach[seat], I_WAITING * width
        while reach != ZERO:  # eight intersections at a time, a byte each; no sum reaches 256
            along = spread(reach & np.uint64(255)) * np.uint64(255)
            w0 += load_word(row, at) & along
            w1 += load_word(row, at + width) & along
            w2 += load_word(row, at + 2 * width) & along
            v0 += load_word(row, at + 3 * width) & along
            v1 += load_word(row, at + 4 * width) & along
            v2 += load_word(row, at + 5 * width) & along
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
    taken = np.uint64(8) * np.uint64(g.taken[action])
    placed = (ONE << taken) - ONE if taken < np.uint64(64) else ~ZERO
    owners = record_word(g, MARKERS_FROM + MAX_SPACES * action)
    for seat in range(g.players):
        word = equal_bytes(owners, np.uint64(seat)) & placed
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
def paint(g, b, scene, row, painted):
    """Bring a picture up to date; whether what is seats' own has changed.

    row: uint8, an observation: what is the same for all who look is painted into it. scene: uint8,
    the rest, which is turned to a viewer. painted: a GAME record, the state that both show;
    `players` is 0 for none.
    """
    width = np.int64(b.intersections)
    fresh = painted.players != g.players
    if fresh or _differ(g, painted, MARKERS_FROM, STANDING_FROM):
        for action in range(7):
            at = MARKERS_FROM + MAX_SPACES * action
            taken = g.taken[action] != painted.taken[action]
            if fresh or taken or record_word(g, at) != record_word(painted, at):
                _paint_markers(g, b, action, scene)
        copy_record(painted, g, MARKERS_FROM, STANDING_FROM - MARKERS_FROM)
    if fresh or _differ(g, painted, STANDING_FROM, PAINTED_TO):
        _paint_standing(g, b, scene)
        copy_record(painted, g, STANDING_FROM, PAINTED_TO - STANDING_FROM)
    everybody, moved = bit(g.players) - ONE, ZERO
    city = fresh or _differ(g, painted, CITY_FROM, MARKERS_FROM)
    if city:
        _paint_sites(g, b, row, painted, fresh)
        _paint_people(g, width, row)
        _paint_hours(g, width, row)
        copy_record(painted, g, CITY_FROM, MARKERS_FROM - CITY_FROM)
    if fresh or _differ(g, painted, LINES_FROM, CITY_FROM):
        moved = _paint_lines(g, b, scene, painted, fresh)
        copy_record(painted, g, LINES_FROM, CITY_FROM - LINES_FROM)
    if city or moved != ZERO:
        _add_up(g, b, row, everybody if city else moved, scene)
    return moved != ZERO
