"""Networks for one board, and the kinds of networks by name.

Kind `mlp`, which PPO trains, has one value: the return that the seat to decide expects. Kinds
`seats` and `features` (`SeatsMlp`) and `board` (`busenv.networks.board_network`), which
searches use, predict the final result of every seat.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.heuristics.evaluation import WEIGHTS
from busenv.networks.board_network import BoardNetwork
from busenv.networks.evaluation_features import NO_EVAL_WEIGHTS
from busenv.networks.inputs import input_scale
from busenv.networks.logits import SEAT_VALUES
from busenv.networks.network import Network

MAX_WIDTH = 8192  # units of a hidden layer


class Mlp(Network):
    """A shared layer over the flat row, `blocks` residual layers, and a hidden layer per head.

    value_width: units of the value head's hidden layer, by default `width`. relative_types: whether
    rows and action ids count building types from the clock (`busenv.core.relative_types`).
    evaluation_features: whether rows have evaluation features behind the observation
    (`networks.evaluation_features`).
    """

    scale: torch.Tensor

    def __init__(
        self,
        board: Board,
        width: int = 256,
        *,
        blocks: int = 0,
        value_width: int | None = None,
        num_values: int = 1,
        relative_types: bool = False,
        evaluation_features: bool = False,
    ) -> None:
        super().__init__()
        self.relative_types, self.num_values = relative_types, num_values
        scale, wide = torch.tensor(input_scale(board, evaluation_features)), value_width or width
        self.register_buffer("scale", scale, persistent=False)
        weights = WEIGHTS if evaluation_features else NO_EVAL_WEIGHTS
        self.register_buffer("eval_weights", torch.tensor(weights), persistent=evaluation_features)
        self.shared = nn.Linear(len(scale), width)
        self.blocks = _Blocks(blocks, width)
        self.policy = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, board.num_actions)
        )
        self.value = nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, num_values))

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shared = self.trunk(observations)
        return self.policy(shared), self.value(shared)

    def trunk(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the values that the heads share: float32, (N, width)."""
        # Scaling the weights touches fewer numbers than scaling every row of a batch.
        weight = self.shared.weight * self.scale
        if not observations.is_floating_point():
            observations = observations.float()
        sums = nn.functional.linear(observations, weight, self.shared.bias)
        shared: torch.Tensor = self.blocks(sums.relu())
        return shared

    def store_by_input(self) -> None:
        """Store the weights of each input contiguously, as the compiled network reads them."""
        for layer in (self.shared, self.policy[0], self.value[0]):
            assert isinstance(layer, nn.Linear)
            layer.weight.data = layer.weight.data.T.contiguous().T


class _Blocks(nn.Module):
    """Residual layers, initialised to the identity."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.count = count
        if count:
            self.weight = nn.Parameter(torch.zeros(count, width, width))  # inputs, outputs
            self.bias = nn.Parameter(torch.zeros(count, width))
        else:  # buffers, which weights files leave out
            self.register_buffer("weight", torch.zeros(0, width, width), persistent=False)
            self.register_buffer("bias", torch.zeros(0, width), persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for k in range(self.count):
            values = (values + torch.addmm(self.bias[k], values, self.weight[k])).relu()
        return values


class SeatsMlp(Mlp):
    """An Mlp that predicts the result of every seat."""

    def __init__(
        self,
        board: Board,
        width: int = 384,
        *,
        relative_types: bool = False,
        evaluation_features: bool = False,
    ) -> None:
        wide = max(width // 4, 1)
        super().__init__(
            board,
            width,
            blocks=1,
            value_width=wide,
            num_values=SEAT_VALUES,
            relative_types=relative_types,
            evaluation_features=evaluation_features,
        )


def _initialise(network: nn.Module) -> None:
    """Initialise orthogonally; last layers small, so that the first policy is nearly uniform."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, np.sqrt(2))
            nn.init.zeros_(module.bias)
    for module in network.modules():
        if isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Linear):
            nn.init.orthogonal_(module[-1].weight, 0.01)


def load_compatible(network: nn.Module, past: nn.Module) -> None:
    """Initialise a network from one of its kind or of a kind that COMPATIBLE lists for it.

    It then plays as `past` does: additional inputs have weight 0. Heads of another shape keep their
    random weights.
    """
    weights = network.state_dict()
    for name, tensor in past.state_dict().items():
        if name == "shared.weight":
            weights[name] = torch.zeros_like(weights[name])
            weights[name][:, : tensor.shape[1]] = tensor
        elif weights[name].shape == tensor.shape:
            weights[name] = tensor
    network.load_state_dict(weights)


def mask_logits(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return logits with -inf for illegal actions. logits: float32, masks: bool, (N, num_actions).

    0 times -inf is nan: see `expected_log_probs`.
    """
    return logits.masked_fill(~masks, -torch.inf)


def expected_log_probs(
    probabilities: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor
) -> torch.Tensor:
    """Return the mean of log-probabilities weighted by `probabilities`: float32, (N,).

    Its negative is an entropy or a cross-entropy. probabilities, log_probs: float32, masks: bool,
    (N, num_actions); log_probs are -inf for illegal actions.
    """
    return (probabilities * log_probs.masked_fill(~masks, 0.0)).sum(dim=1)


NETWORKS: dict[str, Any] = {
    "mlp": Mlp,
    "seats": SeatsMlp,
    "features": partial(SeatsMlp, evaluation_features=True),
    "board": BoardNetwork,
}
# By kind of a network, the other kinds that its weights may initialise.
COMPATIBLE = {"mlp": ("seats", "features"), "seats": ("features",)}


def build_network(
    kind: str, board: Board | None, width: int, seed: int = 0, **options: bool
) -> Network:
    """Return a network with fresh weights from a seed.

    kind: a name in NETWORKS, else ValueError. board: the network's board; of no effect for kind
    `board`. width: units of its hidden layers, 1 or more. options: `relative_types`.
    """
    make = _constructor(kind, board)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: Network = make(width, **options)
        if isinstance(network, Mlp):
            _initialise(network)
            network.store_by_input()
    return network


def weights_of(
    kind: str, board: Board | None, width: int, **options: bool
) -> dict[str, torch.Tensor]:
    """Return names, shapes and dtypes of a network's weights, as tensors that take no memory."""
    make = _constructor(kind, board)
    with torch.device("meta"):
        weights: dict[str, torch.Tensor] = make(width, **options).state_dict()
    return weights


def _constructor(kind: str, board: Board | None) -> Any:
    if kind not in NETWORKS:
        raise ValueError(f"unknown network {kind!r}; allowed: {', '.join(NETWORKS)}")
    return BoardNetwork if kind == "board" else partial(NETWORKS[kind], board)


def check_tensors(tensors: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Raise ValueError unless tensors are finite, with the expected names, shapes and dtypes."""
    if differing := tensors.keys() ^ expected.keys():
        name = min(differing)
        raise ValueError(f"{name} is {'missing' if name in expected else 'not part of it'}")
    for name, tensor in tensors.items():
        actual, needed = (f"{t.dtype}, {tuple(t.shape)}" for t in (tensor, expected[name]))
        if actual != needed:
            raise ValueError(f"{name} is {actual}; it needs {needed}")
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds a number that is not finite")
