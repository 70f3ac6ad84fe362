"""Observation cache: parts of an observation that change only with lines, buildings and markers.

Most decisions select actions and change neither the city nor the lines. Each game therefore has an
observation cache and the state that the cache shows (`cached`, a GAME record); `update_cache`
rewrites only what differs between that state and the game's. Features that are the same for every
viewer (buildings, passengers, sites) are written straight into the observation row. Features that
belong to seats are written into the cache in seat order; `core.observe` copies them into the row,
starting with the viewer.

Both are laid out in planes: the first feature of all intersections, then the second, and so on
(`core.features`).
"""

from __future__ import annotations

import numpy as np

from busenv.core.bits import (
    ONE,
    ZERO,
    bit,
    clear_bytes,
    copy_bytes,
    equal_bytes,
    has,
    load_word,
    lowest,
    popcount,
    records_differ,
    spread,
    store_word,
    subtract_bytes,
    sum_bytes,
)
from busenv.core.features import INTERSECTION_AT, PLAYER_AT, SITE_AT, SPACES, STREET_AT, WIDTHS
from busenv.core.jit import kernel
from busenv.core.rules.lines import growth
from busenv.core.rules.score import rank_of
from busenv.core.state import MAX_PLAYERS, MAX_SPACES, offset

PER_INTERSECTION, PER_STREET = WIDTHS["intersections"], WIDTHS["streets"]
PER_SITE = WIDTHS["sites"]
# After the planes, the cache holds the features of each player from "reached" on, by seat.
PER_SEAT = WIDTHS["players"] - PLAYER_AT.reached
SEAT_AT = PLAYER_AT._make(column - PLAYER_AT.reached for column in PLAYER_AT)
# Arrays, because numba compiles an index into a tuple to a chain of branches.
SPACES_OF = np.array([spaces for _, spaces in SPACES])
SPACES_AT = np.array([getattr(SEAT_AT, f"spaces_{name}") for name, _ in SPACES])

# Parts of a GAME record that the cache shows, in the order of its fields.
LINES_FROM, CITY_FROM, PASSENGERS_FROM, MARKERS_FROM, STANDING_FROM, CACHED_TO = (
    offset(name) for name in ("line", "type_sites", "passengers", "spaces", "deliveries", "marked")
)


@kernel
def streets_at(b):
    """Offset of the planes of streets."""
    return PER_INTERSECTION * np.int64(b.intersections)


@kernel
def sites_at(b):
    """Offset of the planes of sites."""
    return streets_at(b) + PER_STREET * np.int64(b.streets)


@kernel
def seats_at(b):
    """Offset of the features by seat, which follow the planes."""
    return sites_at(b) + PER_SITE * np.int64(b.sites)


@kernel
def cache_size(b):
    """Length of an observation cache in bytes."""
    return seats_at(b) + PER_SEAT * MAX_PLAYERS


@kernel
def _update_passengers(g, width, row):
    """Write passengers, and who waits and which buildings are free at three clock steps (R16).

    Boards with eight intersections or more are written eight bytes at a time; the last word of a
    plane then overlaps the one before.
    """
    wide = width >= 8
    if wide:
        for k in range(0, width, 8):
            at = min(k, width - 8)
            store_word(row, at, load_word(g, PASSENGERS_FROM + at))
    else:
        for at in range(width):
            row[at] = g.passengers[at]
    kind = np.int64(g.clock)
    for steps in range(3):
        buildings = (INTERSECTION_AT.buildings + kind) * width
        waiting = (INTERSECTION_AT.waiting + steps) * width
        vacant = (INTERSECTION_AT.vacant + steps) * width
        if wide:
            for k in range(0, width, 8):
                at = min(k, width - 8)
                passengers, matching = load_word(row, at), load_word(row, buildings + at)
                store_word(row, waiting + at, subtract_bytes(passengers, matching))
                store_word(row, vacant + at, subtract_bytes(matching, passengers))
        else:
            for at in range(width):
                surplus = np.int64(row[at]) - np.int64(row[buildings + at])
                row[waiting + at] = max(surplus, 0)
                row[vacant + at] = max(-surplus, 0)
        kind = kind + 1 if kind < 2 else 0


@kernel
def _update_standing(g, b, cache):
    """Write each seat's rank and delivery order (R20)."""
    for seat in range(g.players):
        at = seats_at(b) + PER_SEAT * seat
        cache[at + SEAT_AT.rank] = rank_of(g, seat)
        cache[at + SEAT_AT.delivery_order] = g.delivery_order[seat]


@kernel
def _update_sites(g, b, row, cached, fresh):
    """Write buildings that `cached` does not have, and the sites that are open now (R14)."""
    width, sites, site_planes = np.int64(b.intersections), np.int64(b.sites), sites_at(b)
    if fresh:
        first, end = INTERSECTION_AT.buildings * width, INTERSECTION_AT.waiting * width
        clear_bytes(row, first, end - first)
        clear_bytes(row, site_planes, PER_SITE * sites)
    different = ZERO
    for kind in range(3):
        plane = (INTERSECTION_AT.buildings + kind) * width
        rest = g.type_sites[kind] ^ (ZERO if fresh else cached.type_sites[kind])
        different |= rest
        while rest != ZERO:
            site = np.int64(lowest(rest))
            built = np.int64((g.type_sites[kind] >> np.uint64(site)) & ONE)
            row[site_planes + kind * sites + site] = built
            row[plane + b.site_intersection[site]] += 2 * built - 1
            rest &= rest - ONE
    if different == ZERO and not fresh:
        return
    clear_bytes(row, INTERSECTION_AT.open_sites * width, width)
    clear_bytes(row, site_planes + SITE_AT.open * sites, sites)
    rest = g.free_sites & b.zone_sites[g.zone] if g.free_sites != ZERO else ZERO
    while rest != ZERO:
        site = np.int64(lowest(rest))
        row[site_planes + SITE_AT.open * sites + site] = 1
        row[INTERSECTION_AT.open_sites * width + b.site_intersection[site]] += 1
        rest &= rest - ONE


@kernel
def _add_streets(low, high, amount, plane):
    """Add an amount to a plane at every street of a set."""
    while low != ZERO:
        plane[np.int64(lowest(low))] += amount
        low &= low - ONE
    while high != ZERO:
        plane[64 + np.int64(lowest(high))] += amount
        high &= high - ONE


@kernel
def _update_line(g, b, cache, seat):
    """Write a seat's line: intersections, streets and ends."""
    width, streets = np.int64(b.intersections), np.int64(b.streets)
    clear_bytes(cache, (INTERSECTION_AT.on_line + 2 * seat) * width, 2 * width)
    line_at = streets_at(b) + (STREET_AT.line + 2 * seat) * streets
    clear_bytes(cache, line_at, streets)
    rest = g.reach[seat]
    cache[seats_at(b) + PER_SEAT * seat + SEAT_AT.reached] = popcount(rest)
    if rest == ZERO:
        return
    while rest != ZERO:
        cache[(INTERSECTION_AT.on_line + 2 * seat) * width + np.int64(lowest(rest))] = 1
        rest &= rest - ONE
    cache[(INTERSECTION_AT.line_end + 2 * seat) * width + g.head[seat]] += 2
    cache[(INTERSECTION_AT.line_end + 2 * seat) * width + g.tail[seat]] += 1
    line = cache[line_at : line_at + streets]
    _add_streets(g.line[seat, 0], g.line[seat, 1], 1, line)
    line[g.head_street[seat]] += 2
    line[g.tail_street[seat]] += 1


@kernel
def _update_growth(g, b, cache, seat):
    """Write the streets onto which a seat's line may grow (R8 to R10)."""
    streets = np.int64(b.streets)
    grow_at = streets_at(b) + (STREET_AT.may_grow + 2 * seat) * streets
    at = seats_at(b) + PER_SEAT * seat
    clear_bytes(cache, grow_at, streets)
    cache[at + SEAT_AT.growth] = 0
    if g.reach[seat] == ZERO or g.line_markers[seat] == 0:
        return
    grow = cache[grow_at : grow_at + streets]
    low, high, tail_low, tail_high = growth(g, b, seat)
    _add_streets(low, high, 2, grow)
    _add_streets(tail_low, tail_high, 1, grow)
    cache[at + SEAT_AT.growth] = popcount(low | tail_low) + popcount(high | tail_high)


@kernel
def _line_ends(g, seat):
    """The ends of a seat's line as a set of intersections; empty without a line."""
    if g.line[seat, 0] | g.line[seat, 1] == ZERO:
        return ZERO
    return bit(g.head[seat]) | bit(g.tail[seat])


@kernel
def street_ends(b, low, high):
    """The intersections at the ends of streets (two words of a set), and those at an odd number."""
    ends = odd = ZERO
    for part in range(2):
        rest = low if part == 0 else high
        while rest != ZERO:
            street = np.uint64(64 * part) + lowest(rest)
            first, second = bit(b.street_ends[street, 0]), bit(b.street_ends[street, 1])
            ends |= first | second
            odd ^= first ^ second
            rest &= rest - ONE
    return ends, odd


@kernel
def _update_lines(g, b, cache, cached, fresh):
    """Write the lines that changed, and the growth of the lines that end where one changed.

    Returns the set of seats whose line changed.
    """
    moved = touched = ZERO
    for seat in range(g.players):
        low = g.line[seat, 0] ^ cached.line[seat, 0]
        high = g.line[seat, 1] ^ cached.line[seat, 1]
        if (
            fresh
            or low | high != ZERO
            or g.head[seat] != cached.head[seat]
            or g.tail[seat] != cached.tail[seat]
            or g.head_street[seat] != cached.head_street[seat]
            or g.tail_street[seat] != cached.tail_street[seat]
            or g.head_shared[seat] != cached.head_shared[seat]
            or g.tail_shared[seat] != cached.tail_shared[seat]
        ):
            moved |= bit(seat)
            ends, _ = street_ends(b, low, high)
            touched |= ends | _line_ends(g, seat) | _line_ends(cached, seat)
            _update_line(g, b, cache, seat)
    for seat in range(g.players):
        if fresh or has(moved, seat) or _line_ends(g, seat) & touched != ZERO:
            _update_growth(g, b, cache, seat)
    return moved


@kernel
def _update_totals(g, b, row, seats, cache):
    """Sum waiting passengers and free buildings along the lines of a set of seats (R16, R17).

    Each is summed at the three clock steps, and so are the deliveries that the seat's buses allow.
    """
    width = np.int64(b.intersections)
    for seat in range(g.players):
        if not has(seats, seat):
            continue
        w0 = w1 = w2 = v0 = v1 = v2 = ZERO
        reach, at = g.reach[seat], INTERSECTION_AT.waiting * width
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
        totals = seats_at(b) + PER_SEAT * seat
        buses = np.uint64(g.buses[seat])
        w0, w1, w2 = sum_bytes(w0), sum_bytes(w1), sum_bytes(w2)
        v0, v1, v2 = sum_bytes(v0), sum_bytes(v1), sum_bytes(v2)
        cache[totals + SEAT_AT.waiting] = w0
        cache[totals + SEAT_AT.waiting + 1] = w1
        cache[totals + SEAT_AT.waiting + 2] = w2
        cache[totals + SEAT_AT.vacant] = v0
        cache[totals + SEAT_AT.vacant + 1] = v1
        cache[totals + SEAT_AT.vacant + 2] = v2
        cache[totals + SEAT_AT.drive] = min(buses, w0, v0)
        cache[totals + SEAT_AT.drive + 1] = min(buses, w1, v1)
        cache[totals + SEAT_AT.drive + 2] = min(buses, w2, v2)


@kernel
def _update_markers(g, b, action, cache):
    """Write whose markers are on the spaces of an action, one byte per space."""
    at = seats_at(b) + SPACES_AT[action]
    taken = np.uint64(8) * np.uint64(g.taken[action])
    placed = (ONE << taken) - ONE if taken < np.uint64(64) else ~ZERO
    owners = load_word(g, MARKERS_FROM + MAX_SPACES * action)
    for seat in range(g.players):
        word = equal_bytes(owners, np.uint64(seat)) & placed
        if SPACES_OF[action] == 1:
            cache[at + PER_SEAT * seat] = word
        else:
            store_word(cache, at + PER_SEAT * seat, word)


@kernel
def update_cache(g, b, cache, row, cached):
    """Update an observation cache to a game's state; return whether a line changed.

    cache: uint8, (cache_size,). row: uint8, an observation, into which the features that are the
    same for every viewer are written. cached: GAME record, the state that cache and row show,
    which is updated as well; `players` is 0 for an empty cache.
    """
    width = np.int64(b.intersections)
    fresh = cached.players != g.players
    if fresh or records_differ(g, cached, MARKERS_FROM, STANDING_FROM):
        for action in range(7):
            at = MARKERS_FROM + MAX_SPACES * action
            taken = g.taken[action] != cached.taken[action]
            if fresh or taken or load_word(g, at) != load_word(cached, at):
                _update_markers(g, b, action, cache)
        copy_bytes(cached, MARKERS_FROM, g, MARKERS_FROM, STANDING_FROM - MARKERS_FROM)
    if fresh or records_differ(g, cached, STANDING_FROM, CACHED_TO):
        _update_standing(g, b, cache)
        copy_bytes(cached, STANDING_FROM, g, STANDING_FROM, CACHED_TO - STANDING_FROM)
    all_seats, moved = bit(g.players) - ONE, ZERO
    city = fresh or records_differ(g, cached, CITY_FROM, MARKERS_FROM)
    if city:
        _update_sites(g, b, row, cached, fresh)
        _update_passengers(g, width, row)
        copy_bytes(cached, CITY_FROM, g, CITY_FROM, MARKERS_FROM - CITY_FROM)
    if fresh or records_differ(g, cached, LINES_FROM, CITY_FROM):
        moved = _update_lines(g, b, cache, cached, fresh)
        copy_bytes(cached, LINES_FROM, g, LINES_FROM, CITY_FROM - LINES_FROM)
    if city or moved != ZERO:
        _update_totals(g, b, row, all_seats if city else moved, cache)
    return moved != ZERO
