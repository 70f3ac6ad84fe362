"""PPO's rollout: the learner's decisions in whole games, with advantages along each seat's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBufferSamples

from busenv.core.jit import kernel
from busenv.train.ppo_selfplay import Decisions


@kernel
def seat_advantages(
    games: np.ndarray,
    seats: np.ndarray,
    rewards_before: np.ndarray,
    cumulative_rewards: np.ndarray,
    values: np.ndarray,
    gamma: float,
    gae_lambda: float,
    advantages: np.ndarray,
) -> None:
    """Generalized advantage estimation (Schulman et al. 2016) for each seat of each game.

    Rows are decisions in the order of time. games, seats: int64, (R,), whose decision it was.
    rewards_before: float64, (R,), the sum of the seat's rewards in its game before the decision.
    cumulative_rewards: float64, (N, 5), that of each seat at the end of its game. values,
    advantages: float32, (R,); the last is written.

    A seat's next decision may be many plies later. What it is rewarded with until then, whoever
    acts, is the reward of its present decision; what comes after its last one is that one's.
    """
    next_rewards = cumulative_rewards.copy()
    next_value = np.zeros(cumulative_rewards.shape)
    next_advantage = np.zeros(cumulative_rewards.shape)
    for row in range(len(games) - 1, -1, -1):
        g, s = games[row], seats[row]
        reward = next_rewards[g, s] - rewards_before[row]
        delta = reward + gamma * next_value[g, s] - values[row]
        advantages[row] = delta + gamma * gae_lambda * next_advantage[g, s]
        next_rewards[g, s] = rewards_before[row]
        next_value[g, s] = values[row]
        next_advantage[g, s] = advantages[row]


class ImitationBatch(NamedTuple):
    """Decisions with what a teacher would do.

    observations: uint8, (N, size). masks: bool, (N, num_actions). teacher_probabilities: float32,
    (N, num_actions), of each action. returns: float32, (N,).
    """

    observations: torch.Tensor
    masks: torch.Tensor
    teacher_probabilities: torch.Tensor
    returns: torch.Tensor


class Rollout:
    """Decisions to learn from, as MaskablePPO takes them: `get` gives minibatches.

    With a teacher, `imitation_batches` gives them with the teacher's probabilities.

    decisions: of games that are over. cumulative_rewards: float64, (N, 5), of all seats of the
    games. rng: the order of minibatches comes from it. device: where they are learned from.
    """

    def __init__(
        self,
        decisions: Decisions,
        cumulative_rewards: np.ndarray,
        gamma: float,
        gae_lambda: float,
        rng: np.random.Generator,
        device: torch.device,
    ) -> None:
        self._rng, self._device = rng, device
        self.values = decisions.values
        self.observations, self.masks, self.actions, self.log_probs = map(
            self._tensor,
            (decisions.observations, decisions.masks, decisions.actions, decisions.log_probs),
        )
        self.advantages = np.empty_like(self.values)
        seat_advantages(
            decisions.games, decisions.seats, decisions.rewards_before, cumulative_rewards,
            self.values, gamma, gae_lambda, self.advantages,
        )  # fmt: skip
        self.returns = self.values + self.advantages
        self.teacher_probabilities = self._tensor(decisions.teacher_probabilities)

    def __len__(self) -> int:
        return len(self.actions)

    def get(self, batch_size: int) -> Iterator[MaskableRolloutBufferSamples]:
        """All decisions once, in random order, in minibatches of nearly equal size."""
        values, advantages, returns = map(
            self._tensor, (self.values, self.advantages, self.returns)
        )
        for rows in self._minibatches(batch_size):
            yield MaskableRolloutBufferSamples(
                self.observations[rows],
                self.actions[rows],
                values[rows],
                self.log_probs[rows],
                advantages[rows],
                returns[rows],
                self.masks[rows],
            )

    def imitation_batches(self, batch_size: int) -> Iterator[ImitationBatch]:
        """All decisions once, likewise, of games with a teacher."""
        returns = self._tensor(self.returns)
        for rows in self._minibatches(batch_size):
            yield ImitationBatch(
                self.observations[rows],
                self.masks[rows],
                self.teacher_probabilities[rows],
                returns[rows],
            )

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)

    def _minibatches(self, batch_size: int) -> tuple[torch.Tensor, ...]:
        """The indices of all rows in random order, in pieces of nearly equal size."""
        return self._tensor(self._rng.permutation(len(self))).chunk(-(-len(self) // batch_size))
