"""Learn from rows: the policy that a search improved, or what a policy without one found better
than it expected; who won; how many points each seat made.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.agents.networks.mlp import SeatsMlp, expected_log_probs, mask_logits
from busenv.core.state import MAX_PLAYERS
from busenv.train.expert_iteration.policy_selfplay import TEMPERATURE
from busenv.train.expert_iteration.training_rows import unpack

CLIP = 0.2  # of the ratio of policies (Schulman et al. 2017)
ENTROPY = 0.005  # weight of the policy's entropy beside its gain, when it plays alone
MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


class Learner:
    """Steps of AdamW on a network that tells of every seat.

    search_share: of what the search thought in the targets of winning. win_weight,
    points_weight: of winning and of the points in the loss, beside the policy, which weighs 1 and
    whose loss is the mean over rows that have one. precision: "float32", or "bfloat16", in which
    layers are multiplied then (weights, losses and the optimiser keep float32). alone: whether rows
    are those of `busenv.train.expert_iteration.policy_selfplay`, from whose advantages the policy learns by PPO
    (Schulman et al. 2017), and not from the policy of a search.
    """

    def __init__(
        self,
        network: SeatsMlp,
        board: Board,
        search_share: float,
        win_weight: float,
        points_weight: float,
        precision: str = "float32",
        alone: bool = False,
    ) -> None:
        self.network, self._board = network, board
        self._search_share = search_share
        self._win_weight, self._points_weight = win_weight, points_weight
        self._halved, self._alone = precision == "bfloat16", alone
        self.optimizer = torch.optim.AdamW(network.parameters(), weight_decay=WEIGHT_DECAY)

    def step(self, rows: np.ndarray, learning_rate: float) -> dict[str, float]:
        """Learn from some rows (ROW, (N,)); losses by name."""
        plan = self.network.plan.cpu().numpy()
        examples = unpack(rows, self._board, self._search_share, plan)
        device = next(self.network.parameters()).device
        inputs, masks, policy, chances, points, present = (
            torch.from_numpy(array).to(device) for array in examples
        )
        with torch.autocast(device.type, torch.bfloat16, enabled=self._halved):
            logits, values = (output.float() for output in self.network(inputs))
        log_probs = mask_logits(logits, masks).log_softmax(dim=1)
        told = torch.from_numpy(rows["telling"]).to(device)
        if self._alone:
            policy_loss, divergence = _gain_loss(rows, told, log_probs, masks)
        else:
            policy_loss, divergence = _following_loss(policy, log_probs, masks)
        wins = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        win_loss = -_mean(expected_log_probs(chances, wins, present), told)
        off = (values[:, MAX_PLAYERS:] - points) * present
        points_loss = _mean(off.square().sum(dim=1).div(present.sum(dim=1)), told)
        loss = policy_loss + self._win_weight * win_loss + self._points_weight * points_loss
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM)
        self.optimizer.step()
        right = _mean((wins.argmax(dim=1) == chances.argmax(dim=1)).float(), told)
        return {
            "train/policy_loss": policy_loss.item(),
            "train/policy_divergence": divergence.item(),
            "train/value_loss": win_loss.item(),
            "train/winner_accuracy": right.item(),
            "train/score_loss": points_loss.item(),
        }


def _following_loss(
    policy: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy to the policy to be learned, the mean over rows that have one, and how far it
    is from the network's (Kullback and Leibler). All float32 but masks, bool; (N, num_actions)."""
    taught = policy.any(dim=1)
    loss = -_mean(expected_log_probs(policy, log_probs, masks), taught)
    known = _mean(expected_log_probs(policy, policy.log(), masks & (policy > 0)), taught)
    return loss, (known + loss).detach()


def _gain_loss(
    rows: np.ndarray, told: torch.Tensor, log_probs: torch.Tensor, masks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The clipped loss of PPO of a policy that is drawn from at TEMPERATURE, and how far it is from
    the one that played. rows: ROW, (N,). told: bool, (N,), whose games were without opponents.
    log_probs, masks: float32 and bool, (N, num_actions)."""
    taken, chance, gain = (
        torch.from_numpy(array.copy()).to(log_probs.device)
        for array in (rows["actions"][:, :1].astype(np.int64), rows["chance"], rows["advantage"])
    )
    now = (log_probs / TEMPERATURE).log_softmax(dim=1)
    further = now.gather(1, taken)[:, 0] - chance.log()
    ratio = further.exp()
    # Who sits among bots wins more than is expected of it, whatever it does.
    gain = gain - torch.where(told, _mean(gain, told), _mean(gain, ~told))
    gain = gain / (gain.square().mean().sqrt() + 1e-8)
    kept = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain)
    entropy = -expected_log_probs(now.exp(), now, masks)
    return -(kept + ENTROPY * entropy).mean(), (ratio - 1 - further).mean().detach()


def _mean(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """The mean of the values that count; 0 where none does."""
    return torch.where(counted, values, 0.0).sum() / counted.sum().clamp(min=1)
