"""Networks in compiled code, for one position at a time.

Weights are views of the network's own, so that training steps take effect at once. Their class
selects, at compile time, the layers of the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numba.extending import overload

from busenv.core.jit import fast_kernel, kernel
from busenv.core.map_rows import write_map
from busenv.core.observation_cache import update_cache
from busenv.core.observe import observation_size, observe
from busenv.core.relative_types import absolute_action, write_relative
from busenv.core.rules.legal import legal_ids
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.networks import compiled_board_network, compiled_mlp
from busenv.networks.compiled_board_network import BoardWeights
from busenv.networks.compiled_mlp import MlpWeights
from busenv.networks.evaluation_features import (
    FeatureWorkspace,
    make_feature_workspace,
    write_features,
)

if TYPE_CHECKING:  # weights play without torch
    from busenv.networks.board_network import BoardNetwork
    from busenv.networks.mlp import Mlp
    from busenv.networks.network import Network

Weights = MlpWeights | BoardWeights
LAYER_MODULES = {MlpWeights: compiled_mlp, BoardWeights: compiled_board_network}


class Workspace(NamedTuple):
    """Arrays of one thread.

    relative: GAME, (1,), the evaluated game with types counted from the clock.
    row: uint8, (size,), the network's input. cache, cached_game: of
    `busenv.core.observation_cache`. bits: uint64, (words,), legal actions.
    has_previous: bool, (5,), by seat, whether an Mlp's first layer has sums of an earlier row.
    layers: arrays of the network's layers. actions: int64, logits: float32, (num_actions,), of the
    legal actions. values: float32, (outputs,).
    """

    relative: np.ndarray
    row: np.ndarray
    cache: np.ndarray
    cached_game: np.ndarray
    features: FeatureWorkspace
    bits: np.ndarray
    has_previous: np.ndarray
    layers: Any
    actions: np.ndarray
    logits: np.ndarray
    values: np.ndarray


def read_weights(network: Network) -> Weights:
    """Return views of the weights of a network on the CPU: changes in place are visible."""
    if network.plays_any_board:
        return compiled_board_network.read_weights(cast("BoardNetwork", network))
    return compiled_mlp.read_weights(cast("Mlp", network))


def copy_weights(weights: Weights) -> Weights:
    """Return weights with arrays of their own, which are writable."""
    inputs = weights.inputs._replace(eval_weights=np.array(weights.inputs.eval_weights))
    return type(weights)(inputs, *map(np.array, weights[1:]))


def make_workspace(weights: Weights) -> Workspace:
    """Return arrays for a network with such weights."""
    size, num_actions, outputs = weights.sizes
    return Workspace(
        np.zeros(1, GAME),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8),  # at least the size of the cache
        np.zeros(1, GAME),
        make_feature_workspace(),
        np.zeros((num_actions + 63) // 64, np.uint64),
        np.zeros(MAX_PLAYERS, np.bool_),
        LAYER_MODULES[type(weights)].make_layers(weights),
        np.zeros(num_actions, np.int64),
        np.zeros(num_actions, np.float32),
        np.zeros(outputs, np.float32),
    )


def forward(weights, work, num_legal, seat):
    """Compute `work.values`, and the logits of the first `num_legal` actions in `work.actions`."""
    LAYER_MODULES[type(weights)].forward(weights, work, num_legal, seat)


# Inlined, so that no call copies the weights and the workspace.
overload(forward, inline="always")(
    lambda weights, work, num_legal, seat: LAYER_MODULES[weights.instance_class].forward.py_func
)


@kernel
def clear_previous_rows(work):
    """Discard the cached game and sums; required for another board and for changed weights."""
    work.cached_game[0].players = 0
    work.has_previous[:] = False


@fast_kernel
def write_inputs(g, b, inputs, row, work):
    """Write the observation and the features of a game that is not over into a row.

    Returns the number of legal actions, which are in `work.actions`.
    """
    update_cache(g, b, work.cache, row, work.cached_game[0])
    observe(g, b, work.cache, g.seat, row, False)
    if inputs.eval_weights.shape[0] > 0:
        write_features(g, b, inputs.eval_weights, work.features, row[observation_size(b) :])
    return legal_ids(g, b, work.bits, work.actions)


@fast_kernel
def _evaluate(g, b, weights, work):
    row = work.row[write_map(b, work.row) :] if weights.inputs.has_map else work.row
    num_legal = write_inputs(g, b, weights.inputs, row, work)
    forward(weights, work, num_legal, np.int64(g.seat))
    return num_legal


@fast_kernel
def evaluate(g, b, weights, work):
    """Evaluate a game that is not over for the seat to decide; see `forward`.

    Returns the number of legal actions, which are in `work.actions`.
    """
    if not weights.inputs.relative_types:
        return _evaluate(g, b, weights, work)
    write_relative(g, work.relative)
    num_legal = _evaluate(work.relative[0], b, weights, work)
    for k in range(num_legal):
        work.actions[k] = absolute_action(g, b, work.actions[k])
    return num_legal
