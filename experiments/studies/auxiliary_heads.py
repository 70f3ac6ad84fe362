"""Auxiliary heads of the study of training targets.

A head is a linear layer on the shared layers of a `busenv.agents.networks.mlp.SeatsMlp` that only
training uses. Reply, soft policy and short-term value are targets of KataGo (Wu 2019, and its later
notes on methods). "final" is the head of `busenv.train.expert_iteration.learner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from busenv import Board
from busenv.agents.networks.inputs import Inputs
from busenv.agents.networks.logits import auxiliary_size
from busenv.agents.networks.mlp import expected_log_probs, mask_logits
from busenv.agents.networks.network import Network
from busenv.core.jit import kernel
from busenv.core.state import MAX_PLAYERS
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.learner import Learner
from busenv.train.expert_iteration.samples import TrainingBatch, make_batch

SHORT_TERM_DECAY = 0.9  # weight of later decisions in the short-term value, per decision
SOFT_POLICY_POWER = 0.25  # exponent of the policy target


class Future(NamedTuple):
    """What follows each of N samples in its game, as far as it was sampled.

    reply: int64, (N,), index of the next decision of another player, or -1. next_round: int64,
    (N,), index of the first decision of the next round, or -1. win_probs: float32, (N, 5), by seat:
    those of later decisions and the winner, averaged with the weights of SHORT_TERM_DECAY.
    """

    reply: np.ndarray
    next_round: np.ndarray
    win_probs: np.ndarray


@kernel
def _write_future(
    samples: np.ndarray, reply: np.ndarray, next_round: np.ndarray, win_probs: np.ndarray
) -> None:
    for i in range(samples.shape[0] - 1, -1, -1):
        sample, game = samples[i], samples[i].game
        # Samples of a game have the same final lines.
        if i + 1 == samples.shape[0] or (samples[i + 1].final_lines != sample.final_lines).any():
            reply[i], next_round[i] = -1, -1
            win_probs[i, sample.winner] = 1.0
            continue
        following = samples[i + 1]
        reply[i] = i + 1 if following.game.seat != game.seat else reply[i + 1]
        next_round[i] = i + 1 if following.game.round != game.round else next_round[i + 1]
        win_probs[i] = win_probs[i + 1]
        if following.policy[0] > 0:  # an opponent's decision has no estimate
            win_probs[i] *= SHORT_TERM_DECAY
            win_probs[i] += (1.0 - SHORT_TERM_DECAY) * following.win_probs


def future_of(samples: np.ndarray) -> Future:
    """Return what follows each sample. samples: SAMPLE, (N,), those of a game one after another."""
    future = Future(
        np.zeros(len(samples), np.int64),
        np.zeros(len(samples), np.int64),
        np.zeros((len(samples), MAX_PLAYERS), np.float32),
    )
    _write_future(samples, *future)
    return future


def by_slot(values: np.ndarray, samples: np.ndarray) -> torch.Tensor:
    """Convert values by seat, (N, 5), to float32 by slot: slot 0 is the seat that decides."""
    players = samples["game"]["players"].astype(np.int64)[:, None]
    slots = np.arange(MAX_PLAYERS)
    seats = (samples["game"]["seat"].astype(np.int64)[:, None] + slots) % players
    turned = np.take_along_axis(values.astype(np.float32), seats, axis=1)
    return torch.from_numpy(np.where(slots < players, turned, np.float32(0)))


class HeadLearner(Learner):
    """A learner whose network has some auxiliary heads of HEADS, or none, in one layer.

    weights: of the heads' losses, by name. samples: SAMPLE, (N,), all that it learns from.
    """

    def __init__(
        self,
        network: Network,
        board: Board,
        config: ExpertConfig,
        *,
        weights: Mapping[str, float],
        samples: np.ndarray,
    ) -> None:
        self._weights = weights
        self._sizes = [HEADS[name].size(board) for name in weights]
        if weights:
            network.auxiliary = nn.Linear(config.width, sum(self._sizes))
        super().__init__(network, board, config)
        self.board, self.samples, self.future = board, samples, future_of(samples)
        self.indices = np.zeros(0, np.int64)  # of the samples of the current batch

    def step_at(self, indices: np.ndarray, learning_rate: float) -> dict[str, float]:
        """Update the network by the samples at indices (int64, (n,)); returns `step`'s result."""
        self.indices = indices
        return self.step(self.samples[indices], learning_rate)

    def auxiliary_loss(
        self, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
    ) -> torch.Tensor:
        loss = torch.zeros(())
        for part, (name, weight) in zip(
            outputs.split(self._sizes, dim=1), self._weights.items(), strict=True
        ):
            loss = loss + weight * HEADS[name].loss(self, part, samples, batch)
        return loss


def _rounds_loss(
    learner: HeadLearner, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
) -> torch.Tensor:
    """Rounds until the end of the game, as the mean of a Poisson distribution."""
    rounds = samples["rounds"].astype(np.float32) - samples["game"]["round"]
    return functional.poisson_nll_loss(outputs[:, 0], torch.from_numpy(rounds))


def _deliveries_loss(
    learner: HeadLearner, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
) -> torch.Tensor:
    """Deliveries of each player before the next round, as means of Poisson distributions."""
    later = learner.future.next_round[learner.indices]
    deliveries = learner.samples["game"]["deliveries"][later].astype(np.int64)
    counts = by_slot(deliveries - samples["game"]["deliveries"], samples)
    counted = torch.from_numpy(batch.present & (later >= 0)[:, None])
    return functional.poisson_nll_loss(outputs[counted], counts[counted])


def _reply_loss(
    learner: HeadLearner, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
) -> torch.Tensor:
    """Policy target of the next decision of another player."""
    reply = learner.future.reply[learner.indices]
    replies = learner.samples[reply[reply >= 0]]
    inputs = Inputs(relative_types=learner.network.relative_types)
    later = make_batch(replies, learner.board, 0.0, inputs)
    return _policy_loss(outputs[torch.from_numpy(reply >= 0)], later.policy, later.masks)


def _soft_policy_loss(
    learner: HeadLearner, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
) -> torch.Tensor:
    """Policy target to the power of SOFT_POLICY_POWER, normalised."""
    soft = batch.policy**SOFT_POLICY_POWER
    return _policy_loss(outputs, soft / np.maximum(soft.sum(axis=1, keepdims=True), 1), batch.masks)


def _short_term_loss(
    learner: HeadLearner, outputs: torch.Tensor, samples: np.ndarray, batch: TrainingBatch
) -> torch.Tensor:
    """Win probabilities a few decisions later."""
    win_probs = by_slot(learner.future.win_probs[learner.indices], samples)
    present = torch.from_numpy(batch.present)
    log_probs = mask_logits(outputs, present).log_softmax(dim=1)
    return -expected_log_probs(win_probs, log_probs, present).mean()


def _policy_loss(outputs: torch.Tensor, policy: np.ndarray, masks: np.ndarray) -> torch.Tensor:
    """Mean cross-entropy of the samples that have a policy. policy: float32, (N, num_actions)."""
    legal = torch.from_numpy(masks)
    log_probs = mask_logits(outputs, legal).log_softmax(dim=1)
    losses = -expected_log_probs(torch.from_numpy(policy), log_probs, legal)
    return losses.sum() / max(int(policy.any(axis=1).sum()), 1)


class Head(NamedTuple):
    """Number of outputs on a board, and loss of outputs (float32, (N, K)) for N samples."""

    size: Callable[[Board], int]
    loss: Callable[[HeadLearner, torch.Tensor, np.ndarray, TrainingBatch], torch.Tensor]


HEADS = {
    "final": Head(auxiliary_size, Learner.auxiliary_loss),
    "rounds": Head(lambda board: 1, _rounds_loss),
    "deliveries": Head(lambda board: MAX_PLAYERS, _deliveries_loss),
    "reply": Head(lambda board: board.num_actions, _reply_loss),
    "soft policy": Head(lambda board: board.num_actions, _soft_policy_loss),
    "short-term value": Head(lambda board: MAX_PLAYERS, _short_term_loss),
}
