"""Gymnasium's vector environment over a batch of games.

`gymnasium.make_vec("busenv/Bus-v0", num_envs=N)` makes N games with one learner's seat among
opponents, as `gymnasium.make` makes one. `gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=N)`
returns the decisions of every seat. Both ids make a `BusVectorEnv`, and with `device="cuda"` a
`CudaVectorEnv` (`busenv.envs.cuda_vector`), whose games and tensors are on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pettingzoo
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import DTypeLike

from busenv.batch.batch import Batch
from busenv.batch.opponents import Opponents
from busenv.envs.observation_format import Observation, ObservationFormat
from busenv.render.render_modes import BATCH_RENDER_MODES, RENDER_FPS, Renderer
from busenv.validation import Illegal, check_options, check_seed, check_whole

if TYPE_CHECKING:
    from busenv.envs.cuda_vector import CudaVectorEnv


class BusVectorEnv(VectorEnv):
    """N games, one decision of each per step.

    `step` returns observations, rewards of the seat that decided, float64 (N,), terminations, bool
    (N,), truncations, bool (N,), all false, and `info`:

    - `action_mask`: int8, (N, num_actions), the legal actions; all ones where a game is over. With
      `observation_keys` the mask is in the observation as well.
    - `seat`: int64, (N,), the seat to decide next: the learner's, if there are opponents.
    - `acting_seat`: int64, (N,), the seat that decided in this step; in a step that only resets a
      game, a seat of the previous game, with reward 0.
    - `rewards`: float32, (N, 5), the rewards of all seats since `acting_seat` decided.
    - `board_index`: int64, (N,), the index of each game's board in `batch.boards`; absent with one
      board.
    - `illegal_action`: bool, (N,), whether the action of this step was illegal; absent with
      illegal="raise". With SAME_STEP, for a game that ended it is in `final_info`.

    num_envs: N, default 1. The other arguments are keyword-only: those of `busenv.Batch`, with the
    same defaults, and these:
    opponents: as for `busenv.Batch`, but "greedy" by default. With None, a row mixes the seats'
        trajectories, and a learner must use `seat`, `acting_seat` and `rewards`. Gymnasium's
        RecordEpisodeStatistics would add up the rewards of different seats; sum `rewards` by seat
        instead.
    observation_keys: None (default) for flat rows, or the names of row and mask in a dict.
    observation_dtype: "uint8" (default), or "float32" for values scaled to 0..1.
    copy: True (default) returns fresh arrays. False, which is faster, returns views of the batch's
        buffers: do not write to them; the next step overwrites them.
    autoreset_mode: as for `busenv.Batch`. With SAME_STEP, the end of a game is in
        `info["final_obs"]` and `info["final_info"]`; with DISABLED,
        `reset(options={"reset_mask": ...})` starts a new game.
    render_mode: None (default), or "rgb_array" for `render`; requires the extra `render`.

    Raises ValueError for an invalid setting, FileNotFoundError for an unknown board, and
    ModuleNotFoundError without the extra.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's attribute
        "render_modes": BATCH_RENDER_MODES,
        "render_fps": RENDER_FPS,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    _int8: Any = np.int8

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponents: Opponents = "greedy",
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
        copy: bool = True,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        self._renderer, self.render_mode = Renderer(render_mode, BATCH_RENDER_MODES), render_mode
        num_envs = check_whole("num_envs", num_envs, 1)
        self.batch = Batch(num_envs, opponents=opponents, illegal=illegal, **settings)
        self._truncations = np.zeros(num_envs, np.bool_)
        self._set_up(num_envs, copy, illegal, observation_keys, observation_dtype)

    def _set_up(
        self,
        num_envs: int,
        copy: bool,
        illegal: Illegal,
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
    ) -> None:
        """Set the attributes that depend on `batch` and on the format of observations."""
        self.num_envs, self.copy, self._illegal = num_envs, copy, illegal
        self.autoreset_mode = self.batch.autoreset_mode
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.observation_format = ObservationFormat(
            self.batch.board, observation_keys, observation_dtype
        )
        self.single_observation_space = self.observation_format.observation_space
        self.single_action_space = self.observation_format.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start new games; without a seed, one is drawn from `np_random`.

        seed: 0 to 2**64 - 1, or a list of N of them, from which one seed is derived.
        options: "reset_mask", bool (N,), restricts the reset to some games. Without a seed these
            continue their random streams, as after the end of a game.

        Returns observations and `info`. Raises ValueError for an invalid seed, mask or option.
        """
        mask = check_options(options, ["reset_mask"]).get("reset_mask")
        if isinstance(seed, Sequence):
            if len(seed) != self.num_envs:
                raise ValueError(f"{len(seed)} seeds; allowed: one, or {self.num_envs} in a list")
            seed = int(np.random.default_rng([*map(check_seed, seed)]).integers(2**63))
        super().reset(seed=seed)
        if seed is None and mask is None:
            seed = int(self.np_random.integers(2**63))
        self.batch.reset(seed, mask)
        return self.observations(), self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one action in every game. actions: whole numbers, (N,).

        Raises IllegalActionError, ValueError or AgentError as `busenv.Batch.step` does. Call
        `reset` after AgentError and after an error of a reward function.
        """
        batch = self.batch
        batch.step(actions)
        info = self._info()
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._add_final_info(info)
        rewards, terminations, truncations = map(
            self._output, (batch.acting_rewards, batch.terminations, self._truncations)
        )
        return self.observations(), rewards, terminations, truncations, info

    def action_masks(self) -> np.ndarray:
        """Return the legal actions of the seats to decide: bool, (N, num_actions)."""
        return self._output(self.batch.masks)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return an image of each game: uint8, (800, 1200, 3).

        None without a render mode and before the first reset. Images take long to draw, so those
        from the fifth on are black.
        """
        if self.render_mode is None or not (images := self.draw()):
            return None
        return (*images, *[np.zeros_like(images[0])] * (self.num_envs - len(images)))

    def draw(self) -> list[np.ndarray]:
        """Return images of the first games, at most four; none before the first reset."""
        return self._renderer.render_batch(self.batch)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the opponents built from specs."""
        self.batch.close()

    def _output(self, array: np.ndarray) -> np.ndarray:
        return array.copy() if self.copy else array

    def observations(self) -> Observation:
        """Return the observations of the seats to decide, as `step` does."""
        return self.observation_format.convert(self.batch.observations, self.batch.masks, self.copy)

    def _info(self) -> dict[str, Any]:
        batch = self.batch
        info = {
            "seat": self._output(batch.seats),
            "acting_seat": self._output(batch.acting_seats),
            "rewards": self._output(batch.rewards),
            "action_mask": self._output(batch.masks).view(self._int8),
        }
        if len(batch.boards) > 1:
            info["board_index"] = self._output(batch.board_index)
        if self._illegal != "raise":
            info["illegal_action"] = self._output(batch.illegal_actions)
        return info

    def _add_final_info(self, info: dict[str, Any]) -> None:
        """Add observations and info of the games that this step ended, in Gymnasium's format."""
        batch = self.batch
        if self._illegal != "raise":
            info["illegal_action"] = batch.illegal_actions & ~batch.terminations
        ended = np.flatnonzero(batch.terminations).tolist()
        for i, row, mask in zip(ended, *batch.final_observations(), strict=True):
            final_info: dict[str, Any] = {
                "seat": batch.acting_seats[i],
                "acting_seat": batch.acting_seats[i],
                "rewards": batch.rewards[i],
                "action_mask": mask.view(np.int8),
            }
            if len(batch.boards) > 1:
                final_info["board_index"] = batch.final_board_index[i]
            if self._illegal != "raise":
                final_info["illegal_action"] = bool(batch.illegal_actions[i])
            final_obs = self.observation_format.convert(row, mask)
            self._add_info(info, {"final_obs": final_obs, "final_info": final_info}, i)


def make_vector(
    num_envs: int = 1, max_episode_steps: int | None = None, *, device: str = "cpu", **settings: Any
) -> BusVectorEnv | CudaVectorEnv:
    """Make a vector environment for `gymnasium.make_vec`, which has a setting for truncation.

    device: "cpu" (default) for a `BusVectorEnv`, or "cuda" for a `CudaVectorEnv`
        (`busenv.envs.cuda_vector`), whose games and tensors are on the current GPU.
    """
    if max_episode_steps is not None:
        raise gymnasium.error.Error(
            f"max_episode_steps is {max_episode_steps!r}: leave it out, games end by the "
            "rules after at most busenv.longest_game() decisions"
        )
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device is {device!r}; allowed: cpu, cuda")
    if device == "cpu":
        return BusVectorEnv(num_envs, **settings)
    # Imported here, because it imports PyTorch.
    from busenv.envs.cuda_vector import CudaVectorEnv

    return CudaVectorEnv(num_envs, **settings)


def make_self_play(**settings: Any) -> gymnasium.Env[Any, Any]:
    """Raise an error that names the alternatives: self-play is a vector environment."""
    raise gymnasium.error.Error(
        "busenv/BusSelfPlay-v0 is a vector environment: gymnasium.make_vec(id, num_envs=N); for "
        "one game use busenv/Bus-v0 (a learner among agents) or busenv.bus_v0 (PettingZoo)"
    )


def register() -> None:
    """Register the environment ids with Gymnasium, and with PettingZoo where it has a registry."""
    gymnasium.register(
        "busenv/Bus-v0",
        entry_point="busenv.envs.gymnasium:BusEnv",
        vector_entry_point="busenv.envs.vector:make_vector",
    )
    gymnasium.register(
        "busenv/BusSelfPlay-v0",
        entry_point="busenv.envs.vector:make_self_play",
        vector_entry_point="busenv.envs.vector:make_vector",
        kwargs={"opponents": None},
    )
    if hasattr(pettingzoo, "register"):  # since 1.27
        pettingzoo.register("aec", "busenv/bus-v0", "busenv.envs.pettingzoo:env")
        pettingzoo.register("parallel", "busenv/bus-v0", "busenv.envs.parallel:parallel_env")
