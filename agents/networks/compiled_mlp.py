"""The default network in compiled code, for one position at a time.

A library's layers take a matrix of rows; a search has one row, nine tenths of which are zeros. Here
a layer adds up the weights of those inputs that are not zero, eight inputs at a time along all
outputs, so that it is a loop over contiguous floats; of the logits those of legal actions are
worked out only. Weights are the network's own, read where they are (`Mlp` keeps them input by
input), so that what is learned counts at once.

A search looks at positions that have most in common. So it keeps what the first layer made of one
position for each seat, and adds what others change (Nasu 2018, NNUE), until it is told to `clear_cache`.
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
from busenv.core.rules.legal import legal_ids
from busenv.core.state import GAME, MAX_PLAYERS

if TYPE_CHECKING:  # weights play without torch
    from busenv.agents.networks.mlp import Mlp

AT_ONCE = 8  # inputs added up in one loop, and bytes looked at in one step
MOST_CHANGES = 128  # most bytes in which a row is taken for a change of another


class Weights(NamedTuple):
    """A network's weights, float32. Matrices are (inputs, outputs), heads' last ones (outputs,
    inputs): their rows are wanted one by one."""

    scale: np.ndarray
    eval_weights: (
        np.ndarray
    )  # float64, (4, COUNT), of the outlook behind an observation; empty without
    shared: np.ndarray
    shared_bias: np.ndarray
    blocks: np.ndarray  # (count, width, width)
    blocks_bias: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    logits: np.ndarray
    logits_bias: np.ndarray
    value: np.ndarray
    value_bias: np.ndarray
    outputs: np.ndarray
    outputs_bias: np.ndarray


class Workspace(NamedTuple):
    """Arrays that the kernels work in, one set a thread.

    row: uint8, (size,), what the network is told; cache, cached: see `busenv.core.observation_cache`.
    features: of the outlook. bits: uint64, (words,). places: int64 and value: float32, inputs
    that are not zero, or that change. known: bool, (5,), by seat, whether there is a row that it
    was told before, in rows: uint8, (5, size), and what the first layer adds up to there, in sums:
    float32, (5, width). empty: a row of zeros. trunk, hidden: float32, of the layers. actions:
    int64 and logits: float32, (num_actions,), of the legal actions, side by side. values: float32,
    (outputs,).
    """

    row: np.ndarray
    cache: np.ndarray
    cached: np.ndarray
    features: FeatureWorkspace
    bits: np.ndarray
    places: np.ndarray
    value: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    sums: np.ndarray
    empty: np.ndarray
    trunk: np.ndarray
    hidden: np.ndarray
    actions: np.ndarray
    logits: np.ndarray
    values: np.ndarray


def read_weights(network: Mlp) -> Weights:
    """The weights of a network on the CPU, without copying."""

    def array(tensor: Any) -> np.ndarray:
        return tensor.detach().numpy()

    def by_input(layer: Any) -> tuple[np.ndarray, np.ndarray]:
        matrix = array(layer.weight).T
        if not matrix.flags.c_contiguous:
            raise ValueError("the network's weights do not stand input by input")
        return matrix, array(layer.bias)

    (policy, _, logits), (value, _, outputs) = network.policy, network.value
    return Weights(
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
    """Arrays to work in with a network of such weights."""
    size, width = weights.shared.shape
    actions, hidden = weights.logits.shape
    widest = max(size, width) + 1  # a list is written one beyond its end
    return Workspace(
        np.zeros(size, np.uint8),
        np.zeros(size, np.uint8),  # longer than a picture
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
    """Where a row differs from one before, and by how much that counts; how many places."""
    count, size = 0, row.shape[0]
    for first in range(0, size - AT_ONCE + 1, AT_ONCE):
        if load_word(row, first) != load_word(before, first):
            for k in range(first, first + AT_ONCE):  # without a branch
                index[count] = k
                count += row[k] != before[k]
    for k in range(size - size % AT_ONCE, size):
        index[count] = k
        count += row[k] != before[k]
    for k in range(count):
        at = index[k]
        value[k] = (np.float32(row[at]) - np.float32(before[at])) * scale[at]
    return count


@fast_kernel
def _list_positive(inputs, index, value):
    """Where inputs are above zero (what ReLU leaves), and what they are; how many there are."""
    count = 0
    for k in range(inputs.shape[0]):
        index[count] = k
        value[count] = inputs[k]
        count += inputs[k] > np.float32(0.0)
    return count


@fast_kernel
def _add_rows(count, index, value, matrix, out):
    """Add `value` times the rows of a matrix that `index` names."""
    width = matrix.shape[1]
    whole = count - count % AT_ONCE
    for k in range(0, whole, AT_ONCE):
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
    """A head's hidden layer, from the inputs listed in `work`, into `work.hidden`."""
    hidden = work.hidden
    for j in range(bias.shape[0]):
        hidden[j] = bias[j]
    _add_rows(count, work.places, work.value, matrix, hidden)
    _relu(hidden, bias.shape[0])


@fast_kernel
def _output(hidden, matrix, bias, k):
    """Output `k` of a head's last layer."""
    total = bias[k]
    for j in range(matrix.shape[1]):
        total += hidden[j] * matrix[k, j]
    return total


@kernel
def clear_cache(work):
    """Let nothing that comes be worked out from what was before: other weights, another search."""
    work.known[:] = False


@fast_kernel
def _first_layer(weights, work, seat):
    """What the row in `work` adds up to into its trunk, by way of what is known of the seat."""
    row, trunk, sums, before = work.row, work.trunk, work.sums[seat], work.rows[seat]
    index, value = work.places, work.value
    if work.known[seat]:
        count = _list_changes(row, before, weights.scale, index, value)
        if count <= MOST_CHANGES:
            for j in range(trunk.shape[0]):
                trunk[j] = sums[j]
            _add_rows(count, index, value, weights.shared, trunk)
            return
    count = _list_changes(row, work.empty, weights.scale, index, value)
    for j in range(trunk.shape[0]):
        sums[j] = weights.shared_bias[j]
    _add_rows(count, index, value, weights.shared, sums)
    for j in range(trunk.shape[0]):
        trunk[j] = sums[j]
    for k in range(row.shape[0]):
        before[k] = row[k]
    work.known[seat] = True


@fast_kernel
def forward(weights, work, legal, seat):
    """Logits of the first `legal` of `work.actions`, and values, of the row in `work`, which is a
    seat's."""
    index, value, trunk = work.places, work.value, work.trunk
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
def evaluate(g, b, weights, work):
    """What the network says to the seat that decides in a game that is not over: see `forward`.
    How many actions are legal; they are in `work.actions`."""
    work.cached[0].players = 0
    update_cache(g, b, work.cache, work.row, work.cached[0])
    observe(g, b, work.cache, g.seat, work.row, False)
    if weights.eval_weights.shape[0] > 0:
        write_features(g, b, weights.eval_weights, work.features, work.row[observation_size(b) :])
    legal = legal_ids(g, b, work.bits, work.actions)
    forward(weights, work, legal, np.int64(g.seat))
    return legal


@fast_kernel
def softmax(logits, count, temperature):
    """Turn the first `count` logits into probabilities; whether they were finite numbers."""
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
