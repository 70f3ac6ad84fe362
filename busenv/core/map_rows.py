"""Maps of boards as rows of bytes, for networks that play on many boards.

The map of a board with V intersections, S streets and B sites is MAP_HEADER + MARKS * V + 2 S + 2 B
bytes: the three numbers; for each intersection, plane by plane, whether it has a roundabout, is the
first station, is the second station, and how many sites of zones 1, 2, 3, 4 and later it has; the
first ends of all streets, then the second ends; each site's intersection; each site's zone from 0,
at most LAST_ZONE.
An observation (`core.observe`) follows the map in a row of a network.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from busenv.core.bits import has
from busenv.core.features import WIDTHS
from busenv.core.jit import kernel

MAP_HEADER = 3
ROUNDABOUT, STATION, ZONE_SITES = 0, 1, 3  # first planes of the intersections' marks
LAST_ZONE = 3
MARKS = ZONE_SITES + LAST_ZONE + 1
# Planes of the observation
NODE_COLUMNS, STREET_COLUMNS = WIDTHS["intersections"], WIDTHS["streets"]
SITE_COLUMNS = WIDTHS["sites"]


class Offsets(NamedTuple):
    """Offsets, in bytes, of the sections of a row with a map, and the board's numbers of
    intersections, streets and sites.

    ends: the streets' first ends, then their second ends. site_nodes: the sites' intersections,
    then their zones. node, street, site: the observation's planes of intersections, streets and
    sites. position: the rest of the row, which is the rest of the observation and the features.
    """

    intersections: int
    streets: int
    sites: int
    ends: int
    site_nodes: int
    node: int
    street: int
    site: int
    position: int


@kernel
def find_offsets(intersections, streets, sites):
    """Return the offsets of a board with these numbers (int64)."""
    ends = MAP_HEADER + MARKS * intersections
    site_nodes = ends + 2 * streets
    node = site_nodes + 2 * sites
    street = node + NODE_COLUMNS * intersections
    site = street + STREET_COLUMNS * streets
    position = site + SITE_COLUMNS * sites
    return Offsets(intersections, streets, sites, ends, site_nodes, node, street, site, position)


@kernel
def write_map(b, row):
    """Write a board's map to the start of a row; return the length of the map."""
    at = find_offsets(np.int64(b.intersections), np.int64(b.streets), np.int64(b.sites))
    row[: at.node] = 0
    row[0], row[1], row[2] = b.intersections, b.streets, b.sites
    for k in range(b.roundabouts):
        row[MAP_HEADER + ROUNDABOUT * at.intersections + b.roundabout[k]] = 1
    for k in range(2):
        row[MAP_HEADER + (STATION + k) * at.intersections + b.station[k]] = 1
    for street in range(at.streets):
        row[at.ends + street] = b.street_ends[street, 0]
        row[at.ends + at.streets + street] = b.street_ends[street, 1]
    for site in range(at.sites):
        zone = np.int64(0)
        while zone < LAST_ZONE and not has(b.zone_sites[zone], site):
            zone += 1
        intersection = np.int64(b.site_intersection[site])
        row[MAP_HEADER + (ZONE_SITES + zone) * at.intersections + intersection] += np.uint8(1)
        row[at.site_nodes + site] = intersection
        row[at.site_nodes + at.sites + site] = zone
    return at.node


@kernel
def write_maps(boards, rows):
    """Write the maps of boards: BOARD, (N,), to uint8, (N, length)."""
    for i in range(boards.shape[0]):
        write_map(boards[i], rows[i])


class MapPlanes(NamedTuple):
    """Views of the maps of N rows, which are arrays of NumPy or tensors.

    marks: (N, V, MARKS). ends: (N, S, 2). site_nodes, site_zones: (N, B).
    """

    marks: Any
    ends: Any
    site_nodes: Any
    site_zones: Any


def planes(rows: Any, first: int, end: int, entries: int) -> Any:
    """View the bytes `first` to before `end` of rows, stored plane by plane: (N, entries, K)."""
    return rows[:, first:end].reshape(len(rows), -1, entries).swapaxes(1, 2)


def split_map(rows: Any, at: Offsets) -> MapPlanes:
    """View the maps of rows of boards with equal sizes."""
    sites = planes(rows, at.site_nodes, at.node, at.sites)
    return MapPlanes(
        planes(rows, MAP_HEADER, at.ends, at.intersections),
        planes(rows, at.ends, at.site_nodes, at.streets),
        sites[..., 0],
        sites[..., 1],
    )


def offsets_of(boards: np.ndarray) -> Offsets:
    """Return the offsets of boards with equal sizes: BOARD, (N,)."""
    numbers = (int(boards[0][name]) for name in ("intersections", "streets", "sites"))
    offsets: Offsets = find_offsets(*numbers)
    return offsets
