"""A graph network whose weights fit every board: kind `board`.

The state is a vector of `width` floats for each intersection and one of 2 * `width` for the
position. In each layer every street carries a message in both directions, computed from the sending
intersection and the street (Gilmer et al. 2017, "Neural message passing for quantum chemistry");
the vectors of the intersections and of the position then update each other (Battaglia et al. 2018,
"Relational inductive biases, deep learning, and graph networks"). The logit of an action is
computed from what the action names: a street and its two intersections, a site and its
intersection, an intersection, or the position alone.

The map is part of each row (`busenv.core.map_rows`), so the weights depend on no board,
and one network plays boards of all sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from busenv import load_board
from busenv.core.features import WIDTHS
from busenv.core.map_rows import (
    LAST_ZONE,
    MAP_HEADER,
    MARKS,
    Offsets,
    find_offsets,
    planes,
    split_map,
)
from busenv.core.state import FIRST_BUILD, MAX_PLAYERS, NUM_SPLITS
from busenv.heuristics.evaluation import WEIGHTS
from busenv.networks.evaluation_features import FEATURES_SIZE, INPUT_SCALE
from busenv.networks.logits import SEAT_VALUES
from busenv.networks.network import Network
from busenv.observation import ObservationLayout

LAYERS, MAX_BOARD_WIDTH = 4, 1024
# Numbers that describe an intersection, a street, a site, and the position.
NODE, STREET, SITE = MARKS + WIDTHS["intersections"], WIDTHS["streets"], WIDTHS["sites"] + 1
POSITION = MAX_PLAYERS * WIDTHS["players"] + WIDTHS["table"] + FEATURES_SIZE
POSITION_ACTIONS = FIRST_BUILD + NUM_SPLITS + 2  # that name no street, site or intersection
LAYER_GAIN, LAST_GAIN = 0.5, 0.01  # of the first weights


class _Graphs(NamedTuple):
    """N rows as tensors, scaled: V intersections, S streets, B sites.

    nodes: (N, V, NODE). streets: (N, S, STREET). sites: (N, B, SITE). position: (N, POSITION).
    ends: int64, (2, N, S), site_node: int64, (N, B), indices of intersections among N * V.
    """

    nodes: torch.Tensor
    streets: torch.Tensor
    sites: torch.Tensor
    position: torch.Tensor
    ends: torch.Tensor
    site_node: torch.Tensor


class BoardNetwork(Network):
    """Logits and values for positions on any board.

    A batch of rows is of boards with equal numbers of intersections, streets and sites. All
    matrices are (inputs, outputs). width: length of an intersection's vector, at most
    MAX_BOARD_WIDTH, else ValueError.
    """

    num_values = SEAT_VALUES
    plays_any_board = True
    node_scale: torch.Tensor
    street_scale: torch.Tensor
    site_scale: torch.Tensor
    position_scale: torch.Tensor

    def __init__(self, width: int = 64, *, relative_types: bool = False) -> None:
        if width > MAX_BOARD_WIDTH:
            raise ValueError(
                f"width is {width}; allowed for network 'board': 1 to {MAX_BOARD_WIDTH}"
            )
        super().__init__()
        self.width, self.relative_types = width, relative_types
        self.register_buffer("eval_weights", torch.tensor(WEIGHTS))
        for name, scale in _scales().items():
            self.register_buffer(f"{name}_scale", torch.from_numpy(scale), persistent=False)
        wide = 2 * width
        self.node, self.node_bias = _weights(NODE, width), _zeros(width)
        self.position, self.position_bias = _weights(POSITION, wide), _zeros(wide)
        self.position_to_node = _weights(wide, width, LAYER_GAIN)
        # What streets add to the messages of each layer, to the first vectors, and to logits.
        self.street = _weights(STREET, width, layers=LAYERS + 2)
        # The message of an intersection, and what its own vector adds to the next one.
        self.message_and_self = _weights(width, wide, LAYER_GAIN, LAYERS)
        self.message_and_self_bias = _zeros(LAYERS, wide)
        self.to_node = _weights(wide, width, LAYER_GAIN, LAYERS)
        self.to_position = _weights(width, wide, LAYER_GAIN, LAYERS)
        # Hidden layers of logits: of a street by its first and its second end, a site, a passenger.
        self.node_to_local, self.local_bias = _weights(width, width, layers=4), _zeros(4, width)
        self.position_to_local = _weights(wide, width, layers=3)  # of a street, a site, a passenger
        self.site = _weights(SITE, width)
        self.street_logit = _weights(width, 1, LAST_GAIN)
        self.site_logits = _weights(width, 3, LAST_GAIN)
        self.passenger_logits = _weights(width, 2, LAST_GAIN)  # to pick up, to set down
        self.policy, self.policy_bias = _weights(wide, wide), _zeros(wide)
        self.logits = _weights(wide, POSITION_ACTIONS, LAST_GAIN)
        self.logits_bias = _zeros(POSITION_ACTIONS)
        self.value, self.value_bias = _weights(wide, wide), _zeros(wide)
        self.result, self.result_bias = _weights(wide, SEAT_VALUES, LAST_GAIN), _zeros(SEAT_VALUES)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        graphs = self._read(rows)
        node, position = self._embed(graphs)
        for layer in range(LAYERS):
            node, position = self._apply_layer(layer, graphs, node, position)
        hidden = (position @ self.value + self.value_bias).relu()
        values = hidden @ self.result + self.result_bias
        return self._policy(graphs, node, position), values

    def _read(self, rows: torch.Tensor) -> _Graphs:
        """Split rows, uint8 (N, size), into scaled tensors."""
        count = len(rows)
        at: Offsets = find_offsets(*rows[0, :MAP_HEADER].tolist())
        marks, ends, site_node, zone = split_map(rows, at)
        node = planes(rows, at.node, at.street, at.intersections)
        street = planes(rows, at.street, at.site, at.streets)
        site = planes(rows, at.site, at.position, at.sites)
        first_nodes = at.intersections * torch.arange(count, device=rows.device)[:, None]
        return _Graphs(
            torch.cat([marks, node], dim=2).float() * self.node_scale,
            street.float() * self.street_scale,
            torch.cat([site, zone[..., None]], dim=2).float() * self.site_scale,
            rows[:, at.position :].float() * self.position_scale,
            ends.permute(2, 0, 1).long() + first_nodes,
            site_node.long() + first_nodes,
        )

    def _embed(self, graphs: _Graphs) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the first vectors of intersections (N, V, width) and position (N, 2 width)."""
        position = (graphs.position @ self.position + self.position_bias).relu()
        node = graphs.nodes @ self.node + self.node_bias
        node = node + (position @ self.position_to_node)[:, None]
        at_ends = graphs.streets @ self.street[LAYERS]
        return (node + _sum_at_ends(at_ends, at_ends, graphs, node)).relu(), position

    def _apply_layer(
        self, layer: int, graphs: _Graphs, node: torch.Tensor, position: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        street = graphs.streets @ self.street[layer]
        mixed = node @ self.message_and_self[layer] + self.message_and_self_bias[layer]
        message, own = mixed.split(self.width, dim=2)
        first, second = ((_gather(message, ends) + street).relu() for ends in graphs.ends)
        received = _sum_at_ends(second, first, graphs, node)
        from_position = (position @ self.to_node[layer])[:, None]
        node = (node + own + received + from_position).relu()
        position = (position + node.mean(dim=1) @ self.to_position[layer]).relu()
        return node, position

    def _policy(self, graphs: _Graphs, node: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        start, end, site, passenger = (
            node @ self.node_to_local[k] + self.local_bias[k] for k in range(4)
        )
        on_street, on_site, on_passenger = (position @ self.position_to_local)[:, :, None]
        street = graphs.streets @ self.street[LAYERS + 1] + on_street
        first, second = graphs.ends
        streets = torch.cat(
            [
                (_gather(start, leaves) + _gather(end, enters) + street).relu() @ self.street_logit
                for leaves, enters in ((first, second), (second, first))
            ],
            dim=2,
        )
        at_site = _gather(site, graphs.site_node) + graphs.sites @ self.site + on_site
        sites = at_site.relu() @ self.site_logits
        passengers = (passenger + on_passenger).relu() @ self.passenger_logits
        hidden = (position @ self.policy + self.policy_bias).relu()
        position_logits = hidden @ self.logits + self.logits_bias
        parts = (
            position_logits[:, :FIRST_BUILD], sites, streets, position_logits[:, FIRST_BUILD:],
            passengers.transpose(1, 2),
        )  # fmt: skip
        return torch.cat([part.flatten(1) for part in parts], dim=1)


def _gather(node: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Return vectors of intersections (N, V, width) by their indices among N * V, (N, K)."""
    # The gradient of index_select is cheaper than that of an index in brackets.
    return node.flatten(0, 1).index_select(0, indices.flatten()).unflatten(0, indices.shape)


def _sum_at_ends(
    at_first: torch.Tensor, at_second: torch.Tensor, graphs: _Graphs, node: torch.Tensor
) -> torch.Tensor:
    """Sum what streets, (N, S, width), contribute to their first and second ends: (N, V, width)."""
    sums = torch.zeros_like(node, dtype=at_first.dtype).reshape(-1, node.shape[2])
    for ends, brought in zip(graphs.ends, (at_first, at_second), strict=True):
        sums = sums.index_add(0, ends.flatten(), brought.reshape(-1, node.shape[2]))
    return sums.reshape(node.shape)


def _scales() -> dict[str, np.ndarray]:
    """Return factors that scale usual byte values of the city, and of any board, to 0 to 1."""
    layout = ObservationLayout(load_board("city"))
    scale = {section: layout.view(layout.scale, section) for section in layout.sections}
    features = np.full(FEATURES_SIZE, INPUT_SCALE)
    return {
        "node": np.concatenate([np.ones(MARKS, np.float32), scale["intersections"][0]]),
        "street": scale["streets"][0].copy(),
        "site": np.append(scale["sites"][0], np.float32(1 / LAST_ZONE)),
        "position": np.concatenate([scale["players"].ravel(), scale["table"], features]),
    }


def _weights(
    inputs: int, outputs: int, gain: float = 2**0.5, layers: int | None = None
) -> nn.Parameter:
    """Return an orthogonal matrix (inputs, outputs), or one for each layer."""
    matrices = torch.empty(layers or 1, inputs, outputs)
    if not matrices.is_meta:
        for matrix in matrices:
            nn.init.orthogonal_(matrix, gain)
    return nn.Parameter(matrices[0].clone() if layers is None else matrices)


def _zeros(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape))
