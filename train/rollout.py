"""Advantages along each seat's own chain of decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer

from busenv.core.cache import kernel
from busenv.core.layout import MAX_PLAYERS
from busenv.sb3 import BusVecEnv


@kernel
def seat_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    seats: np.ndarray,
    over: np.ndarray,
    last_values: np.ndarray,
    last_seats: np.ndarray,
    gamma: float,
    gae_lambda: float,
    out: np.ndarray,
) -> None:
    """Generalized advantage estimation (Schulman et al. 2016) for each seat of each game.

    rewards: (T, N, 5), by seat. values, seats, over: (T, N), of the seat that decided. last_values,
    last_seats: (N,), of the decision after the last. out: (T, N).

    A seat's next decision may be many plies later; what it is paid until then belongs to its
    present one. Where the rollout ends before a seat decides again, its last decision there tells
    nothing yet and gets advantage 0.
    """
    steps, games = values.shape
    for i in range(games):
        pay = np.zeros(MAX_PLAYERS)
        next_value = np.zeros(MAX_PLAYERS)
        next_advantage = np.zeros(MAX_PLAYERS)
        known = np.zeros(MAX_PLAYERS, np.bool_)
        known[last_seats[i]] = True
        next_value[last_seats[i]] = last_values[i]
        for t in range(steps - 1, -1, -1):
            if over[t, i]:
                pay[:] = 0.0
                next_value[:] = 0.0
                next_advantage[:] = 0.0
                known[:] = True
            for seat in range(MAX_PLAYERS):
                pay[seat] += rewards[t, i, seat]
            seat = seats[t, i]
            advantage = 0.0
            if known[seat]:
                delta = pay[seat] + gamma * next_value[seat] - values[t, i]
                advantage = delta + gamma * gae_lambda * next_advantage[seat]
            out[t, i] = advantage
            pay[seat] = 0.0
            next_value[seat] = values[t, i]
            next_advantage[seat] = advantage
            known[seat] = True


class SeatRolloutBuffer(MaskableRolloutBuffer):
    """A rollout of games in which every seat learns (see `seat_advantages`)."""

    def __init__(self, *args: Any, env: BusVecEnv, **kwargs: Any) -> None:
        self._env = env
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        super().reset()
        shape = (self.buffer_size, self.n_envs)
        self.seats = np.zeros(shape, np.int64)
        self.seat_rewards = np.zeros((*shape, MAX_PLAYERS), np.float32)

    def add(self, *args: Any, **kwargs: Any) -> None:
        self.seats[self.pos] = self._env.acted
        self.seat_rewards[self.pos] = self._env.batch.rewards
        super().add(*args, **kwargs)

    def compute_returns_and_advantage(self, last_values: torch.Tensor, dones: np.ndarray) -> None:
        over = np.concatenate([self.episode_starts[1:], dones[None]]).astype(np.bool_)
        seat_advantages(
            self.seat_rewards,
            self.values,
            self.seats,
            over,
            last_values.cpu().numpy().flatten(),
            self._env.batch.seats,
            self.gamma,
            self.gae_lambda,
            self.advantages,
        )
        self.returns = self.advantages + self.values
