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
from busenv.train.expert_iteration.expert_config import FitSettings
from busenv.train.expert_iteration.samples import make_batch, split_by_size
from busenv.train.policies import ILLEGAL_LOGIT, uses_bfloat16

MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


class Learner:
    """AdamW updates of a network by the loss weights and precision of the settings.

    In bfloat16, only the layers multiply in that precision.
    """

    def __init__(
        self, network: Network, boards: Board | GeneratedBoards, config: FitSettings
    ) -> None:
        self.network, self._boards, self._config = network, boards, config
        self._bfloat16 = uses_bfloat16(config.precision, torch.device("cpu"))
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
        config, count = self._config, len(batch_samples)
        batch = make_batch(samples, self._boards, config.value_target_mix, self.network.inputs)
        rows, masks, policy, win_probs, points, present = map(torch.from_numpy, batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._bfloat16):
            logits, values = (output.float() for output in self.network(rows))
        log_probs = _masked_log_probs(logits, masks)
        has_target = policy.any(dim=1)
        num_targets = max(int(batch_samples["policy"].any(axis=1).sum()), 1)
        cross_entropy = -(policy * log_probs).sum(dim=1)
        policy_loss = (cross_entropy * has_target).sum() / num_targets
        win_log_probs = _masked_log_probs(values[:, :MAX_PLAYERS], present)
        value_loss = -(win_probs * win_log_probs).sum() / count
        errors = (values[:, MAX_PLAYERS:] - points) * present
        score_loss = errors.square().sum(dim=1).div(present.sum(dim=1)).sum() / count
        loss = policy_loss + config.value_weight * value_loss + config.score_weight * score_loss
        with torch.no_grad():  # only logged
            entropy = -(log_probs.exp() * log_probs).sum() / count
            target_entropy = -torch.xlogy(policy, policy).sum() / num_targets
            is_correct = win_log_probs.argmax(dim=1) == win_probs.argmax(dim=1)
        return loss, {
            "train/policy_loss": policy_loss.item(),
            "train/policy_divergence": (policy_loss - target_entropy).item(),  # Kullback-Leibler
            "train/value_loss": value_loss.item(),
            "train/winner_accuracy": is_correct.sum().item() / count,
            "train/score_loss": score_loss.item(),
            "train/entropy": entropy.item(),
        }


def _masked_log_probs(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities, with 0 as the probability of what is masked out."""
    return logits.masked_fill(~masks, ILLEGAL_LOGIT).log_softmax(dim=1)
