"""The row of bytes that a network receives for a position.

It holds the map if the network plays any board (`busenv.networks.board_network`), then the
observation (`busenv.observation`), then the evaluation features if the network has weights for them
(`busenv.networks.evaluation_features`).

The map of a board with V intersections, S streets and B sites is MAP_HEADER + MARKS * V + 2 S + 2 B
bytes: the three numbers; for each intersection, plane by plane, whether it has a roundabout, is the
first station, is the second station, and how many sites of zones 1, 2, 3, 4 and later it has; the
first ends of all streets, then the second ends; each site's intersection; each site's zone from 0,
at most LAST_ZONE.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv import Board
from busenv.core.bits import has
from busenv.core.features import WIDTHS
from busenv.core.jit import kernel
from busenv.networks.evaluation_features import (
    FEATURES_SIZE,
    INPUT_SCALE,
    NO_EVAL_WEIGHTS,
    make_feature_workspace,
    write_features,
)
from busenv.observation import ObservationLayout, observe_states, relative_games

MAP_HEADER = 3
ROUNDABOUT, STATION, ZONE_SITES = 0, 1, 3  # first planes of the intersections' marks
LAST_ZONE = 3
MARKS = ZONE_SITES + LAST_ZONE + 1
# Planes of the observation
NODE_COLUMNS, STREET_COLUMNS = WIDTHS["intersections"], WIDTHS["streets"]
SITE_COLUMNS = WIDTHS["sites"]


class Inputs(NamedTuple):
    """What a network receives.

    relative_types: whether building types count from the clock. eval_weights: float64, (4, COUNT),
    of the evaluation features; (0, COUNT) without them. has_map: whether the map is included.
    """

    relative_types: bool = False
    eval_weights: np.ndarray = NO_EVAL_WEIGHTS
    has_map: bool = False


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
def _write_maps(boards, rows):
    for i in range(boards.shape[0]):
        write_map(boards[i], rows[i])


@kernel
def _write_feature_rows(games, boards, eval_weights, work, rows):
    for i in range(games.shape[0]):
        write_features(games[i], boards[i % boards.shape[0]], eval_weights, work, rows[i])


def observe_inputs(
    games: np.ndarray, boards: np.ndarray, inputs: Inputs
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and action masks of valid games that are not over.

    games: GAME, (N,). boards: BOARD, the board of all games, (1,), or of each, (N,), which have
    equal sizes.

    Returns rows, uint8, (N, size), and masks, bool, (N, num_actions).
    """
    games = relative_games(games) if inputs.relative_types else games
    rows, masks = observe_states(games, boards)
    parts = [rows]
    if inputs.has_map:
        numbers = (int(boards[0][name]) for name in ("intersections", "streets", "sites"))
        maps = np.zeros((len(boards), find_offsets(*numbers).node), np.uint8)
        _write_maps(boards, maps)
        parts.insert(0, np.broadcast_to(maps, (len(games), maps.shape[1])))
    if len(inputs.eval_weights):
        features = np.zeros((len(games), FEATURES_SIZE), np.uint8)
        work = make_feature_workspace()
        _write_feature_rows(games, boards, inputs.eval_weights, work, features)
        parts.append(features)
    return (np.concatenate(parts, axis=1) if parts[1:] else rows), masks


def input_scale(board: Board, evaluation_features: bool) -> np.ndarray:
    """Return factors that scale bytes of rows without a map to 0 to 1: float32, (size,)."""
    scale = ObservationLayout(board).scale
    return (
        np.concatenate([scale, np.full(FEATURES_SIZE, INPUT_SCALE)])
        if evaluation_features
        else scale
    )
