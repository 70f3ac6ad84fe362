"""Stable-Baselines3: a VecEnv over a batch of games, with action masks for MaskablePPO."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from busenv.batch.opponents import Opponents
from busenv.envs.observation_format import Observation
from busenv.envs.vector import BusVectorEnv
from busenv.render.render_modes import BATCH_RENDER_MODES, RENDER_FPS
from busenv.validation import check_seed


class BusVecEnv(VecEnv):
    """N games, one decision of each per step; a game that ends is reset in the same step.

    Each row is the trajectory of one learner's seat among opponents, as Stable-Baselines3 requires:

        model = MaskablePPO("MlpPolicy", BusVecEnv(64, opponents="greedy"))

    With `opponents=None`, which warns, the decisions of every seat are returned. A row then mixes
    the seats' trajectories, and Stable-Baselines3's algorithms would assign rewards to the wrong
    seat. Custom learners use `acting_seats`, `batch.seats` (the seats to decide) and
    `batch.rewards` (float32, (N, 5), by seat).

    Unless it is seeded, by `seed` or by an algorithm's `seed=`, every environment plays different
    games.

    `step` returns observations (of the new game, where one has ended), rewards, float32 (N,),
    dones, bool (N,), and a list of N `infos`. The info of a game that ended holds
    "terminal_observation" and `"episode": {"r", "l", "t"}`: the return of the seat that acted last,
    the length in steps, and 0. With illegal="lose" or "replace" every info holds "illegal_action".

    num_envs: N. The other arguments are keyword-only and those of
    `busenv.envs.vector.BusVectorEnv`, with the same defaults and errors, except `autoreset_mode`,
    which is SAME_STEP. copy=False is not suitable for the library's own algorithms, which store
    observations.
    """

    metadata: dict[str, Any] = {"render_modes": BATCH_RENDER_MODES, "render_fps": RENDER_FPS}  # noqa: RUF012

    def __init__(self, num_envs: int, *, opponents: Opponents = "greedy", **settings: Any) -> None:
        if opponents is None:
            warnings.warn(
                "opponents=None: each row mixes the decisions of all seats, and "
                "Stable-Baselines3's algorithms credit rewards to the wrong seat; name opponents, "
                "or use busenv.Batch in a learner of your own",
                stacklevel=2,
            )
        self._games = BusVectorEnv(
            num_envs, opponents=opponents, autoreset_mode=AutoresetMode.SAME_STEP, **settings
        )
        self.batch, self.render_mode = self._games.batch, self._games.render_mode
        self._reports_illegal = settings.get("illegal", "raise") != "raise"
        self._returns = np.zeros_like(self.batch.rewards)
        self._lengths = np.zeros(num_envs, np.int64)
        self._seed: int | None = None
        metadata = self.metadata
        spaces = self._games.observation_format
        super().__init__(num_envs, spaces.observation_space, spaces.action_space)
        self.metadata = metadata  # the base class replaces it, without `render_fps`

    @property
    def acting_seats(self) -> np.ndarray:
        """The seats that decided in the last step: int64, (N,)."""
        return self.batch.acting_seats.copy()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seed of the next reset, 0 to 2**64 - 1; later resets derive theirs.

        None, as without a call of this method, draws it from the operating system.
        """
        self._seed = None if seed is None else check_seed(seed)
        return [seed] * self.num_envs

    def reset(self) -> Observation:
        """Start a new game in every row; returns observations."""
        seed = secrets.randbits(63) if self._seed is None else self._seed
        self.batch.reset(seed)
        self._seed = int(np.random.default_rng(seed).integers(2**63))
        self._returns[:] = 0
        self._lengths[:] = 0
        return self._games.observations()

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions of the next `step_wait`: whole numbers, (N,)."""
        self._actions = actions

    def step_wait(self) -> tuple[Observation, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one action in every game; returns observations, rewards, dones and infos.

        Raises IllegalActionError, ValueError or AgentError as `busenv.Batch.step` does. Call
        `reset` after AgentError and after an error of a reward function.
        """
        batch = self.batch
        batch.step(self._actions)
        self._returns += batch.rewards
        self._lengths += 1
        rewards = batch.acting_rewards.astype(np.float32)
        return self._games.observations(), rewards, batch.terminations.copy(), self._infos()

    def _infos(self) -> list[dict[str, Any]]:
        batch = self.batch
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self._reports_illegal:
            for info, illegal in zip(infos, batch.illegal_actions, strict=True):
                info["illegal_action"] = illegal
        ended = np.flatnonzero(batch.terminations)
        if not ended.size:
            return infos
        for i, row, mask in zip(ended.tolist(), *batch.final_observations(), strict=True):
            total = float(self._returns[i, batch.acting_seats[i]])
            infos[i]["episode"] = {"r": total, "l": int(self._lengths[i]), "t": 0.0}
            infos[i]["terminal_observation"] = self._games.observation_format.convert(row, mask)
        self._returns[ended] = 0
        self._lengths[ended] = 0
        return infos

    def action_masks(self) -> np.ndarray:
        """Return the legal actions: bool, (N, num_actions)."""
        return self._games.action_masks()

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return images of the first games, at most four, for `render`: uint8, (800, 1200, 3).

        Empty before the first reset.
        """
        return self._games.draw()

    def render(self, mode: str | None = None) -> np.ndarray | None:
        """Return the images as one, in a grid; None before the first reset."""
        return super().render(mode) if self.batch.has_started else None

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method once for all games.

        Returns, for each game of `indices` (default: all), its row of the masks for `action_masks`,
        else the result.
        """
        result, rows = getattr(self, method_name)(*args, **kwargs), self._get_indices(indices)
        return [result[row] if method_name == "action_masks" else result for row in rows]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, repeated for each game."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the environment, which all games share.

        Raises ValueError for some of the games only.
        """
        if {*self._get_indices(indices)} != {*range(self.num_envs)}:
            raise ValueError(f"indices is {indices!r}: leave it out, all games share it")
        setattr(self, attr_name, value)

    def set_options(self, options: Any = None) -> None:
        """Raise ValueError for options, since resets have none."""
        if options and any(options if isinstance(options, list) else [options]):
            raise ValueError(f"options is {options!r}; allowed: None")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return for each game whether it has a wrapper: only Monitor, whose infos it has."""
        return [wrapper_class is Monitor] * len(list(self._get_indices(indices)))

    def close(self) -> None:
        """Close the opponents built from specs."""
        self.batch.close()
