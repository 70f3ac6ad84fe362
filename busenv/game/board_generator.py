"""Generated boards in the style of the city, one for each seed.

    >>> import busenv
    >>> board = busenv.generate_board(7, "small")
    >>> board
    Board('generated:small:7', 16 intersections, 28 streets, 21 sites)

All boards of a size have the same number of intersections, streets and sites, so observations,
masks and action ids agree. Size "city" has the numbers of the city board, so an agent trained on
generated boards can be tested on the city.

Construction (`busenv.core.map_generation`): four roundabouts in a ring around a park, the other
intersections where most room is left, straight streets without crossings from the shortest on, two
stations far apart at intersections with many streets, removal of streets at random down to the
size's number, and zones that grow outwards from the park. A map is rejected, and the next one of
the seed drawn, if it has too few streets, stations too near to each other, an intersection whose
removal disconnects it, or a city block with more than five streets around it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from busenv.core import map_generation
from busenv.core.map_generation import Map, MapBounds
from busenv.error_text import did_you_mean, quote
from busenv.errors import BoardError
from busenv.game.board import Board, Intersection, Site, assemble_board
from busenv.validation import check_seed

GENERATOR_VERSION = 1
"""Version of the generator; increased whenever the board of any seed changes."""

PREFIX = "generated"


class BoardSize(NamedTuple):
    """Numbers of intersections, streets, and sites of each zone, and bounds of the map."""

    intersections: int
    streets: int
    zones: tuple[int, int, int, int]
    bounds: MapBounds


# The bounds keep the city's proportions: 100 units are the square root of the map's area per
# intersection.
SIZES = {
    "small": BoardSize(16, 28, (9, 4, 3, 5), MapBounds(400, 380, 290, 2, 4)),
    "medium": BoardSize(24, 45, (10, 7, 5, 9), MapBounds(500, 470, 370, 3, 5)),
    "city": BoardSize(36, 70, (12, 11, 9, 15), MapBounds(610, 570, 460, 4, 5)),
    "large": BoardSize(60, 120, (16, 17, 10, 21), MapBounds(790, 740, 600, 5, 5)),
}


def generate_board(seed: int, size: str = "city") -> Board:
    """Generate the board of a seed, the same on every platform.

    seed: 0 to 2**64 - 1. size: "small" (16 intersections), "medium" (24), "city" (36) or "large"
    (60). The board's name is its spec, such as "generated:city:7", which `load_board` accepts.

    Raises ValueError for a seed out of range, BoardError for an unknown size.
    """
    return _generate(check_seed(seed), check_board_size(size))


def check_board_size(size: str, allowed: Collection[str] = SIZES.keys()) -> str:
    """Return a size of generated boards; BoardError, which names those allowed, for another."""
    if size not in allowed:
        raise BoardError(
            f"no size {quote(size)} of generated boards; allowed: {', '.join(allowed)}"
            + did_you_mean(size, allowed)
        )
    return size


@lru_cache(maxsize=4096)  # 18 kB each; agents in batches read the boards of all games in a step
def _generate(seed: int, size: str) -> Board:
    numbers = SIZES[size]
    zones = np.array(numbers.zones)
    city_map = Map(
        points=np.empty((numbers.intersections, 2), np.int64),
        streets=np.empty((numbers.streets, 2), np.int64),
        sites=np.empty((int(zones.sum()), 2), np.int64),
        roundabouts=np.empty(map_generation.ROUNDABOUTS, np.int64),
        stations=np.empty(2, np.int64),
    )
    if not map_generation.generate_map(np.uint64(seed), numbers.bounds, zones, city_map):
        raise BoardError(
            f"seed {seed} has no board: {map_generation.MAX_ATTEMPTS} maps were rejected"
        )
    roundabouts, stations = {*city_map.roundabouts.tolist()}, {*city_map.stations.tolist()}
    return assemble_board(
        f"{PREFIX}:{size}:{seed}",
        tuple(
            Intersection(float(x), float(y), i in roundabouts, i in stations)
            for i, (x, y) in enumerate(city_map.points.tolist())
        ),
        tuple((a, b) for a, b in city_map.streets.tolist()),
        tuple(Site(intersection, zone) for intersection, zone in city_map.sites.tolist()),
        generator=GENERATOR_VERSION,
    )
