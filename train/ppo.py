"""Proximal policy optimisation with action masks (Schulman et al. 2017), and imitation before it.

Top to bottom: the settings, the network as the library's policy, an update by PPO, an update by
imitation. The loop of PPO itself is that of sb3-contrib's MaskablePPO, which is given whole games
as its rollout (`busenv.train.rollout`) in place of an environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import update_learning_rate
from torch import nn

from busenv import Board
from busenv.agents.networks.mlp import expected_log_probs, mask_logits
from busenv.core.jit import kernel
from busenv.observation import spaces_of
from busenv.train.config import PPOConfig
from busenv.train.rollout import ImitationBatch, Rollout

LOWEST_LEARNING_RATE = 0.05  # at the end of a run, as a share of that at the beginning
IMITATION_LEARNING_RATE = 1e-3
IMITATION_BATCH = 512  # decisions; imitation gains by many small steps, PPO by fewer large ones
SHARPNESS = (
    2  # power of a teacher's probabilities: PPO, which plays at temperature 1, goes on there
)


@kernel
def compute_gae(
    agents: np.ndarray, rewards: np.ndarray, values: np.ndarray, gamma: float, gae_lambda: float
) -> np.ndarray:
    """Compute advantages by generalized advantage estimation (Schulman et al. 2016).

    Several agents, such as the seats of several games, decide in turns. Each one's decisions form
    a trajectory of their own, which ends with its last row.

    agents: int64, (R,), the agent of each decision, 0 or more; rows in the order of time. rewards:
    float32 or float64, (R,), what the agent receives from this decision until its next one, or
    until the end of its game. values: float32, (R,), predicted before the decision.

    Returns advantages, float32, (R,); `values` plus these are the returns.
    """
    advantages = np.zeros(len(agents), np.float32)
    next_value = np.zeros(agents.max() + 1 if len(agents) else 0)
    next_advantage = np.zeros_like(next_value)
    for row in range(len(agents) - 1, -1, -1):
        agent = agents[row]
        delta = rewards[row] + gamma * next_value[agent] - values[row]
        next_advantage[agent] = delta + gamma * gae_lambda * next_advantage[agent]
        next_value[agent] = values[row]
        advantages[row] = next_advantage[agent]
    return advantages


def clipped_policy_loss(
    log_probs: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    clip_range: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the clipped surrogate loss of PPO, to be minimised.

    log_probs, old_log_probs: float32, (N,), of the actions taken, by the policy that learns and by
    the one that played. advantages: float32, (N,), normalised by the caller.

    Returns the mean loss, and an estimate of the Kullback-Leibler divergence of the two policies
    without gradient (Schulman 2020, "Approximating KL divergence"), both scalars.
    """
    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_range, 1 + clip_range)
    loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    return loss, (ratio - 1 - log_ratio).mean().detach()


def ppo_settings(config: PPOConfig) -> dict[str, Any]:
    """A run's settings as MaskablePPO calls them."""
    return {
        "learning_rate": lambda remaining: (
            config.learning_rate * max(remaining, LOWEST_LEARNING_RATE)
        ),
        "batch_size": config.batch_size,
        "n_epochs": config.epochs,
        "gamma": config.gamma,
        "gae_lambda": config.gae_lambda,
        "clip_range": config.clip_range,
        "ent_coef": config.entropy_coef,
        "vf_coef": config.value_coef,
        "max_grad_norm": config.max_grad_norm,
        "seed": config.seed % 2**32,
    }


class NetworkPolicy(MaskableActorCriticPolicy):
    """A network (busenv.agents.networks.mlp) as Stable-Baselines3 wants it."""

    def __init__(self, *args: Any, network: nn.Module, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.network = network
        self.optimizer = torch.optim.Adam(self.parameters(), eps=1e-5)

    def _build(self, lr_schedule: Any) -> None:
        """The network is given; nothing else is needed."""

    def forward(
        self, obs: torch.Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Actions, int64, their values and their log-probabilities, float32; all (N,).

        obs: uint8, (N, size). action_masks: bool, (N, num_actions).
        """
        logits, values = self.network(obs)
        logits = mask_logits(logits, torch.as_tensor(action_masks, device=logits.device))
        if deterministic:
            actions = logits.argmax(dim=1)
        else:
            actions = torch.multinomial(logits.softmax(dim=1), 1)[:, 0]
        return actions, values[:, 0], _of(logits.log_softmax(dim=1), actions)

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Values, log-probabilities of given actions, and entropy, float32, (N,)."""
        logits, values = self.network(obs)
        logits = mask_logits(logits, action_masks.bool())
        log_probs = logits.log_softmax(dim=1)
        entropy = -expected_log_probs(logits.softmax(dim=1), log_probs, action_masks.bool())
        return values[:, 0], _of(log_probs, actions), entropy

    def predict_values(self, obs: Any) -> torch.Tensor:
        """Values, float32, (N,)."""
        return self.network(obs)[1][:, 0]


def _of(rows: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """The entry of each row that its action names."""
    return rows.gather(1, actions[:, None])[:, 0]


class SeatPPO(MaskablePPO):
    """The library's PPO; what it learns from is given to it, rollout by rollout (`update`)."""

    policy: NetworkPolicy
    batch_size: int

    def __init__(self, network: nn.Module, board: Board, **settings: Any) -> None:
        super().__init__(
            NetworkPolicy,
            None,  # type: ignore[arg-type]  # no environment: spaces are set below
            policy_kwargs={"network": network},
            n_steps=1,
            _init_setup_model=False,
            **settings,
        )
        self.observation_space, self.action_space = spaces_of(board)
        self.n_envs = 1
        self._setup_model()
        self.set_logger(Logger(None, []))

    def update(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """Learn from a finished rollout by PPO; losses and more by name.

        progress: how much of the run is done, 0 to 1, for the learning rate.
        """
        self._current_progress_remaining = 1 - progress
        self.rollout_buffer = rollout  # type: ignore[assignment]
        self.train()
        return {name: float(value) for name, value in self.logger.name_to_value.items()}

    def update_by_imitation(self, rollout: Rollout) -> dict[str, float]:
        """Learn from a finished rollout with a teacher; losses by name."""
        update_learning_rate(self.policy.optimizer, IMITATION_LEARNING_RATE)
        batches = chain.from_iterable(
            rollout.imitation_batches(IMITATION_BATCH) for _ in range(self.n_epochs)
        )
        return imitate(self.policy, batches, self.vf_coef, self.max_grad_norm)


def imitate(
    policy: NetworkPolicy,
    batches: Iterable[ImitationBatch],
    value_weight: float,
    max_grad_norm: float,
) -> dict[str, float]:
    """Follow a teacher's action probabilities by cross-entropy, while values learn the returns."""
    losses = []
    for batch in batches:
        logits, values = policy.network(batch.observations)
        log_probs = mask_logits(logits, batch.masks).log_softmax(dim=1)
        target = batch.teacher_probabilities**SHARPNESS
        target = target / target.sum(dim=1, keepdim=True)
        imitation_loss = -expected_log_probs(target, log_probs, batch.masks).mean()
        value_loss = nn.functional.mse_loss(values[:, 0], batch.returns)
        entropy = -expected_log_probs(log_probs.exp(), log_probs, batch.masks)
        policy.optimizer.zero_grad()
        (imitation_loss + value_weight * value_loss).backward()
        nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm)
        policy.optimizer.step()
        losses.append((imitation_loss.item(), value_loss.item(), -entropy.mean().item()))
    names = ("train/imitation_loss", "train/value_loss", "train/entropy_loss")
    return dict(zip(names, torch.tensor(losses).mean(dim=0).tolist(), strict=True))
