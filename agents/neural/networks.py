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
from busenv.agents.neural.board_network import BoardNetwork
from busenv.observation import ObservationLayout

WIDEST = 8192  # hidden layers of a network
HIGHEST_TEMPERATURE = 100.0


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

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        shared = self.shared(observations * self.scale).relu()
        return self.policy(shared), self.value(shared)[:, 0]


def _initialise(network: nn.Module) -> None:
    """Orthogonal weights; last layers small, so that play begins nearly uniform."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, np.sqrt(2))
            nn.init.zeros_(module.bias)
    for module in network.modules():
        if isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Linear):
            nn.init.orthogonal_(module[-1].weight, 0.01)


def mask_logits(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Logits with -inf for illegal actions: whatever they are divided by, a softmax makes them 0.

    0 times -inf is nan: see `expected_log_probs`. logits: float32, masks: bool, both
    (N, num_actions).
    """
    return logits.masked_fill(~masks, -torch.inf)


def expected_log_probs(
    probabilities: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor
) -> torch.Tensor:
    """The mean of log-probabilities over legal actions, weighted by `probabilities`.

    float32, (N,); minus it is an entropy, or a cross-entropy. log_probs: -inf where not legal.
    """
    return (probabilities * log_probs.masked_fill(~masks, 0.0)).sum(dim=1)


def action_probabilities(
    logits: torch.Tensor, masks: torch.Tensor, temperature: float
) -> torch.Tensor:
    """The probability of each action, float32 (N, num_actions), at a temperature above 0.

    logits, masks: as `mask_logits` takes them. Illegal actions have 0 exactly. ValueError when
    logits are not finite, or no action of a row is legal.
    """
    if not logits.isfinite().all():
        raise ValueError(
            "the network's logits are not finite: its weights are too large or damaged"
        )
    if not masks.any(dim=1).all():
        raise ValueError("no action is legal: a game is over")
    logits = mask_logits(logits, masks)
    return ((logits - logits.amax(dim=1, keepdim=True)) / temperature).softmax(dim=1)


NETWORKS: dict[str, type[nn.Module]] = {"mlp": Mlp, "board": BoardNetwork}


def build_network(kind: str, board: Board, width: int, seed: int = 0) -> nn.Module:
    """A network for a board with fresh weights from a seed.

    kind: a name in NETWORKS, else ValueError. width: of its hidden layers, 1 or more.
    """
    _check_kind(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = NETWORKS[kind](board, width)
        _initialise(network)
        return network


def weights_of(kind: str, board: Board, width: int) -> dict[str, torch.Tensor]:
    """Names, shapes and dtypes of the weights that `build_network` would make: tensors without
    content, which take no memory however wide the network is."""
    _check_kind(kind)
    with torch.device("meta"):
        return NETWORKS[kind](board, width).state_dict()


def check_tensors(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    """ValueError when tensors have other names, shapes or dtypes than wanted, or are not finite."""
    if strange := found.keys() ^ wanted.keys():
        name = min(strange)
        raise ValueError(f"{name} is {'missing' if name in wanted else 'not part of it'}")
    for name, tensor in found.items():
        one, other = (f"{t.dtype}, {tuple(t.shape)}" for t in (tensor, wanted[name]))
        if one != other:
            raise ValueError(f"{name} is {one}; it needs {other}")
    for name, tensor in found.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds a number that is not finite")


def _check_kind(kind: str) -> None:
    if kind not in NETWORKS:
        raise ValueError(f"unknown network {kind!r}; allowed: {', '.join(NETWORKS)}")
