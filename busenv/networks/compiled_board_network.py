"""The layers of a BoardNetwork in compiled code; `networks.board_network` explains them.

Only the logits of legal actions are computed. A street whose features are all 0 adds nothing to its
messages, so its products are not computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from busenv.core.jit import fast_kernel
from busenv.core.map_rows import (
    MAP_HEADER,
    MARKS,
    NODE_COLUMNS,
    SITE_COLUMNS,
    STREET_COLUMNS,
    find_offsets,
)
from busenv.core.state import FIRST_BUILD, MAX_INTERSECTIONS, MAX_SITES, MAX_STREETS, NUM_SPLITS
from busenv.networks.compiled_layers import add_rows, list_positive, relu
from busenv.networks.inputs import Inputs

if TYPE_CHECKING:  # weights play without torch
    from busenv.networks.board_network import BoardNetwork

# Kinds of actions: those that name a street, a site or an intersection, which index
# `position_to_local`, and all others.
STREETS, SITES, PASSENGERS, POSITION = range(4)
# Roles of an intersection, which index `node_to_local` and `local_bias`.
STREET_START, STREET_END, OF_SITE, OF_PASSENGER = range(4)
NONE = -1


class BoardWeights(NamedTuple):
    """A network's weights, float32. All matrices are (inputs, outputs)."""

    inputs: Inputs
    node_scale: np.ndarray
    street_scale: np.ndarray
    site_scale: np.ndarray
    position_scale: np.ndarray
    node: np.ndarray
    node_bias: np.ndarray
    position: np.ndarray
    position_bias: np.ndarray
    position_to_node: np.ndarray
    street: np.ndarray
    message_and_self: np.ndarray
    message_and_self_bias: np.ndarray
    to_node: np.ndarray
    to_position: np.ndarray
    node_to_local: np.ndarray
    local_bias: np.ndarray
    position_to_local: np.ndarray
    site: np.ndarray
    street_logit: np.ndarray
    site_logits: np.ndarray
    passenger_logits: np.ndarray
    policy: np.ndarray
    policy_bias: np.ndarray
    logits: np.ndarray
    logits_bias: np.ndarray
    value: np.ndarray
    value_bias: np.ndarray
    result: np.ndarray
    result_bias: np.ndarray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Lengths of a row, of the logits and of the values on the largest board."""
        offsets = find_offsets(MAX_INTERSECTIONS, MAX_STREETS, MAX_SITES)
        num_actions = 3 * MAX_SITES + 2 * MAX_STREETS + 2 * MAX_INTERSECTIONS
        return (
            offsets.position + len(self.position),
            len(self.logits_bias) + num_actions,
            len(self.result_bias),
        )


class BoardLayers(NamedTuple):
    """Arrays of one thread.

    indices: int64, values_at: float32, the inputs of a layer that are not zero. nodes: float32,
    (64, width), vectors of the intersections. mixed: float32, (64, 2 width), their products in a
    layer. has_features: bool, (128,), whether a street has features. streets: float32,
    (layers + 2, 128, width), their products. position, hidden: float32, (2 width,).
    from_position, mean, from_position_to_local, local: float32, (width,).
    position_logits: float32, logits of actions that name no street, site or intersection.
    """

    indices: np.ndarray
    values_at: np.ndarray
    nodes: np.ndarray
    mixed: np.ndarray
    has_features: np.ndarray
    streets: np.ndarray
    position: np.ndarray
    hidden: np.ndarray
    from_position: np.ndarray
    mean: np.ndarray
    from_position_to_local: np.ndarray
    local: np.ndarray
    position_logits: np.ndarray


def read_weights(network: BoardNetwork) -> BoardWeights:
    """Return views of the weights of a network on the CPU: changes in place are visible."""
    tensors = (getattr(network, name) for name in BoardWeights._fields[1:])
    return BoardWeights(network.inputs, *(tensor.detach().numpy() for tensor in tensors))


def make_layers(weights: BoardWeights) -> BoardLayers:
    """Return arrays for a network with such weights, on any board."""
    width, wide = len(weights.node_bias), 2 * len(weights.node_bias)
    longest = max(len(weights.position), wide)

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    return BoardLayers(
        np.zeros(longest, np.int64),
        zeros(longest),
        zeros(MAX_INTERSECTIONS, width),
        zeros(MAX_INTERSECTIONS, wide),
        np.zeros(MAX_STREETS, np.bool_),
        zeros(len(weights.street), MAX_STREETS, width),
        position=zeros(wide),
        hidden=zeros(wide),
        from_position=zeros(width),
        mean=zeros(width),
        from_position_to_local=zeros(width),
        local=zeros(width),
        position_logits=zeros(len(weights.logits_bias)),
    )


@fast_kernel
def _list_bytes(layers, count, row, first, stride, scale, begin, end):
    """List the bytes that are not zero of columns `begin` to `end`, which are `stride` apart.

    count: numbers listed before. Returns how many are listed now.
    """
    for k in range(begin, end):
        byte = row[first + (k - begin) * stride]
        layers.indices[count] = k
        layers.values_at[count] = np.float32(byte) * scale[k]
        count += byte != 0
    return count


@fast_kernel
def _multiply(layers, vector, matrix, out):
    """Add the product of a vector's positive part and a matrix to `out`."""
    count = list_positive(vector, layers.indices, layers.values_at)
    add_rows(count, layers.indices, layers.values_at, matrix, out)


@fast_kernel
def _multiply_streets(weights, layers, row, at):
    """Compute what streets add to messages, to first vectors and to logits."""
    for street in range(at.streets):
        count = _list_bytes(
            layers, 0, row, at.street + street, at.streets, weights.street_scale, 0, STREET_COLUMNS
        )
        layers.has_features[street] = count > 0
        if count > 0:
            for k in range(weights.street.shape[0]):
                products = layers.streets[k, street]
                products[:] = np.float32(0.0)
                add_rows(count, layers.indices, layers.values_at, weights.street[k], products)


@fast_kernel
def _embed(weights, layers, row, at):
    """Compute the first vectors of the position and of the intersections."""
    position, nodes, width = layers.position, layers.nodes, layers.nodes.shape[1]
    at_ends, columns = weights.message_and_self.shape[0], MARKS + NODE_COLUMNS
    count = _list_bytes(
        layers, 0, row, at.position, 1, weights.position_scale, 0, weights.position.shape[0]
    )
    position[:] = weights.position_bias
    add_rows(count, layers.indices, layers.values_at, weights.position, position)
    relu(position, position.shape[0])
    layers.from_position[:] = weights.node_bias
    _multiply(layers, position, weights.position_to_node, layers.from_position)
    for k in range(at.intersections):
        stride = at.intersections
        count = _list_bytes(layers, 0, row, MAP_HEADER + k, stride, weights.node_scale, 0, MARKS)
        count = _list_bytes(
            layers, count, row, at.node + k, stride, weights.node_scale, MARKS, columns
        )
        nodes[k, :] = layers.from_position
        add_rows(count, layers.indices, layers.values_at, weights.node, nodes[k])
    for street in range(at.streets):
        if layers.has_features[street]:
            first, second = row[at.ends + street], row[at.ends + at.streets + street]
            for j in range(width):
                nodes[first, j] += layers.streets[at_ends, street, j]
                nodes[second, j] += layers.streets[at_ends, street, j]
    for k in range(at.intersections):
        relu(nodes[k], width)


@fast_kernel
def _send(message, street, has_features, out):
    """Add a message to the vector of the intersection that receives it."""
    if has_features:
        for j in range(out.shape[0]):
            out[j] += max(message[j] + street[j], np.float32(0.0))
    else:
        for j in range(out.shape[0]):
            out[j] += max(message[j], np.float32(0.0))


@fast_kernel
def _apply_layer(weights, layers, row, at, layer):
    """Apply a layer."""
    nodes, mixed, position, mean = layers.nodes, layers.mixed, layers.position, layers.mean
    width = nodes.shape[1]
    from_position = layers.from_position
    from_position[:] = np.float32(0.0)
    _multiply(layers, position, weights.to_node[layer], from_position)
    for k in range(at.intersections):
        mixed[k, :] = weights.message_and_self_bias[layer]
        _multiply(layers, nodes[k], weights.message_and_self[layer], mixed[k])
        for j in range(width):
            nodes[k, j] += mixed[k, width + j] + from_position[j]
    for street in range(at.streets):
        first = np.int64(row[at.ends + street])
        second = np.int64(row[at.ends + at.streets + street])
        has_features, products = layers.has_features[street], layers.streets[layer, street]
        _send(mixed[first], products, has_features, nodes[second])
        _send(mixed[second], products, has_features, nodes[first])
    mean[:] = np.float32(0.0)
    for k in range(at.intersections):
        relu(nodes[k], width)
        for j in range(width):
            mean[j] += nodes[k, j]
    for j in range(width):
        mean[j] /= np.float32(at.intersections)
    _multiply(layers, mean, weights.to_position[layer], position)
    relu(position, position.shape[0])


@fast_kernel
def _column(hidden, matrix, k):
    """Return the product of a hidden layer's positive part and column `k` of a matrix."""
    total = np.float32(0.0)
    for j in range(hidden.shape[0]):
        total += max(hidden[j], np.float32(0.0)) * matrix[j, k]
    return total


@fast_kernel
def _add_node(weights, layers, role, node, out):
    """Add what an intersection in a role contributes to a hidden layer, `out`."""
    for j in range(out.shape[0]):
        out[j] += weights.local_bias[role, j]
    _multiply(layers, layers.nodes[node], weights.node_to_local[role], out)


@fast_kernel
def _street_logit(weights, layers, row, at, edge):
    """Return the logit of growing along a street: edge 2 * street + the end that it leaves."""
    local, street, leaves = layers.local, edge // 2, edge % 2
    local[:] = layers.from_position_to_local
    if layers.has_features[street]:
        on_street = weights.street.shape[0] - 1
        for j in range(local.shape[0]):
            local[j] += layers.streets[on_street, street, j]
    _add_node(weights, layers, STREET_START, row[at.ends + leaves * at.streets + street], local)
    reached = row[at.ends + (1 - leaves) * at.streets + street]
    _add_node(weights, layers, STREET_END, reached, local)
    return _column(local, weights.street_logit, 0)


@fast_kernel
def _fill_site(weights, layers, row, at, site):
    """Compute the hidden layer of a site's logits into `layers.local`."""
    local = layers.local
    local[:] = layers.from_position_to_local
    scale = weights.site_scale
    count = _list_bytes(layers, 0, row, at.site + site, at.sites, scale, 0, SITE_COLUMNS)
    zone = at.site_nodes + at.sites + site
    count = _list_bytes(layers, count, row, zone, 1, scale, SITE_COLUMNS, SITE_COLUMNS + 1)
    add_rows(count, layers.indices, layers.values_at, weights.site, local)
    _add_node(weights, layers, OF_SITE, row[at.site_nodes + site], local)


@fast_kernel
def _position_logits(weights, layers):
    """Compute the logits of actions that name no street, site or intersection."""
    layers.hidden[:] = weights.policy_bias
    _multiply(layers, layers.position, weights.policy, layers.hidden)
    layers.position_logits[:] = weights.logits_bias
    _multiply(layers, layers.hidden, weights.logits, layers.position_logits)


@fast_kernel
def _fill_from_position(weights, layers, kind):
    """Compute what the position contributes to the hidden layers of a kind of actions."""
    out = layers.from_position_to_local
    out[:] = np.float32(0.0)
    _multiply(layers, layers.position, weights.position_to_local[kind], out)


@fast_kernel
def _logits(weights, work, row, at, num_legal):
    """Compute the logits of the first `num_legal` actions in `work.actions`, which are ascending.

    So actions of one kind, and of one site, are consecutive, and share what is computed first.
    """
    layers, local, last_site, last_kind = work.layers, work.layers.local, NONE, NONE
    first_street = FIRST_BUILD + 3 * at.sites
    first_split = first_street + 2 * at.streets
    first_pick = first_split + NUM_SPLITS + 2
    first_set = first_pick + at.intersections
    for k in range(num_legal):
        action = work.actions[k]
        if action < FIRST_BUILD or first_split <= action < first_pick:
            kind = POSITION
        elif action < first_street:
            kind = SITES
        else:
            kind = STREETS if action < first_split else PASSENGERS
        if kind != last_kind:
            last_kind = kind
            if kind == POSITION:
                _position_logits(weights, layers)
            else:
                _fill_from_position(weights, layers, kind)
        if kind == POSITION:
            skipped = 0 if action < FIRST_BUILD else first_split - FIRST_BUILD
            work.logits[k] = layers.position_logits[action - skipped]
        elif kind == SITES:
            site, building = (action - FIRST_BUILD) // 3, (action - FIRST_BUILD) % 3
            if site != last_site:
                _fill_site(weights, layers, row, at, site)
                last_site = site
            work.logits[k] = _column(local, weights.site_logits, building)
        elif kind == STREETS:
            work.logits[k] = _street_logit(weights, layers, row, at, action - first_street)
        else:
            local[:] = layers.from_position_to_local
            sets_down = action >= first_set
            node = action - (first_set if sets_down else first_pick)
            _add_node(weights, layers, OF_PASSENGER, node, local)
            work.logits[k] = _column(local, weights.passenger_logits, np.int64(sets_down))


@fast_kernel
def forward(weights, work, num_legal, seat):
    """Compute `work.values`, and the logits of the first `num_legal` actions in `work.actions`."""
    row, layers = work.row, work.layers
    at = find_offsets(np.int64(row[0]), np.int64(row[1]), np.int64(row[2]))
    _multiply_streets(weights, layers, row, at)
    _embed(weights, layers, row, at)
    for layer in range(weights.message_and_self.shape[0]):
        _apply_layer(weights, layers, row, at, layer)
    layers.hidden[:] = weights.value_bias
    _multiply(layers, layers.position, weights.value, layers.hidden)
    work.values[:] = weights.result_bias
    _multiply(layers, layers.hidden, weights.result, work.values)
    _logits(weights, work, row, at, num_legal)
