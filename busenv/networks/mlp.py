"""Networks for one board: a multilayer perceptron over the flat row."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.heuristics.evaluation import WEIGHTS
from busenv.networks.byte_layer import byte_layer
from busenv.networks.evaluation_features import FEATURES_SIZE, INPUT_SCALE, NO_EVAL_WEIGHTS
from busenv.networks.network import Network
from busenv.observation import ObservationLayout


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
        scale, wide = ObservationLayout(board).scale, value_width or width
        eval_weights = torch.tensor(NO_EVAL_WEIGHTS)
        if evaluation_features:
            scale = np.append(scale, np.full(FEATURES_SIZE, INPUT_SCALE, np.float32))
            eval_weights = torch.tensor(WEIGHTS)
        self.register_buffer("scale", torch.tensor(scale), persistent=False)
        self.register_buffer("eval_weights", eval_weights, persistent=evaluation_features)
        self.shared = nn.Linear(len(scale), width)
        self.blocks = _Blocks(blocks, width)
        self.policy = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, board.num_actions)
        )
        self.value = nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, num_values))

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if observations.dtype == torch.uint8 and observations.device.type == "cpu":
            sums = byte_layer(observations, self.scale, self.shared.weight, self.shared.bias)
        else:
            # Scaling the weights touches fewer numbers than scaling every row of a batch.
            weight = self.shared.weight * self.scale
            sums = nn.functional.linear(observations.float(), weight, self.shared.bias)
        shared = self.blocks(sums.relu())
        return self.policy(shared), self.value(shared)

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
