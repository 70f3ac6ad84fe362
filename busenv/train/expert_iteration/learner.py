"""Updates of the network from training samples: losses of policy, winner and final points.

The policy learns by cross-entropy from the policy that a search improved.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.core.state import MAX_PLAYERS
from busenv.game.board_specs import GeneratedBoards
from busenv.networks.network import Network
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.samples import (
    make_batch,
    split_by_size,
)

MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


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
        batch = make_batch(samples, self._boards, config.value_target_mix, self.network.inputs)
        rows, masks, policy, win_probs, points, present = map(torch.from_numpy, batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=config.precision == "bfloat16"):
            logits, values = (output.float() for output in self.network(rows))
        log_probs = mask_logits(logits, masks).log_softmax(dim=1)
        count = int(batch_samples["policy"].any(axis=1).sum())
        policy_loss, scalars = _imitation_loss(policy, log_probs, masks, count=count, share=share)
        win_log_probs = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        win_losses = -expected_log_probs(win_probs, win_log_probs, present)
        value_loss = win_losses.sum() / len(batch_samples)
        errors = (values[:, MAX_PLAYERS:] - points) * present
        squares = errors.square().sum(dim=1).div(present.sum(dim=1))
        score_loss = squares.sum() / len(batch_samples)
        loss = policy_loss + config.value_weight * value_loss + config.score_weight * score_loss
        is_correct = win_log_probs.argmax(dim=1) == win_probs.argmax(dim=1)
        return loss, {
            "train/policy_loss": policy_loss.item(),
            "train/value_loss": value_loss.item(),
            "train/winner_accuracy": is_correct.sum().item() / len(batch_samples),
            "train/score_loss": score_loss.item(),
            **scalars,
        }


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
        "train/entropy": share * entropy.item(),
        "train/policy_divergence": divergence.item(),
    }


def _mean(values: torch.Tensor, counted: torch.Tensor, count: int) -> torch.Tensor:
    """Return the sum of the values that are counted, divided by their number in the batch."""
    return torch.where(counted, values, 0.0).sum() / max(count, 1)


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
