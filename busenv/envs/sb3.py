"""Stable-Baselines3: a VecEnv over a batch of games, with action masks for MaskablePPO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import DTypeLike
from stable_baselines3.common.vec_env import VecEnv

from busenv.batch.batch import Batch
from busenv.batch.batch_opponents import Opponents
from busenv.envs.observation_format import Illegal, as_observation_format
from busenv.game.board import Board
from busenv.game.rules import Rules
from busenv.rewards import Reward

Observations = np.ndarray | dict[str, np.ndarray]


class BusVecEnv(VecEnv):
    """N games, one decision of each a step; a game that ends begins anew at once.

    Each row is one learner's seat among opponents, as Stable-Baselines3 takes it to be, and its
    rewards are that seat's: MaskablePPO learns from it as it is.

        model = MaskablePPO("MlpPolicy", BusVecEnv(64, opponents="greedy"))

    With `opponents=None` every decision of every game comes up, whoever's turn it is. A row is then
    no one seat's trajectory, and Stable-Baselines3's own algorithms would credit one seat's
    decisions with another's rewards: it is for learners of your own, which go by `acted` (int64
    (N,), who took the last step's decisions), `batch.seats` (who is to decide) and `batch.rewards`
    (float32 (N, 5), what every seat was paid).

    Observations are in the form that `observation_keys` and `observation_dtype` ask for, rewards
    float32 (N,), ends bool (N,). The observation of a game that has just ended is the first one of
    the game begun in its place. `infos` have a dict a game: where one ended "terminal_observation"
    and `"episode": {"r", "l", "t"}`, r being what the seat that acted last was paid over the game,
    l its length in steps; with illegal="lose" or "replace" also "illegal_action", np.bool_.

    num_envs: N. copy: True: all that is returned is the caller's own. False, faster: observations,
    ends and masks are views of buffers that the next step overwrites, to be read only; it is not
    for the library's own algorithms, which keep observations. The other settings are those of
    `busenv.envs.vector.BusVectorEnv`, with its errors.
    """

    render_mode = None

    def __init__(
        self,
        num_envs: int,
        num_players: int | Sequence[int] = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        opponents: Opponents = "random",
        learner_seat: int | None = None,
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
        threads: int = 1,
        copy: bool = True,
    ) -> None:
        self.batch = Batch(
            num_envs,
            num_players,
            rules,
            board,
            reward,
            opponents,
            learner_seat,
            illegal,
            AutoresetMode.SAME_STEP,
            threads,
        )
        self._copy, self._illegal = copy, illegal
        self._form = as_observation_format(self.batch.board, observation_keys, observation_dtype)
        self._returns = np.zeros_like(self.batch.rewards)
        self._lengths = np.zeros(num_envs, np.int64)
        self._seed = 0
        super().__init__(num_envs, self._form.observation_space, self._form.action_space)

    @property
    def acted(self) -> np.ndarray:
        """Who took the last step's decisions: int64, (N,)."""
        return self._own(self.batch.acted)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed of the next reset, 0 to 2**64 - 1; None is 0. Those after it go on from there."""
        self._seed = 0 if seed is None else seed
        return [seed] * self.num_envs

    def reset(self) -> Observations:
        """Begin every game anew. Returns observations."""
        self.batch.reset(self._seed)
        self._seed = int(np.random.default_rng(self._seed).integers(2**63))
        self._returns[:] = 0
        self._lengths[:] = 0
        return self._seen()

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of the actions of the next step: whole numbers, (N,)."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[Observations, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one decision in every game. Returns observations, rewards, ends and infos.

        Raises IllegalActionError, ValueError or AgentError as `busenv.Batch.step`, nothing changed.
        """
        batch = self.batch
        batch.step(self._actions)
        self._returns += batch.rewards
        self._lengths += 1
        rewards = batch.paid.astype(np.float32)
        return self._seen(), rewards, self._own(batch.over), self._infos()

    def _infos(self) -> list[dict[str, Any]]:
        """One dict a game."""
        batch = self.batch
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self._illegal != "raise":
            for info, wrong in zip(infos, batch.wrong, strict=True):
                info["illegal_action"] = wrong
        ended = np.flatnonzero(batch.over)
        if not ended.size:
            return infos
        for i, row, mask in zip(ended.tolist(), *batch.last_views(), strict=True):
            total = float(self._returns[i, batch.acted[i]])
            infos[i]["episode"] = {"r": total, "l": int(self._lengths[i]), "t": 0.0}
            infos[i]["terminal_observation"] = self._form.show(row, mask)
        self._returns[ended] = 0
        self._lengths[ended] = 0
        return infos

    def action_masks(self) -> np.ndarray:
        """What is legal: bool, (N, num_actions)."""
        return self._own(self.batch.masks)

    def _own(self, array: np.ndarray) -> np.ndarray:
        """What is handed out of an array that the next step overwrites."""
        return array.copy() if self._copy else array

    def _seen(self) -> Observations:
        batch, form = self.batch, self._form
        rows = batch.observations
        return form.show(rows if form.scale is not None else self._own(rows), self.action_masks())

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
        """Give back what opponents hold, such as running programs."""
        self.batch.close()
