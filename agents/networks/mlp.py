"""Networks that play: bytes of an observation in, action logits and values out.

A network is a torch module. Called with rows (uint8, (N, size)) it returns logits
(float32, (N, num_actions)) and values (float32, (N, outputs)). The kinds that PPO teaches have one
output: what the seat that decides expects to be paid from here on, in the unit of the training.
Those that searches learn (`SeatsMlp`) tell of every seat how the game will end for it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.agents.networks.board_network import BoardNetwork
from busenv.agents.networks.evaluation_features import NO_EVAL_WEIGHTS, input_scale
from busenv.agents.planner.evaluation import WEIGHTS
from busenv.core.state import MAX_PLAYERS

WIDEST = 8192  # hidden layers of a network
OUTPUTS = 2 * MAX_PLAYERS  # of a network that tells of every seat


class Mlp(nn.Module):
    """Layers over the flat row: one shared, then one for each head.

    Between them stand `blocks` more that are shared, each added to what it is given. value_width:
    of the value's layer, by default `width`. outputs: numbers that the value is. outlook: whether
    rows have an outlook behind the observation (agents.networks.evaluation_features); the weights that it is
    worked out by are kept with the network's own, so that it means the same for ever.
    """

    scale: torch.Tensor
    plan: torch.Tensor

    def __init__(
        self,
        board: Board,
        width: int = 256,
        blocks: int = 0,
        value_width: int | None = None,
        outputs: int = 1,
        evaluation_features: bool = False,
    ) -> None:
        super().__init__()
        scale, wide = torch.tensor(input_scale(board, evaluation_features)), value_width or width
        self.register_buffer("scale", scale, persistent=False)
        weights = WEIGHTS if evaluation_features else NO_EVAL_WEIGHTS
        self.register_buffer("plan", torch.tensor(weights), persistent=evaluation_features)
        self.shared = nn.Linear(len(scale), width)
        self.blocks = _Blocks(blocks, width)
        self.policy = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, board.num_actions)
        )
        self.value = nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, outputs))

    @property
    def eval_weights(self) -> torch.Tensor:
        """Weights of the evaluation features; weights files name the tensor `plan`."""
        return self.plan

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Scaling the weights touches fewer numbers than scaling every row of a batch.
        weight = self.shared.weight * self.scale
        if not observations.is_floating_point():
            observations = observations.float()
        sums = nn.functional.linear(observations, weight, self.shared.bias)
        shared = self.blocks(sums.relu())
        return self.policy(shared), self.value(shared)

    def stand_by_input(self) -> None:
        """Let the weights of an input lie side by side, as the compiled network reads them."""
        for layer in (self.shared, self.policy[0], self.value[0]):
            assert isinstance(layer, nn.Linear)
            layer.weight.data = layer.weight.data.T.contiguous().T


class _Blocks(nn.Module):
    """Layers one after the other, each added to what it is given; at first they add nothing."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.count = count
        if count:
            self.weight = nn.Parameter(torch.zeros(count, width, width))  # inputs, outputs
            self.bias = nn.Parameter(torch.zeros(count, width))
        else:  # buffers, which no file of an older network has
            self.register_buffer("weight", torch.zeros(0, width, width), persistent=False)
            self.register_buffer("bias", torch.zeros(0, width), persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for k in range(self.count):
            values = (values + torch.addmm(self.bias[k], values, self.weight[k])).relu()
        return values


class SeatsMlp(Mlp):
    """An Mlp that tells how the game will end, for every seat present, the viewer's first and the
    others clockwise: logits of winning (five), then final points in units of POINTS (five)."""

    def __init__(self, board: Board, width: int = 384, evaluation_features: bool = False) -> None:
        wide = max(width // 4, 1)
        super().__init__(board, width, 1, wide, OUTPUTS, evaluation_features)


class FeaturesMlp(SeatsMlp):
    """A SeatsMlp that is told the outlook as well."""

    def __init__(self, board: Board, width: int = 384) -> None:
        super().__init__(board, width, evaluation_features=True)


def _initialise(network: nn.Module) -> None:
    """Orthogonal weights; last layers small, so that play begins nearly uniform."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight, np.sqrt(2))
            nn.init.zeros_(module.bias)
    for module in network.modules():
        if isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Linear):
            nn.init.orthogonal_(module[-1].weight, 0.01)


def load_compatible(network: nn.Module, past: nn.Module) -> None:
    """Give a fresh network the weights of one of its kind, or of one of those in COMPATIBLE, which then
    plays as before: what it is told besides counts for nothing at first, and a head that says other
    things stays fresh."""
    weights = network.state_dict()
    for name, tensor in past.state_dict().items():
        if name == "shared.weight":
            weights[name] = torch.zeros_like(weights[name])
            weights[name][:, : tensor.shape[1]] = tensor
        elif weights[name].shape == tensor.shape:
            weights[name] = tensor
    network.load_state_dict(weights)


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


NETWORKS: dict[str, type[nn.Module]] = {
    "mlp": Mlp,
    "board": BoardNetwork,
    "seats": SeatsMlp,
    "features": FeaturesMlp,
}
COMPATIBLE = {"mlp": ("seats", "features"), "seats": ("features",)}  # who may begin as which
SEAT_VALUE_NETWORKS = ("mlp", "board")  # whose value is what PPO learns


def build_network(kind: str, board: Board, width: int, seed: int = 0) -> nn.Module:
    """A network for a board with fresh weights from a seed.

    kind: a name in NETWORKS, else ValueError. width: of its hidden layers, 1 or more.
    """
    _check_kind(kind)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = NETWORKS[kind](board, width)
        _initialise(network)
    if isinstance(network, Mlp):
        network.stand_by_input()
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
