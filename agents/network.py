"""Networks that play: bytes of an observation in, action logits and a value out.

A network is a torch module. Called with observations (uint8, (N, size)) it returns logits
(float32, (N, num_actions)) and values (float32, (N,)): what the seat that decides expects to be
paid from here on, in the unit of the training.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.observation import ObservationLayout

NEVER = -1e8  # logit of what is illegal; finite, so that 0 times it is 0


class Mlp(nn.Module):
    """Layers over the flat row: one shared, then one for each head."""

    scale: torch.Tensor

    def __init__(self, board: Board, width: int = 256) -> None:
        super().__init__()
        layout = ObservationLayout(board)
        self.register_buffer("scale", torch.tensor(layout.scale), persistent=False)
        self.shared = nn.Linear(layout.size, width)
        self.policy = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, board.num_actions)
        )
        self.value = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        initialise(self)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shared = self.shared(observations * self.scale).relu()
        return self.policy(shared), self.value(shared)[:, 0]


def initialise(network: nn.Module) -> None:
    """Orthogonal weights; last layers small, so that play begins nearly uniform."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, np.sqrt(2))
            nn.init.zeros_(module.bias)
    for module in network.modules():
        if isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Linear):
            nn.init.orthogonal_(module[-1].weight, 0.01)


def only_legal(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Logits with those of illegal actions so low that a softmax makes their chances 0."""
    return logits.masked_fill(~masks, NEVER)


NETWORKS: dict[str, type[nn.Module]] = {"mlp": Mlp}


def build_network(kind: str, board: Board, width: int, seed: int = 0) -> nn.Module:
    """A network with fresh weights from a seed."""
    if kind not in NETWORKS:
        raise ValueError(f"unknown network {kind!r}; allowed: {', '.join(NETWORKS)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETWORKS[kind](board, width)
