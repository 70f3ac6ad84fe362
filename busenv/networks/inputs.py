"""The row of bytes that a network receives for a position.

It holds the map (`busenv.core.map_rows`) if the network plays any board
(`busenv.networks.board_network`), then the observation (`busenv.observation`), then the evaluation
features if the network has weights for them (`busenv.networks.evaluation_features`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.jit import kernel
from busenv.core.map_rows import offsets_of, write_maps
from busenv.networks.evaluation_features import (
    FEATURES_SIZE,
    NO_EVAL_WEIGHTS,
    make_feature_workspace,
    write_features,
)
from busenv.observation import observe_states, relative_games


class Inputs(NamedTuple):
    """What a network receives.

    relative_types: whether building types count from the clock. eval_weights: float64, (4, COUNT),
    of the evaluation features; (0, COUNT) without them. has_map: whether the map is included.
    """

    relative_types: bool = False
    eval_weights: np.ndarray = NO_EVAL_WEIGHTS
    has_map: bool = False


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
        maps = np.empty((len(boards), offsets_of(boards).node), np.uint8)
        write_maps(boards, maps)
        parts.insert(0, np.broadcast_to(maps, (len(games), maps.shape[1])))
    if len(inputs.eval_weights):
        features = np.zeros((len(games), FEATURES_SIZE), np.uint8)
        work = make_feature_workspace()
        _write_feature_rows(games, boards, inputs.eval_weights, work, features)
        parts.append(features)
    return (np.concatenate(parts, axis=1) if parts[1:] else rows), masks
