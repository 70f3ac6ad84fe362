"""Whole games played by the learner, and advantages along each seat's own chain of decisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBufferSamples

from busenv.core.jit import kernel


@kernel
def seat_advantages(
    games: np.ndarray,
    seats: np.ndarray,
    paid: np.ndarray,
    totals: np.ndarray,
    values: np.ndarray,
    gamma: float,
    gae_lambda: float,
    advantages: np.ndarray,
) -> None:
    """Generalized advantage estimation (Schulman et al. 2016) for each seat of each game.

    Rows are decisions in the order of time. games, seats: int64, (R,), whose decision it was.
    paid: float64, (R,), what the seat had been paid in its game before. totals: float64, (N, 5),
    what the seats were paid in all. values, advantages: float32, (R,); the last is written.

    A seat's next decision may be many plies later; what it is paid until then, whoever acts, is
    the reward of its present one, and what it is paid after its last one is that one's.
    """
    next_paid = totals.copy()
    next_value = np.zeros(totals.shape)
    next_advantage = np.zeros(totals.shape)
    for row in range(len(games) - 1, -1, -1):
        g, s = games[row], seats[row]
        reward = next_paid[g, s] - paid[row]
        delta = reward + gamma * next_value[g, s] - values[row]
        advantages[row] = delta + gamma * gae_lambda * next_advantage[g, s]
        next_paid[g, s] = paid[row]
        next_value[g, s] = values[row]
        next_advantage[g, s] = advantages[row]


class Lesson(NamedTuple):
    """Decisions as a teacher sees them.

    observations: uint8, (N, size). masks: bool, shares: float32, both (N, num_actions).
    returns: float32, (N,).
    """

    observations: torch.Tensor
    masks: torch.Tensor
    shares: torch.Tensor
    returns: torch.Tensor


class Rollout:
    """Decisions to learn from, as MaskablePPO takes them: `get` gives minibatches.

    With a teacher, `lessons` gives them with what it thinks of each action.

    Filled step by step with `add`, then closed with `finish`. Rows are in the order of time.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._steps: list[tuple[torch.Tensor, ...]] = []
        self._owners: list[tuple[np.ndarray, ...]] = []
        self._shares: list[torch.Tensor] = []

    def add(
        self,
        games: np.ndarray,
        seats: np.ndarray,
        totals: np.ndarray,
        observations: torch.Tensor,
        masks: torch.Tensor,
        actions: torch.Tensor,
        values: torch.Tensor,
        log_probs: torch.Tensor,
        shares: torch.Tensor | None = None,
    ) -> None:
        """Add one decision of each of some games.

        games, seats: int64, (n,), whose decisions they are. totals: float64, (N, 5), what the seats
        of all games have been paid so far. The tensors have n rows. shares: of a teacher.
        """
        self._owners.append((games, seats, totals[games, seats]))
        self._steps.append((observations, masks, actions, values, log_probs))
        if shares is not None:
            self._shares.append(shares)

    def finish(self, totals: np.ndarray, gamma: float, gae_lambda: float) -> None:
        """The games are over: settle advantages and returns."""
        games, seats, paid = (np.concatenate(parts) for parts in zip(*self._owners, strict=True))
        self.observations, self.masks, self.actions, values, self.log_probs = (
            torch.cat(parts) for parts in zip(*self._steps, strict=True)
        )
        self.values = values.cpu().numpy()
        self.advantages = np.empty_like(self.values)
        seat_advantages(games, seats, paid, totals, self.values, gamma, gae_lambda, self.advantages)
        self.returns = self.values + self.advantages
        self._taught = torch.cat(self._shares) if self._shares else None
        self._steps, self._owners, self._shares = [], [], []

    def __len__(self) -> int:
        return len(self.actions)

    def get(self, batch_size: int) -> Iterator[MaskableRolloutBufferSamples]:
        """All decisions once, in random order, in minibatches of nearly equal size."""
        values, advantages, returns = map(
            self._tensor, (self.values, self.advantages, self.returns)
        )
        for rows in self._chunks(batch_size):
            yield MaskableRolloutBufferSamples(
                self.observations[rows],
                self.actions[rows],
                values[rows],
                self.log_probs[rows],
                advantages[rows],
                returns[rows],
                self.masks[rows],
            )

    def lessons(self, batch_size: int) -> Iterator[Lesson]:
        """All decisions once, likewise, of games with a teacher."""
        assert self._taught is not None
        returns = self._tensor(self.returns)
        for rows in self._chunks(batch_size):
            yield Lesson(
                self.observations[rows], self.masks[rows], self._taught[rows], returns[rows]
            )

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.actions.device)

    def _chunks(self, batch_size: int) -> tuple[torch.Tensor, ...]:
        """All rows in random order, in pieces of nearly equal size."""
        return self._tensor(self._rng.permutation(len(self))).chunk(-(-len(self) // batch_size))
