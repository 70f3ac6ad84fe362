"""The layers of an Mlp in compiled code.

Only the logits of legal actions are computed. Weights are views of the network's own (`Mlp` stores
them by input).

Positions of a search are similar: the first layer keeps its sums for one position of each seat. For
another position it adds what differs to a copy of them (Nasu 2018, "Efficiently updatable neural
network"), until `busenv.networks.compiled_network.clear_previous_rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from busenv.core.jit import fast_kernel
from busenv.core.state import MAX_PLAYERS
from busenv.networks.compiled_layers import add_rows, list_changes, list_positive, relu
from busenv.networks.inputs import Inputs

if TYPE_CHECKING:  # weights play without torch
    from busenv.networks.mlp import Mlp

MAX_CHANGES = 128  # changed bytes up to which the previous sums are updated


class MlpWeights(NamedTuple):
    """A network's weights, float32. Matrices are (inputs, outputs); the heads' last ones, whose
    outputs are computed one by one, are (outputs, inputs). blocks: (count, width, width).
    """

    inputs: Inputs
    scale: np.ndarray
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

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Lengths of a row, of the logits and of the values."""
        return len(self.scale), len(self.logits_bias), len(self.outputs_bias)


class MlpLayers(NamedTuple):
    """Arrays of one thread.

    indices: int64, values_at: float32, the inputs that are not zero or that changed.
    previous_rows: uint8, (5, size), by seat. previous_sums: float32, (5, width), the first layer's
    sums for them. zero_row: uint8, (size,). trunk, hidden: float32, of the layers.
    """

    indices: np.ndarray
    values_at: np.ndarray
    previous_rows: np.ndarray
    previous_sums: np.ndarray
    zero_row: np.ndarray
    trunk: np.ndarray
    hidden: np.ndarray


def read_weights(network: Mlp) -> MlpWeights:
    """Return views of the weights of a network on the CPU: changes in place are visible."""

    def array(tensor: Any) -> np.ndarray:
        return tensor.detach().numpy()

    def by_input(layer: Any) -> tuple[np.ndarray, np.ndarray]:
        matrix = array(layer.weight).T
        if not matrix.flags.c_contiguous:
            raise ValueError("the network's weights are not stored by input")
        return matrix, array(layer.bias)

    (policy, _, logits), (value, _, outputs) = network.policy, network.value
    return MlpWeights(
        network.inputs,
        array(network.scale),
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


def make_layers(weights: MlpWeights) -> MlpLayers:
    """Return arrays for a network with such weights."""
    size, width = weights.shared.shape
    hidden = weights.logits.shape[1]
    widest = max(size, width)
    return MlpLayers(
        np.zeros(widest, np.int64),
        np.zeros(widest, np.float32),
        np.zeros((MAX_PLAYERS, size), np.uint8),
        np.zeros((MAX_PLAYERS, width), np.float32),
        np.zeros(size, np.uint8),
        np.zeros(width, np.float32),
        np.zeros(max(width, hidden, len(weights.value_bias)), np.float32),
    )


@fast_kernel
def _hidden(count, layers, matrix, bias):
    """Compute a head's hidden layer from the listed inputs, into `layers.hidden`."""
    hidden = layers.hidden
    for j in range(bias.shape[0]):
        hidden[j] = bias[j]
    add_rows(count, layers.indices, layers.values_at, matrix, hidden)
    relu(hidden, bias.shape[0])


@fast_kernel
def _output(hidden, matrix, bias, k):
    """Return output `k` of a head's last layer."""
    total = bias[k]
    for j in range(matrix.shape[1]):
        total += hidden[j] * matrix[k, j]
    return total


@fast_kernel
def _first_layer(weights, work, seat):
    """Compute the first layer of `work.row` into `trunk`.

    It starts from the previous sums if at most MAX_CHANGES bytes differ.
    """
    row, layers = work.row, work.layers
    trunk, sums, before = layers.trunk, layers.previous_sums[seat], layers.previous_rows[seat]
    index, value = layers.indices, layers.values_at
    if work.has_previous[seat]:
        count = list_changes(row, before, weights.scale, index, value)
        if count <= MAX_CHANGES:
            for j in range(trunk.shape[0]):
                trunk[j] = sums[j]
            add_rows(count, index, value, weights.shared, trunk)
            return
    count = list_changes(row, layers.zero_row, weights.scale, index, value)
    for j in range(trunk.shape[0]):
        sums[j] = weights.shared_bias[j]
    add_rows(count, index, value, weights.shared, sums)
    for j in range(trunk.shape[0]):
        trunk[j] = sums[j]
    for k in range(row.shape[0]):
        before[k] = row[k]
    work.has_previous[seat] = True


@fast_kernel
def forward(weights, work, num_legal, seat):
    """Compute logits of the first `num_legal` actions in `work.actions`, and values, of `work.row`.

    seat: of `work.has_previous`.
    """
    layers = work.layers
    index, value, trunk = layers.indices, layers.values_at, layers.trunk
    _first_layer(weights, work, seat)
    relu(trunk, trunk.shape[0])
    count = list_positive(trunk, index, value)
    for block in range(weights.blocks.shape[0]):
        for j in range(trunk.shape[0]):
            trunk[j] += weights.blocks_bias[block, j]
        add_rows(count, index, value, weights.blocks[block], trunk)
        relu(trunk, trunk.shape[0])
        count = list_positive(trunk, index, value)
    _hidden(count, layers, weights.value, weights.value_bias)
    for k in range(work.values.shape[0]):
        work.values[k] = _output(layers.hidden, weights.outputs, weights.outputs_bias, k)
    _hidden(count, layers, weights.policy, weights.policy_bias)
    for k in range(num_legal):
        action = work.actions[k]
        work.logits[k] = _output(layers.hidden, weights.logits, weights.logits_bias, action)
