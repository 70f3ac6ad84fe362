"""The row of bytes that a network receives for a position.

It holds the map if the network plays any board (`busenv.agents.networks.board_network`), then the
observation (`busenv.observation`), then the evaluation features if the network has weights for them
(`busenv.agents.networks.evaluation_features`).

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
from busenv.agents.networks.evaluation_features import (
    FEATURES_SIZE,
    INPUT_SCALE,
    NO_EVAL_WEIGHTS,
    make_feature_workspace,
    write_features,
)
from busenv.core.bits import has
from busenv.core.jit import kernel
from busenv.observation import ObservationLayout, observe_states, relative_games

MAP_HEADER = 3
ROUNDABOUT, STATION, ZONE_SITES = 0, 1, 3  # first planes of the intersections' marks
LAST_ZONE = 3
MARKS = ZONE_SITES + LAST_ZONE + 1


class Inputs(NamedTuple):
    """What a network receives.

    relative_types: whether building types count from the clock. eval_weights: float64, (4, COUNT),
    of the evaluation features; (0, COUNT) without them. has_map: whether the map is included.
    """

    relative_types: bool = False
    eval_weights: np.ndarray = NO_EVAL_WEIGHTS
    has_map: bool = False


@kernel
def map_size(b):
    """Return the number of bytes of a board's map."""
    return np.int64(MAP_HEADER + MARKS * b.intersections + 2 * b.streets + 2 * b.sites)


@kernel
def write_map(b, row):
    """Write a board's map into bytes that are at least `map_size` long; return that size."""
    intersections, streets = np.int64(b.intersections), np.int64(b.streets)
    sites, end = np.int64(b.sites), map_size(b)
    row[:end] = 0
    row[0], row[1], row[2] = b.intersections, b.streets, b.sites
    for k in range(b.roundabouts):
        row[MAP_HEADER + ROUNDABOUT * intersections + b.roundabout[k]] = 1
    for k in range(2):
        row[MAP_HEADER + (STATION + k) * intersections + b.station[k]] = 1
    first = MAP_HEADER + MARKS * intersections
    for street in range(streets):
        row[first + street] = b.street_ends[street, 0]
        row[first + streets + street] = b.street_ends[street, 1]
    first += 2 * streets
    for site in range(sites):
        zone = np.int64(0)
        while zone < LAST_ZONE and not has(b.zone_sites[zone], site):
            zone += 1
        at = np.int64(b.site_intersection[site])
        row[MAP_HEADER + (ZONE_SITES + zone) * intersections + at] += np.uint8(1)
        row[first + site] = at
        row[first + sites + site] = zone
    return end


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
    """Return rows, uint8 (N, size), and masks, bool (N, num_actions), of valid games that are not
    over.

    boards: BOARD, the board of all games, (1,), or of each, (N,), of equal sizes.
    """
    games = relative_games(games) if inputs.relative_types else games
    rows, masks = observe_states(games, boards)
    parts = [rows]
    if inputs.has_map:
        maps = np.zeros((len(boards), map_size(boards[0])), np.uint8)
        _write_maps(boards, maps)
        parts.insert(0, np.broadcast_to(maps, (len(games), maps.shape[1])))
    if len(inputs.eval_weights):
        features = np.zeros((len(games), FEATURES_SIZE), np.uint8)
        work = make_feature_workspace()
        _write_feature_rows(games, boards, inputs.eval_weights, work, features)
        parts.append(features)
    return (np.concatenate(parts, axis=1) if parts[1:] else rows), masks


def input_scale(board: Board, evaluation_features: bool) -> np.ndarray:
    """Return the factors that bring usual bytes of rows without a map to 0..1: float32, (size,)."""
    scale = ObservationLayout(board).scale
    return (
        np.concatenate([scale, np.full(FEATURES_SIZE, INPUT_SCALE)])
        if evaluation_features
        else scale
    )
