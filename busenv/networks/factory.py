"""The kinds of networks by name, and how to build one.

Kind `mlp`, which PPO trains, has one value: the return that the seat to decide expects. Kinds
`seats`, `features` and `board`, which searches use, predict the final result of every seat.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.networks.board_network import BoardNetwork
from busenv.networks.logits import SEAT_VALUES
from busenv.networks.mlp import Mlp
from busenv.networks.network import Network

MAX_WIDTH = 8192  # units of a hidden layer


def _seats_mlp(board: Board, width: int, **options: bool) -> Mlp:
    value_width = max(width // 4, 1)
    return Mlp(board, width, blocks=1, value_width=value_width, num_values=SEAT_VALUES, **options)


NETWORKS: dict[str, Any] = {
    "mlp": Mlp,
    "seats": _seats_mlp,
    "features": partial(_seats_mlp, evaluation_features=True),
    "board": BoardNetwork,
}


def build_network(
    kind: str, board: Board | None, width: int, seed: int | None = 0, **options: bool
) -> Network:
    """Return a network with fresh weights.

    seed: of the weights; None for a network whose weights the caller loads: skips their orthogonal
    initialisation.

    kind: a name in NETWORKS, else ValueError. board: the network's board; ignored for kind
    `board`. width: units of its hidden layers, 1 or more. options: `relative_types`.
    """
    make = _constructor(kind, board)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed or 0)
        network: Network = make(width, **options)
        if isinstance(network, Mlp):
            if seed is not None:
                _initialise(network)
            network.store_by_input()
    return network


def weights_of(kind: str, board: Board | None, width: int) -> dict[str, torch.Tensor]:
    """Return names, shapes and dtypes of a network's weights, as tensors that take no memory."""
    make = _constructor(kind, board)
    with torch.device("meta"):
        weights: dict[str, torch.Tensor] = make(width).state_dict()
    return weights


def _constructor(kind: str, board: Board | None) -> Any:
    if kind not in NETWORKS:
        raise ValueError(f"unknown network {kind!r}; allowed: {', '.join(NETWORKS)}")
    return BoardNetwork if kind == "board" else partial(NETWORKS[kind], board)


def _initialise(network: nn.Module) -> None:
    """Initialise orthogonally; last layers small, so that the first policy is nearly uniform."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, np.sqrt(2))
            nn.init.zeros_(module.bias)
    for module in network.modules():
        if isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Linear):
            nn.init.orthogonal_(module[-1].weight, 0.01)
