"""The Mlp in compiled code, for one position at a time.

Libraries multiply matrices of many rows; a search has one row, nine tenths of which are zeros. A
layer here adds up the weights of inputs that are not zero, eight inputs at a time along all
outputs, and computes the logits of legal actions only. Weights are views of the network's own
(`Mlp` stores them by input), so that training steps take effect at once.

Positions of a search are similar: the first layer keeps its sums for one position of each seat and
updates them by what differs (Nasu 2018, "Efficiently updatable neural network"), until
`clear_cache`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from busenv.agents.networks.evaluation_features import (
    FeatureWorkspace,
    make_feature_workspace,
    write_features,
)
from busenv.core.bits import load_word
from busenv.core.jit import fast_kernel, kernel
from busenv.core.observation_cache import update_cache
from busenv.core.observe import observation_size, observe
from busenv.core.relative_types import absolute_action, write_relative
from busenv.core.rules.legal import legal_ids
from busenv.core.state import GAME, MAX_PLAYERS

if TYPE_CHECKING:  # weights play without torch
    from busenv.agents.networks.mlp import Mlp

UNROLL = 8  # inputs added up per loop, and bytes compared per step
MAX_CHANGES = 128  # changed bytes up to which the previous sums are updated


class Weights(NamedTuple):
    """A network's weights, float32. Matrices are (inputs, outputs); the heads' last ones, whose
    outputs are computed one by one, are (outputs, inputs).

    relative_types: whether the network counts building types from the clock.
    eval_weights: float64, (4, COUNT), of the evaluation features; (0, COUNT) without them.
    blocks: (count, width, width).
    """

    relative_types: bool
    scale: np.ndarray
    eval_weights: np.ndarray
    shared: np.ndarray
    shared_bias: np.ndarray
    blocks: np.ndarray
    blocks_bias: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    logits: np.ndarray
    logits_bias: np.ndarray
    value: np.ndarray
    value_bias: np.ndarray
    outputs: np.ndarray
    outputs_bias: np.ndarray

    def copy(self) -> Weights:
        """Return weights with arrays of their own, which are writable."""
        return Weights(self.relative_types, *map(np.array, self[1:]))


class Workspace(NamedTuple):
    """Arrays of one thread.

    relative: GAME, (1,), the evaluated game with types counted from the clock.
    row: uint8, (size,), the network's input. cache, cached: of `busenv.core.observation_cache`.
    bits: uint64, (words,), legal actions. indices: int64, values_at: float32, (size + 1,), the
    inputs that are not zero or that changed.
    has_previous: bool, (5,), by seat, whether previous_rows (uint8, (5, size)) and previous_sums
    (float32, (5, width)), the first layer's sums for them, are valid. zero_row: uint8, (size,).
    trunk, hidden: float32, of the layers. actions: int64, logits: float32, (num_actions,), of the
    legal actions. values: float32, (outputs,).
    """

    relative: np.ndarray
    row: np.ndarray
    cache: np.ndarray
    cached: np.ndarray
    features: FeatureWorkspace
    bits: np.ndarray
    indices: np.ndarray
    values_at: np.ndarray
    has_previous: np.ndarray
    previous_rows: np.ndarray
    previous_sums: np.ndarray
    zero_row: np.ndarray
    trunk: np.ndarray
    hidden: np.ndarray
    actions: np.ndarray
    logits: np.ndarray
    values: np.ndarray


def read_weights(network: Mlp) -> Weights:
    """Return views of the weights of a network on the CPU: changes in place are visible."""

    def array(tensor: Any) -> np.ndarray:
        return tensor.detach().numpy()

    def by_input(layer: Any) -> tuple[np.ndarray, np.ndarray]:
        matrix = array(layer.weight).T
        if not matrix.flags.c_contiguous:
            raise ValueError("the network's weights are not stored by input")
        return matrix, array(layer.bias)

    (policy, _, logits), (value, _, outputs) = network.policy, network.value
    return Weights(
        network.relative_types,
        array(network.scale),
        array(network.eval_weights),
        *by_input(network.shared),
        array(network.blocks.weight),
        array(network.blocks.bias),
        *by_input(policy),
        array(logits.weight),
        array(logits.bias),
        *by_input(value),
        array(outputs.weight),
        array(outputs.bias),
    )


def make_workspace(weights: Weights) -> Workspace:
    """Return arrays for a network with such weights."""
    size, width = weights.shared.shape
    actions, hidden = weights.logits.shape
    widest = max(size, width) + 1  # lists are written one beyond their end
    return Workspace(
        np.zeros(1, GAME),
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8),  # at least the size of the cache
        np.zeros(1, GAME),
        make_feature_workspace(),
        np.zeros((actions + 63) // 64, np.uint64),
        np.zeros(widest, np.int64),
        np.zeros(widest, np.float32),
        np.zeros(MAX_PLAYERS, np.bool_),
        np.zeros((MAX_PLAYERS, size), np.uint8),
        np.zeros((MAX_PLAYERS, width), np.float32),
        np.zeros(size, np.uint8),
        np.zeros(width, np.float32),
        np.zeros(max(width, hidden, len(weights.value_bias)), np.float32),
        np.zeros(actions, np.int64),
        np.zeros(actions, np.float32),
        np.zeros(len(weights.outputs_bias), np.float32),
    )


@fast_kernel
def _list_changes(row, before, scale, index, value):
    """List where a row differs from the previous one and by how much; return how many."""
    count, size = 0, row.shape[0]
    for first in range(0, size - UNROLL + 1, UNROLL):
        if load_word(row, first) != load_word(before, first):
            for k in range(first, first + UNROLL):  # without a branch
                index[count] = k
                count += row[k] != before[k]
    for k in range(size - size % UNROLL, size):
        index[count] = k
        count += row[k] != before[k]
    for k in range(count):
        at = index[k]
        value[k] = (np.float32(row[at]) - np.float32(before[at])) * scale[at]
    return count


@fast_kernel
def _list_positive(inputs, index, value):
    """List the inputs above zero and their indices; return how many."""
    count = 0
    for k in range(inputs.shape[0]):
        index[count] = k
        value[count] = inputs[k]
        count += inputs[k] > np.float32(0.0)
    return count


@fast_kernel
def _add_rows(count, index, value, matrix, out):
    """Add the rows of a matrix at `index`, each times its `value`, to `out`."""
    width = matrix.shape[1]
    whole = count - count % UNROLL
    for k in range(0, whole, UNROLL):
        i0, i1, i2, i3 = index[k], index[k + 1], index[k + 2], index[k + 3]
        i4, i5, i6, i7 = index[k + 4], index[k + 5], index[k + 6], index[k + 7]
        v0, v1, v2, v3 = value[k], value[k + 1], value[k + 2], value[k + 3]
        v4, v5, v6, v7 = value[k + 4], value[k + 5], value[k + 6], value[k + 7]
        for j in range(width):
            low = v0 * matrix[i0, j] + v1 * matrix[i1, j] + v2 * matrix[i2, j] + v3 * matrix[i3, j]
            high = v4 * matrix[i4, j] + v5 * matrix[i5, j] + v6 * matrix[i6, j] + v7 * matrix[i7, j]
            out[j] += low + high
    for k in range(whole, count):
        i0, v0 = index[k], value[k]
        for j in range(width):
            out[j] += v0 * matrix[i0, j]


@fast_kernel
def _relu(out, width):
    for j in range(width):
        out[j] = max(out[j], np.float32(0.0))


@fast_kernel
def _hidden(count, work, matrix, bias):
    """Compute a head's hidden layer from the inputs listed in `work`, into `work.hidden`."""
    hidden = work.hidden
    for j in range(bias.shape[0]):
        hidden[j] = bias[j]
    _add_rows(count, work.indices, work.values_at, matrix, hidden)
    _relu(hidden, bias.shape[0])


@fast_kernel
def _output(hidden, matrix, bias, k):
    """Return output `k` of a head's last layer."""
    total = bias[k]
    for j in range(matrix.shape[1]):
        total += hidden[j] * matrix[k, j]
    return total


@kernel
def clear_cache(work):
    """Discard previous rows; required when weights have changed."""
    work.has_previous[:] = False


@fast_kernel
def _first_layer(weights, work, seat):
    """Compute the first layer of `work.row` into `work.trunk`; update previous sums if possible."""
    row, trunk, sums, before = (
        work.row,
        work.trunk,
        work.previous_sums[seat],
        work.previous_rows[seat],
    )
    index, value = work.indices, work.values_at
    if work.has_previous[seat]:
        count = _list_changes(row, before, weights.scale, index, value)
        if count <= MAX_CHANGES:
            for j in range(trunk.shape[0]):
                trunk[j] = sums[j]
            _add_rows(count, index, value, weights.shared, trunk)
            return
    count = _list_changes(row, work.zero_row, weights.scale, index, value)
    for j in range(trunk.shape[0]):
        sums[j] = weights.shared_bias[j]
    _add_rows(count, index, value, weights.shared, sums)
    for j in range(trunk.shape[0]):
        trunk[j] = sums[j]
    for k in range(row.shape[0]):
        before[k] = row[k]
    work.has_previous[seat] = True


@fast_kernel
def forward(weights, work, legal, seat):
    """Compute logits of the first `legal` actions in `work.actions`, and values, of `work.row`."""
    index, value, trunk = work.indices, work.values_at, work.trunk
    _first_layer(weights, work, seat)
    _relu(trunk, trunk.shape[0])
    count = _list_positive(trunk, index, value)
    for block in range(weights.blocks.shape[0]):
        for j in range(trunk.shape[0]):
            trunk[j] += weights.blocks_bias[block, j]
        _add_rows(count, index, value, weights.blocks[block], trunk)
        _relu(trunk, trunk.shape[0])
        count = _list_positive(trunk, index, value)
    _hidden(count, work, weights.value, weights.value_bias)
    for k in range(work.values.shape[0]):
        work.values[k] = _output(work.hidden, weights.outputs, weights.outputs_bias, k)
    _hidden(count, work, weights.policy, weights.policy_bias)
    for k in range(legal):
        action = work.actions[k]
        work.logits[k] = _output(work.hidden, weights.logits, weights.logits_bias, action)


@fast_kernel
def _evaluate(g, b, weights, work):
    work.cached[0].players = 0
    update_cache(g, b, work.cache, work.row, work.cached[0])
    observe(g, b, work.cache, g.seat, work.row, False)
    if weights.eval_weights.shape[0] > 0:
        write_features(g, b, weights.eval_weights, work.features, work.row[observation_size(b) :])
    legal = legal_ids(g, b, work.bits, work.actions)
    forward(weights, work, legal, np.int64(g.seat))
    return legal


@fast_kernel
def evaluate(g, b, weights, work):
    """Evaluate a game that is not over for the seat to decide; see `forward`.

    Returns the number of legal actions, which are in `work.actions`.
    """
    if not weights.relative_types:
        return _evaluate(g, b, weights, work)
    write_relative(g, work.relative)
    legal = _evaluate(work.relative[0], b, weights, work)
    for k in range(legal):
        work.actions[k] = absolute_action(g, b, work.actions[k])
    return legal


@fast_kernel
def softmax(logits, count, temperature):
    """Turn the first `count` logits into probabilities; return whether they were finite."""
    best, total = logits[0], np.float32(0.0)
    for k in range(count):
        best = max(best, logits[k])
    for k in range(count):
        if not np.isfinite(logits[k]):
            return False
        logits[k] = np.exp((logits[k] - best) / temperature)
        total += logits[k]
    for k in range(count):
        logits[k] /= total
    return True
