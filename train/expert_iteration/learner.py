"""Updates of the network from training samples: losses of policy, winner, final points, and of the
lines and buildings at the end of the game, which an auxiliary head predicts in training only.

The policy learns by cross-entropy from the policy that a search improved, or, without a search, by
PPO (Schulman et al. 2017) from advantages.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.agents.networks.mlp import expected_log_probs, mask_logits
from busenv.agents.networks.network import Network
from busenv.core.state import MAX_PLAYERS
from busenv.game.board_specs import GeneratedBoards, board_at
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_selfplay import POLICY_TEMPERATURE
from busenv.train.expert_iteration.samples import auxiliary_targets, make_batch, split_by_size
from busenv.train.ppo import clipped_policy_loss, compute_gae

CLIP_RANGE = 0.2  # of PPO's probability ratio
ENTROPY_WEIGHT = 0.005  # in PPO's loss
GAE_LAMBDA = 0.95
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


def add_advantages(games: list[np.ndarray]) -> np.ndarray:
    """Concatenate the samples (SAMPLE, (n,)) of games, with the advantages of their actions.

    A seat's decisions are a trajectory whose values are its win probabilities. The reward is 1 for
    the winner, at the end. Advantages are those of `busenv.train.ppo.compute_gae`.
    """
    samples = np.concatenate(games)
    seats = samples["game"]["seat"].astype(np.int64)
    agents = seats + MAX_PLAYERS * np.repeat(np.arange(len(games)), [len(part) for part in games])
    rewards = np.zeros(len(samples), np.float32)
    last = len(samples) - 1 - np.unique(agents[::-1], return_index=True)[1]
    rewards[last] = samples["winner"][last] == seats[last]
    values = samples["win_probs"][np.arange(len(samples)), seats]
    samples["advantage"] = compute_gae(agents, rewards, values, 1.0, GAE_LAMBDA)
    return samples


class Learner:
    """AdamW updates of a network by the loss weights and precision of an `ExpertConfig`.

    With `bfloat16` the layers multiply in that precision; weights, losses and optimiser stay
    float32.
    """

    def __init__(
        self, network: Network, boards: Board | GeneratedBoards, config: ExpertConfig
    ) -> None:
        self.network, self._boards, self._config = network, boards, config
        self.optimizer = torch.optim.AdamW(
            network.parameters(), weight_decay=WEIGHT_DECAY, fused=True
        )

    def step(self, samples: np.ndarray, learning_rate: float) -> dict[str, float]:
        """Update the network by a batch of samples (SAMPLE, (N,)); returns losses by name."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad()
        means: dict[str, float] = defaultdict(float)
        for part in split_by_size(samples, self._boards):
            share = len(part) / len(samples)
            loss, scalars = self._losses(part)
            (share * loss).backward()
            for name, value in scalars.items():
                means[name] += share * value
        nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM)
        self.optimizer.step()
        return means

    def _losses(self, samples: np.ndarray) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the loss of samples whose boards have one size, and its parts by name."""
        config = self._config
        batch = make_batch(samples, self._boards, config.value_target_mix, self.network.inputs)
        device = next(self.network.parameters()).device
        rows, masks, policy, win_probs, points, present, actions = (
            torch.from_numpy(array).to(device) for array in batch
        )
        halved = config.precision == "bfloat16"
        with torch.autocast(device.type, torch.bfloat16, enabled=halved):
            outputs = [output.float() for output in self.network.outputs(rows)]
        logits, values, *auxiliary = outputs
        log_probs = mask_logits(logits, masks).log_softmax(dim=1)
        has_value = torch.from_numpy(samples["has_value_target"]).to(device)
        if config.policy_only:
            policy_loss, divergence = _ppo_loss(samples, actions, log_probs, masks)
        else:
            policy_loss, divergence = _imitation_loss(policy, log_probs, masks)
        win_log_probs = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        value_loss = -_mean(expected_log_probs(win_probs, win_log_probs, present), has_value)
        errors = (values[:, MAX_PLAYERS:] - points) * present
        score_loss = _mean(errors.square().sum(dim=1).div(present.sum(dim=1)), has_value)
        loss = policy_loss + config.value_weight * value_loss + config.score_weight * score_loss
        extra = {}
        if auxiliary:
            board = board_at(self._boards, 0)
            final = auxiliary_targets(samples, board, self.network.relative_types)
            final_loss = nn.functional.binary_cross_entropy_with_logits(
                auxiliary[0], torch.from_numpy(final).to(device)
            )
            loss = loss + config.auxiliary_weight * final_loss
            extra["train/auxiliary_loss"] = final_loss.item()
        is_correct = win_log_probs.argmax(dim=1) == win_probs.argmax(dim=1)
        return loss, {
            "train/policy_loss": policy_loss.item(),
            "train/policy_divergence": divergence.item(),
            "train/value_loss": value_loss.item(),
            "train/winner_accuracy": _mean(is_correct.float(), has_value).item(),
            "train/score_loss": score_loss.item(),
            **extra,
        }


def _imitation_loss(
    policy: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy to the policy target, and the Kullback-Leibler divergence from it.

    Both are means over samples with a policy target. policy, log_probs: float32, masks: bool, all
    (N, num_actions).
    """
    has_target = policy.any(dim=1)
    loss = -_mean(expected_log_probs(policy, log_probs, masks), has_target)
    entropy = -_mean(expected_log_probs(policy, policy.log(), masks & (policy > 0)), has_target)
    return loss, (loss - entropy).detach()


def _ppo_loss(
    samples: np.ndarray, actions: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """PPO's clipped loss with an entropy bonus, and the divergence from the policy that played.

    samples: SAMPLE, (N,). actions: int64, (N, 1), taken in them. log_probs: float32,
    (N, num_actions), at temperature 1; play was at POLICY_TEMPERATURE.
    """
    has_value, old_probs, advantages = (
        torch.from_numpy(samples[name].copy()).to(log_probs.device)
        for name in ("has_value_target", "action_prob", "advantage")
    )
    log_probs = (log_probs / POLICY_TEMPERATURE).log_softmax(dim=1)
    # Against weaker opponents every decision has a high advantage, so each group is centred.
    means = _mean(advantages, has_value), _mean(advantages, ~has_value)
    advantages = advantages - torch.where(has_value, *means)
    advantages = advantages / (advantages.square().mean().sqrt() + 1e-8)
    loss, divergence = clipped_policy_loss(
        log_probs.gather(1, actions)[:, 0], old_probs.log(), advantages, CLIP_RANGE
    )
    entropy = -expected_log_probs(log_probs.exp(), log_probs, masks).mean()
    return loss - ENTROPY_WEIGHT * entropy, divergence


def _mean(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Return the mean of the values that are counted, 0 if none is."""
    return torch.where(counted, values, 0.0).sum() / counted.sum().clamp(min=1)
