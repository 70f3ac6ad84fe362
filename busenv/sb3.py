"""Stable-Baselines3: a VecEnv over a batch of games, with action masks for MaskablePPO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from busenv.batch import Batch


class BusVecEnv(VecEnv):
    """N games, one decision of each a step, whoever's turn it is.

    The observation, mask and reward of a step are those of the seat that acts; `acted` tells which
    that was and `batch.rewards` what every seat was paid. A learner that treats each row as one
    player's trajectory must go by these (train.rollout does).
    """

    render_mode = None

    def __init__(self, num_envs: int, **settings: Any) -> None:
        """num_envs: N. settings: as for `busenv.batch.Batch`."""
        self.batch = Batch(num_envs, same_step=True, **settings)
        size = self.batch.observations.shape[1]
        self.acted = np.zeros(num_envs, np.int64)
        self._rows = np.arange(num_envs)
        self._infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._seed = 0
        super().__init__(
            num_envs,
            spaces.Box(0, 255, (size,), np.uint8),
            spaces.Discrete(self.batch.board.num_actions),
        )

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed of the next reset."""
        self._seed = 0 if seed is None else seed
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        """Begin every game anew."""
        self.batch.reset(self._seed)
        return self.batch.observations

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of the actions of the next step."""
        self._actions = np.ascontiguousarray(actions, np.int64)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one decision in every game; a game that ends begins anew at once."""
        self.acted[:] = self.batch.seats
        self.batch.step(self._actions)
        rewards = self.batch.rewards[self._rows, self.acted]
        return self.batch.observations, rewards, self.batch.over.copy(), self._infos

    def action_masks(self) -> np.ndarray:
        """What is legal: bool, (N, num_actions)."""
        return self.batch.masks

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list:
        """Call a method; the batch answers once for all of its games."""
        return [getattr(self, method_name)(*args, **kwargs)]

    def has_attr(self, attr_name: str) -> bool:
        """Whether the batch has such an attribute."""
        return hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, once for each game."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the batch."""
        setattr(self, attr_name, value)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """No game is wrapped."""
        return [False] * len(list(self._get_indices(indices)))

    def close(self) -> None:
        """Nothing to close."""
