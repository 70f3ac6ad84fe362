"""Generation of maps from a seed: intersections, streets without crossings, stations and sites.

All arithmetic is on whole numbers (IEEE 754 rounds their square roots alike everywhere), so a seed
gives the same map on every platform. Any change of a result requires another
`busenv.game.board_generator.GENERATOR_VERSION`. A length of UNIT (100) is the square root of the
map's area per intersection.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, below, mix, seeded
from busenv.core.jit import kernel
from busenv.core.map_geometry import (
    bfs_distances,
    crosses,
    has_articulation_point,
    is_narrow,
    is_near,
    squared_distance,
    streets_around,
)

UNIT = 100
ROUNDABOUTS = 4  # around the park
PARK_RADIUS = 130  # no other intersection is nearer to the middle of the park
CANDIDATES, MORE_CANDIDATES = 20, 200  # places tried for an intersection; more where it is crowded
SPACING = 65  # of intersections, where one of the candidates has it
LONGEST, CLEARANCE = 190, 48  # of a street, and its distance from intersections other than its ends
COSINE = 80  # the squared cosine, in hundredths, of the least angle between streets (27 degrees)
MAX_DEGREE = 7
WIDEST = 5  # most streets around a face of the map
MAX_ATTEMPTS = 1000
# Directions of the first roundabout from the middle of the park, in thousandths.
COSINES = np.array([1000, 981, 924, 831, 707, 556, 383, 195])
SINES = np.array([0, 195, 383, 556, 707, 831, 924, 981])


class MapBounds(NamedTuple):
    """Bounds of the maps of a size.

    width, height: of the city. station_distance: least straight-line distance of the stations.
    station_walk: least number of streets between them. station_degree: least number of streets at
    each, before streets are removed.
    """

    width: int
    height: int
    station_distance: int
    station_walk: int
    station_degree: int


class Map(NamedTuple):
    """One map, by ids.

    points: int64, (V, 2). streets: int64, (S, 2), the lower end first. sites: int64, (B, 2),
    intersection and zone. roundabouts: int64, (4,). stations: int64, (2,).
    """

    points: np.ndarray
    streets: np.ndarray
    sites: np.ndarray
    roundabouts: np.ndarray
    stations: np.ndarray


@kernel
def _draw(rng_state, bound):
    """A number from 0 to bound - 1 of a random stream, uint64, (1,), whose state advances."""
    rng_state[0] += GOLDEN
    return below(mix(rng_state[0]), bound)


@kernel
def _place(rng_state, width, height, points):
    """Place the roundabouts in a ring around the park, then the others where most room is left."""
    middle_x = width // 2 + _draw(rng_state, UNIT) - UNIT // 2
    middle_y = height // 2 + _draw(rng_state, UNIT) - UNIT // 2
    turn = _draw(rng_state, 8)
    cosine, sine = COSINES[turn], SINES[turn]
    for i in range(ROUNDABOUTS):
        radius = 72 + _draw(rng_state, 20)
        points[i, 0] = middle_x + radius * cosine // 1000
        points[i, 1] = middle_y + radius * sine // 1000
        cosine, sine = -sine, cosine
    for i in range(ROUNDABOUTS, points.shape[0]):
        most = np.int64(-1)
        for tried in range(MORE_CANDIDATES):
            if tried >= CANDIDATES and most >= SPACING * SPACING:
                break
            x, y = _draw(rng_state, width + 1), _draw(rng_state, height + 1)
            room = (x - middle_x) * (x - middle_x) + (y - middle_y) * (y - middle_y)
            if room < PARK_RADIUS * PARK_RADIUS:
                room = np.int64(0)
            for j in range(i):
                dx, dy = x - points[j, 0], y - points[j, 1]
                room = min(room, dx * dx + dy * dy)
            if room > most:
                most, points[i, 0], points[i, 1] = room, x, y


@kernel
def _number(placed, city_map):
    """Number the intersections by rows of height UNIT, each from the left."""
    order = np.empty(placed.shape[0], np.int64)
    for i in range(order.shape[0]):
        order[i] = (placed[i, 1] // UNIT * 10_000 + placed[i, 0]) * 64 + i
    order.sort()
    for i in range(order.shape[0]):
        old = order[i] & 63
        city_map.points[i, 0], city_map.points[i, 1] = placed[old, 0], placed[old, 1]
        if old < ROUNDABOUTS:
            city_map.roundabouts[old] = i


@kernel
def _fits(points, adjacent, degrees, streets, i, j):
    """Return whether a street i-j can be added: degrees, clearance, angles and crossings."""
    if adjacent[i, j] or max(degrees[i], degrees[j]) == MAX_DEGREE:
        return False
    for k in range(points.shape[0]):
        if k == i or k == j:
            continue
        if is_near(points, i, j, k, CLEARANCE):
            return False
        if adjacent[i, k] and is_narrow(points, i, j, k, COSINE):
            return False
        if adjacent[j, k] and is_narrow(points, j, i, k, COSINE):
            return False
    for street in range(streets.shape[0]):
        k, m = streets[street, 0], streets[street, 1]
        if k != i and k != j and m != i and m != j and crosses(points, i, j, k, m):
            return False
    return True


@kernel
def _join(points, roundabouts, adjacent, degrees, streets):
    """Add the ring around the park, then every street that fits, shortest first.

    No street leads across the park. Returns the number of streets.
    """
    number = points.shape[0]
    pairs = np.empty(number * number, np.int64)
    num_pairs = count = 0
    for i in range(number):
        for j in range(i + 1, number):
            length = squared_distance(points, i, j)
            if length <= LONGEST * LONGEST:
                pairs[num_pairs] = (length * 64 + i) * 64 + j
                num_pairs += 1
    pairs[:num_pairs].sort()
    for k in range(ROUNDABOUTS + num_pairs):
        if k < ROUNDABOUTS:
            i, j = roundabouts[k], roundabouts[(k + 1) % ROUNDABOUTS]
        else:
            i, j = pairs[k - ROUNDABOUTS] // 64 % 64, pairs[k - ROUNDABOUTS] % 64
            if i in roundabouts and j in roundabouts:
                continue
            if not _fits(points, adjacent, degrees, streets[:count], i, j):
                continue
        adjacent[i, j] = adjacent[j, i] = True
        degrees[i] += 1
        degrees[j] += 1
        streets[count, 0], streets[count, 1] = min(i, j), max(i, j)
        count += 1
    return count


@kernel
def _choose_stations(rng_state, bounds, adjacent, degrees, city_map):
    """Choose two intersections that are far apart, off the park and have many streets.

    Returns whether there are two.
    """
    best, points = np.int64(-1), city_map.points
    to_park = np.empty(points.shape[0], np.int64)
    bfs_distances(adjacent, city_map.roundabouts, -1, to_park)
    least = bounds.station_distance * bounds.station_distance
    for i in range(points.shape[0]):
        for j in range(i + 1, points.shape[0]):
            value = 30 * (degrees[i] + degrees[j]) + _draw(rng_state, 80)
            value += 40 * (min(to_park[i], 2) + min(to_park[j], 2))
            if (
                value > best
                and min(to_park[i], to_park[j]) > 0
                and min(degrees[i], degrees[j]) >= bounds.station_degree
                and squared_distance(points, i, j) >= least
            ):
                best, city_map.stations[0], city_map.stations[1] = value, i, j
    return best >= 0


@kernel
def _remove_streets(rng_state, city_map, adjacent, degrees, streets):
    """Remove streets at random until as many are left as the map has; return how many are left.

    The ring, streets at stations and the outermost streets stay. Most faces get at most four
    streets around them, and none gets more than five; an intersection keeps two streets, a
    roundabout three.
    """
    points, count, wanted = city_map.points, streets.shape[0], city_map.streets.shape[0]
    for _ in range(50 * count):
        if count == wanted:
            break
        street = _draw(rng_state, count)
        i, j = streets[street, 0], streets[street, 1]
        ring_i, ring_j = i in city_map.roundabouts, j in city_map.roundabouts
        ring = ring_i and ring_j
        station = i in city_map.stations or j in city_map.stations
        spare = min(degrees[i] - ring_i, degrees[j] - ring_j)
        if ring or station or spare < 3:
            continue
        around = streets_around(points, adjacent, i, j) + streets_around(points, adjacent, j, i) - 2
        if around < WIDEST or (around == WIDEST and _draw(rng_state, 8) == 0):
            adjacent[i, j] = adjacent[j, i] = False
            degrees[i] -= 1
            degrees[j] -= 1
            count -= 1
            streets[street, 0], streets[street, 1] = streets[count, 0], streets[count, 1]
    return count


@kernel
def _has_wide_face(points, adjacent):
    """Return whether a face in the city has more than WIDEST streets around it."""
    wide, around = 0, 0  # sides of streets, and streets around the last wide face
    for i in range(points.shape[0]):
        for j in range(points.shape[0]):
            if adjacent[i, j]:
                count = streets_around(points, adjacent, i, j)
                if count > WIDEST:
                    wide, around = wide + 1, count
    return wide != around  # the land around the city is the only wide face


@kernel
def _sort(pairs):
    """Sort pairs of numbers from 0 to 63 (int64, (n, 2)) in place."""
    keys = pairs[:, 0] * 64 + pairs[:, 1]
    keys.sort()
    pairs[:, 0], pairs[:, 1] = keys >> 6, keys & 63


@kernel
def _add_zone(rng_state, keys, spread, zone, taken, sites):
    """Give each site of a zone the free intersection with the least key, plus up to `spread`.

    keys: int64, (V,). taken: bool, (V,), updated. sites: int64, (n, 2), of this zone.
    """
    order = np.empty(keys.shape[0], np.int64)
    for i in range(keys.shape[0]):
        order[i] = (keys[i] + _draw(rng_state, spread)) * 64 + i
    order.sort()
    count = 0
    for key in order:
        i = key & 63
        if count < sites.shape[0] and not taken[i]:
            taken[i] = True
            sites[count, 0], sites[count, 1] = i, zone
            count += 1


@kernel
def _add_sites(rng_state, zones, city_map):
    """Write the sites, zone by zone: none at stations, two at roundabouts, else one or two.

    zones: int64, (4,), the number of sites in each. Zone 1 is around the park, zone 2 further out.
    Zone 3 adds second sites to intersections of zones 1 and 2. Zone 4 has other intersections.
    """
    points, sites, ring = city_map.points, city_map.sites, 2 * ROUNDABOUTS
    keys = np.empty(points.shape[0], np.int64)
    taken = np.zeros(points.shape[0], np.bool_)
    middle_x = middle_y = np.int64(0)
    for k in range(ring):
        i = city_map.roundabouts[k // 2]
        sites[k, 0], sites[k, 1] = i, 1
        middle_x += points[i, 0]
        middle_y += points[i, 1]
        taken[i] = True
    middle_x, middle_y = middle_x // ring, middle_y // ring
    taken[city_map.stations[0]] = taken[city_map.stations[1]] = True
    for i in range(points.shape[0]):
        dx, dy = points[i, 0] - middle_x, points[i, 1] - middle_y
        keys[i] = np.int64(np.sqrt(dx * dx + dy * dy))
    second, third, fourth = zones[0], zones[0] + zones[1], zones[0] + zones[1] + zones[2]
    _add_zone(rng_state, keys, UNIT // 2, 1, taken, sites[ring:second])
    _add_zone(rng_state, keys, 2 * UNIT, 2, taken, sites[second:third])
    _add_zone(rng_state, keys, 8 * UNIT, 4, taken, sites[fourth:])
    for k in range(zones[2]):
        # The other sites of zone 1 first, then some of zone 2, drawn without replacement.
        if ring + k >= second:
            other = ring + k + _draw(rng_state, third - ring - k)
            swapped = sites[ring + k, 0]
            sites[ring + k, 0] = sites[other, 0]
            sites[other, 0] = swapped
        sites[third + k, 0], sites[third + k, 1] = sites[ring + k, 0], 3
    for start, end in ((0, second), (second, third), (third, fourth), (fourth, sites.shape[0])):
        _sort(sites[start:end])


@kernel
def _attempt(rng_state, bounds, zones, city_map):
    """Draw a map once; return whether it is accepted."""
    number, wanted = city_map.points.shape[0], city_map.streets.shape[0]
    placed = np.empty((number, 2), np.int64)
    _place(rng_state, bounds.width, bounds.height, placed)
    _number(placed, city_map)
    adjacent, degrees = np.zeros((number, number), np.bool_), np.zeros(number, np.int64)
    streets = np.empty((3 * number, 2), np.int64)
    count = _join(city_map.points, city_map.roundabouts, adjacent, degrees, streets)
    if count < wanted:
        return False  # too few streets
    if not _choose_stations(rng_state, bounds, adjacent, degrees, city_map):
        return False  # no places for two stations
    if _remove_streets(rng_state, city_map, adjacent, degrees, streets[:count]) > wanted:
        return False  # too many streets
    for k in range(wanted):
        city_map.streets[k, 0], city_map.streets[k, 1] = streets[k, 0], streets[k, 1]
    if has_articulation_point(adjacent):
        return False  # an intersection whose removal disconnects the map
    distances = np.empty(number, np.int64)
    bfs_distances(adjacent, city_map.stations[:1], -1, distances)
    if distances[city_map.stations[1]] < bounds.station_walk:
        return False  # stations too near to each other
    if _has_wide_face(city_map.points, adjacent):
        return False  # a face with more than five streets around it
    _sort(city_map.streets)
    city_map.roundabouts.sort()
    _add_sites(rng_state, zones, city_map)
    return True


@kernel
def generate_map(seed, bounds, zones, city_map):
    """Draw maps of a seed (uint64) until one is accepted; return whether one is.

    zones: int64, (4,), sites of each zone. city_map: Map, written.
    """
    rng_state = np.empty(1, np.uint64)
    for attempt in range(MAX_ATTEMPTS):
        rng_state[0] = seeded(seed, attempt)
        if _attempt(rng_state, bounds, zones, city_map):
            return True
    return False
