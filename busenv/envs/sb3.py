"""Stable-Baselines3: a VecEnv over a batch of games, with action masks for MaskablePPO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from busenv.batch import Batch
from busenv.observation import spaces_of


class BusVecEnv(VecEnv):
    """N games, one decision of each a step; a game that ends begins anew at once.

    With an opponent ("random" or "greedy", played in compiled code) each row is one learner's seat,
    as Stable-Baselines3 takes it to be: MaskablePPO learns from it as it is.

        model = MaskablePPO("MlpPolicy", BusVecEnv(64, opponent="greedy"))

    Without one every decision of every game comes up, whoever's turn it is. The observation, mask
    and reward of a step are then those of the seat that acts; `acted` tells which that was and
    `batch.rewards` what every seat was paid. A learner that treats each row as one player's
    trajectory must go by these, as `busenv.train.rollout` does.

    `infos` hold `{"episode": {"r", "l", "t"}}` for games that ended, r being the reward of the
    learner (without an opponent, of the seat that acted last) over the game, l its decisions.

    Observations are uint8 (N, size), rewards float32 (N,), ends bool (N,). The observation of a
    game that has just ended is the first one of the game begun in its place.

    num_envs: N. settings: as for `busenv.batch.Batch`, with its errors.
    """

    render_mode = None

    def __init__(self, num_envs: int, **settings: Any) -> None:
        self.batch = Batch(num_envs, same_step=True, **settings)
        self.acted = np.zeros(num_envs, np.int64)
        self._rows = np.arange(num_envs)
        self._returns = np.zeros_like(self.batch.rewards)
        self._lengths = np.zeros(num_envs, np.int64)
        self._no_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._seed = 0
        super().__init__(num_envs, *spaces_of(self.batch.board))

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed of the next reset, 0 to 2**64 - 1; None is 0. Those after it go on from there."""
        self._seed = 0 if seed is None else seed
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        """Begin every game anew. Returns observations, uint8 (N, size)."""
        self.batch.reset(self._seed)
        self._seed = int(np.random.default_rng(self._seed).integers(2**63))
        self._returns[:] = 0
        self._lengths[:] = 0
        return self.batch.observations

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of the actions of the next step: whole numbers, (N,)."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one decision in every game. Returns observations, rewards, ends and infos.

        Raises IllegalActionError or ValueError as `busenv.batch.Batch.step`, nothing changed.
        """
        acted = self.batch.seats.copy()
        self.batch.step(self._actions)
        self.acted[:] = acted
        self._returns += self.batch.rewards
        self._lengths += 1
        rewards = self.batch.rewards[self._rows, self.acted]
        over = self.batch.over.copy()
        return self.batch.observations, rewards, over, self._infos(np.flatnonzero(over))

    def _infos(self, ended: np.ndarray) -> list[dict[str, Any]]:
        """One dict a game, all of them empty and the same objects but for games that ended."""
        if not ended.size:
            return self._no_infos
        infos = self._no_infos.copy()
        for i in ended.tolist():
            total = float(self._returns[i, self.acted[i]])
            infos[i] = {"episode": {"r": total, "l": int(self._lengths[i]), "t": 0.0}}
        self._returns[ended] = 0
        self._lengths[ended] = 0
        return infos

    def action_masks(self) -> np.ndarray:
        """What is legal: bool, (N, num_actions); overwritten by the next step."""
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
