"""Policies of PPO's rollouts: networks in PyTorch or in compiled code, and agents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from llvmlite.binding import get_host_cpu_features
from torch import nn

from busenv.agents import Agent
from busenv.batch.batch import Batch
from busenv.batch.opponents import choose_actions
from busenv.batch.saved_games import take_games
from busenv.core.relative_types import write_relative_actions
from busenv.networks.compiled_network import make_workspace, read_weights
from busenv.networks.inference import act_on_rows
from busenv.networks.network import Network

ILLEGAL_LOGIT = -1e9  # its probability is exactly 0, and 0 times its logarithm is not nan

# A policy returns actions, int64 (n,), their log-probabilities and values, float32 (n,), for rows,
# int64 (n,), of observations and masks. An opponent returns actions only.
Policy = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor, torch.Tensor]
]
Opponent = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def torch_policy(network: nn.Module, generator: torch.Generator, bfloat16: bool) -> Policy:
    """Return a policy that samples from a network, on any device."""

    @torch.no_grad()
    def act(
        observations: torch.Tensor, masks: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        observations, masks = select(rows, observations, masks)
        logits, values = forward(network, observations, bfloat16)
        log_probs = masked_log_probs(logits, masks)
        actions = sample(log_probs, generator)
        return actions, log_probs.gather(1, actions[:, None])[:, 0], values[:, 0]

    return act


def compiled_policy(network: Network, generator: torch.Generator) -> Policy:
    """Return a policy that samples from a network on the CPU, in compiled code.

    It computes the logits of legal actions only, and releases the GIL. Several threads can each use
    one of the same network, whose weights may change in place. It raises ValueError for logits that
    are not finite.
    """
    weights = read_weights(network)
    work = make_workspace(weights)
    rng_state = torch.randint(2**62, (1,), generator=generator).numpy().view(np.uint64)

    def act(
        observations: torch.Tensor, masks: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        actions, log_probs, values = rows.clone(), *torch.empty(2, len(rows))
        inputs, outputs = (observations, masks, rows), (actions, log_probs, values)
        arrays, drawn = ([tensor.numpy() for tensor in some] for some in (inputs, outputs))
        act_on_rows(*arrays, weights, work, rng_state, *drawn)
        return actions, log_probs, values

    return act


def select(rows: torch.Tensor, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return some rows of each tensor; on a CPU, indexing would copy them byte by byte."""
    return [tensor.index_select(0, rows) for tensor in tensors]


def forward(
    network: nn.Module, observations: torch.Tensor, bfloat16: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits, float32 (n, num_actions), and values, float32 (n, num_values)."""
    with torch.autocast(observations.device.type, torch.bfloat16, enabled=bfloat16):
        logits, values = network(observations)
    return logits.float(), values.float()


def masked_log_probs(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities along rows, float32; where masks are False, about ILLEGAL_LOGIT."""
    return torch.where(masks, logits, ILLEGAL_LOGIT).log_softmax(dim=1)


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Return whether matrix products are computed in bfloat16.

    precision: "float32", "bfloat16", or "auto": bfloat16 on CPUs with instructions for it.
    """
    if precision == "auto":
        features = get_host_cpu_features()
        in_hardware = any(features.get(name) for name in ("avx512bf16", "amx-bf16"))
        return in_hardware and device.type == "cpu"
    return precision == "bfloat16"


def sample(log_probs: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw a legal action from each row of log-probabilities: int64, (n,)."""
    probabilities = log_probs.softmax(dim=1)  # exp() is slow for the lowest logits on a CPU
    if log_probs.is_cuda:
        # The action with the largest ratio of its probability to an exponential variate is
        # distributed by the probabilities. Sums in parallel are not monotonic: with them, an action
        # of probability 0 could be drawn.
        variates = torch.empty_like(probabilities).exponential_(generator=generator)
        return (probabilities / variates).argmax(dim=1)
    cumulative = probabilities.cumsum(dim=1)
    drawn = torch.rand(len(log_probs), 1, generator=generator) * (1 - 2**-22)
    return (cumulative <= drawn * cumulative[:, -1:]).sum(dim=1)


def agent_opponent(agent: Agent, batch: Batch, relative_types: bool) -> Opponent:
    """Return an opponent that plays as an agent does, in a batch of games on the CPU.

    relative_types: whether the environment's actions count building types from the clock.
    """

    def choose(observations: torch.Tensor, masks: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        index = rows.numpy()
        actions = choose_actions(agent, batch, index)
        if relative_types:
            write_relative_actions(take_games(batch.games, index), batch.board.array, actions)
        return torch.from_numpy(actions)

    return choose
