"""Updates of the network from training samples: losses of policy, winner, final points, and of the
lines and buildings at the end of the game, which an auxiliary head predicts in training only.

The policy learns by cross-entropy from the policy that a search improved, or, without a search, by
PPO (Schulman et al. 2017) from advantages.
"""

from __future__ import annotations

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
from busenv.train.expert_iteration.samples import (
    TrainingBatch,
    auxiliary_targets,
    make_batch,
    split_by_size,
)
from busenv.train.ppo import clipped_policy_loss, trajectory_advantages

CLIP_RANGE = 0.2  # of PPO's probability ratio
ENTROPY_COEF = 0.005  # in PPO's loss
GAE_LAMBDA = 0.95
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


def add_advantages(games: list[np.ndarray]) -> np.ndarray:
    """Concatenate the samples (SAMPLE, (n,)) of games, with the advantages of their actions.

    A seat's decisions are a trajectory whose values are its win probabilities. The reward is 1 for
    the winner, at the end. Advantages are those of `busenv.train.ppo.trajectory_advantages`.
    """
    samples = np.concatenate(games)
    seats = samples["game"]["seat"].astype(np.int64)
    game_numbers = np.repeat(np.arange(len(games)), [len(part) for part in games])
    trajectories = MAX_PLAYERS * game_numbers + seats
    rewards = np.zeros(len(samples), np.float32)
    last = len(samples) - 1 - np.unique(trajectories[::-1], return_index=True)[1]
    rewards[last] = samples["winner"][last] == seats[last]
    values = samples["win_probs"][np.arange(len(samples)), seats]
    samples["advantage"] = trajectory_advantages(trajectories, rewards, values, 1.0, GAE_LAMBDA)
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
        """Update the network by a batch of samples (SAMPLE, (N,)); returns statistics by name."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad()
        if self._config.policy_only:
            samples = samples.copy()
            samples["advantage"] = _normalised_advantages(samples)
        losses: dict[str, float] = {}
        for part in split_by_size(samples, self._boards):
            loss, scalars = self._losses(part, samples)
            loss.backward()
            losses = {name: losses.get(name, 0.0) + value for name, value in scalars.items()}
        grad_norm = nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM)
        self.optimizer.step()
        return losses | {"train/grad_norm": float(grad_norm), "train/learning_rate": learning_rate}

    def _losses(
        self, samples: np.ndarray, batch_samples: np.ndarray
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return what samples contribute to the loss of a batch, and to its parts by name.

        samples: those of the batch whose boards have one size.
        """
        config, share = self._config, len(samples) / len(batch_samples)
        num_values = int(batch_samples["has_value_target"].sum())
        batch = make_batch(samples, self._boards, config.value_target_mix, self.network.inputs)
        rows, masks, policy, win_probs, points, present, actions = map(torch.from_numpy, batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bfloat16"):
            outputs = [output.float() for output in self.network.outputs(rows)]
        logits, values, *auxiliary = outputs
        log_probs = mask_logits(logits, masks).log_softmax(dim=1)
        if config.policy_only:
            policy_loss, scalars = _ppo_loss(samples, actions, log_probs, masks=masks, share=share)
        else:
            count = int(batch_samples["policy"].any(axis=1).sum())
            policy_loss, scalars = _imitation_loss(
                policy, log_probs, masks, count=count, share=share
            )
        has_value = torch.from_numpy(samples["has_value_target"])
        win_log_probs = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        win_losses = -expected_log_probs(win_probs, win_log_probs, present)
        value_loss = _mean(win_losses, has_value, num_values)
        errors = (values[:, MAX_PLAYERS:] - points) * present
        squares = errors.square().sum(dim=1).div(present.sum(dim=1))
        score_loss = _mean(squares, has_value, num_values)
        loss = policy_loss + config.value_weight * value_loss + config.score_weight * score_loss
        if auxiliary:
            auxiliary_loss = self.auxiliary_loss(auxiliary[0], samples, batch)
            loss = loss + share * config.auxiliary_weight * auxiliary_loss
            scalars["train/auxiliary_loss"] = share * auxiliary_loss.item()
        is_correct = win_log_probs.argmax(dim=1) == win_probs.argmax(dim=1)
        return loss, {
            "train/policy_loss": policy_loss.item(),
            "train/value_loss": value_loss.item(),
            "train/winner_accuracy": _mean(is_correct.float(), has_value, num_values).item(),
            "train/score_loss": score_loss.item(),
            **scalars,
        }

    def auxiliary_loss(
        self, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
    ) -> torch.Tensor:
        """Return the mean loss of the auxiliary head's outputs (float32, (N, K)) for N samples.

        batch: the samples as inputs and targets.
        """
        board = board_at(self._boards, 0)
        final = auxiliary_targets(samples, board, self.network.relative_types)
        return nn.functional.binary_cross_entropy_with_logits(outputs, torch.from_numpy(final))


def _imitation_loss(
    policy: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor, *, count: int, share: float
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the cross-entropy to the policy target, and statistics by name.

    policy, log_probs: float32, masks: bool, (N, num_actions). count: samples of the batch with a
    policy target. share: of the N samples in the batch.
    """
    has_target = policy.any(dim=1)
    loss = -_mean(expected_log_probs(policy, log_probs, masks), has_target, count)
    with torch.no_grad():  # only logged
        negative_entropies = expected_log_probs(policy, policy.log(), masks & (policy > 0))
        divergence = loss + _mean(negative_entropies, has_target, count)  # Kullback-Leibler
        entropy = -expected_log_probs(log_probs.exp(), log_probs, masks).mean()
    return loss, {
        "train/entropy_loss": -share * entropy.item(),
        "train/policy_divergence": divergence.item(),
    }


def _ppo_loss(
    samples: np.ndarray,
    actions: torch.Tensor,
    log_probs: torch.Tensor,
    *,
    masks: torch.Tensor,
    share: float,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the clipped loss of the policy minus the entropy bonus, and statistics by name.

    samples: SAMPLE, (N,), with normalised advantages. actions: int64, (N, 1), taken in them.
    log_probs: float32, masks: bool, (N, num_actions). share: of the N samples in the batch.
    """
    log_probs = (log_probs / POLICY_TEMPERATURE).log_softmax(dim=1)  # as in self-play
    entropy = -expected_log_probs(log_probs.exp(), log_probs, masks).mean()
    old_probs, advantages = (
        torch.from_numpy(samples[name].copy()) for name in ("action_prob", "advantage")
    )
    taken = log_probs.gather(1, actions)[:, 0]
    loss, approx_kl, clip_fraction = clipped_policy_loss(
        taken, old_probs.log(), advantages, CLIP_RANGE
    )
    return share * (loss - ENTROPY_COEF * entropy), {
        "train/entropy_loss": -share * entropy.item(),
        "train/approx_kl": share * approx_kl.item(),
        "train/clip_fraction": share * clip_fraction.item(),
    }


def _normalised_advantages(samples: np.ndarray) -> np.ndarray:
    """Return the advantages of a batch (SAMPLE, (N,)), with a root mean square of 1.

    Against weaker opponents every decision has a high advantage, so games with and without
    opponents, which differ in `has_value_target`, are centred separately.
    """
    advantages = samples["advantage"].copy()
    for group in (samples["has_value_target"], ~samples["has_value_target"]):
        if group.any():
            advantages[group] -= advantages[group].mean()
    normalised: np.ndarray = advantages / (np.sqrt(np.square(advantages).mean()) + 1e-8)
    return normalised


def _mean(values: torch.Tensor, counted: torch.Tensor, count: int) -> torch.Tensor:
    """Return the sum of the values that are counted, divided by their number in the batch."""
    return torch.where(counted, values, 0.0).sum() / max(count, 1)
