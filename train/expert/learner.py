"""Learn from rows: the policy that a search improved, who won, how many points each seat made."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from busenv import Board
from busenv.agents.neural.networks import SeatsMlp, expected_log_probs, mask_logits
from busenv.core.state import MAX_PLAYERS
from busenv.train.expert.rows import unpack

MAX_GRAD_NORM = 1.0
WEIGHT_DECAY = 1e-4


class Learner:
    """Steps of AdamW on a network that tells of every seat.

    search_share: of what the search thought in the targets of winning. win_weight,
    points_weight: of winning and of the points in the loss, beside the policy, which weighs 1 and
    whose loss is the mean over rows that have one. precision: "float32", or "bfloat16", in which
    layers are multiplied then (weights, losses and the optimiser keep float32).
    """

    def __init__(
        self,
        network: SeatsMlp,
        board: Board,
        search_share: float,
        win_weight: float,
        points_weight: float,
        precision: str = "float32",
    ) -> None:
        self.network, self._board = network, board
        self._search_share = search_share
        self._win_weight, self._points_weight = win_weight, points_weight
        self._halved = precision == "bfloat16"
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
        taught = policy.any(dim=1).sum().clamp(min=1)  # rows that have a policy
        policy_loss = -expected_log_probs(policy, log_probs, masks).sum() / taught
        wins = mask_logits(values[:, :MAX_PLAYERS], present).log_softmax(dim=1)
        win_loss = -expected_log_probs(chances, wins, present).mean()
        off = (values[:, MAX_PLAYERS:] - points) * present
        points_loss = off.square().sum(dim=1).div(present.sum(dim=1)).mean()
        loss = policy_loss + self._win_weight * win_loss + self._points_weight * points_loss
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM)
        self.optimizer.step()
        with torch.no_grad():
            known = expected_log_probs(policy, policy.log(), masks & (policy > 0)).sum() / taught
            surprise = policy_loss + known
            right = (wins.argmax(dim=1) == chances.argmax(dim=1)).float().mean()
        return {
            "train/policy_loss": policy_loss.item(),
            "train/policy_divergence": surprise.item(),
            "train/win_loss": win_loss.item(),
            "train/winner_found": right.item(),
            "train/points_loss": points_loss.item(),
        }
