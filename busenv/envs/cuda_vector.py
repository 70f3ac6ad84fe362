"""Gymnasium's vector environment over games on a GPU, with torch tensors in and out.

`gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=N, device="cuda")`, or `busenv/Bus-v0`, makes
a `CudaVectorEnv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import DTypeLike

from busenv.batch.opponents import Opponents
from busenv.envs.observation_format import as_observation_format
from busenv.game.board_specs import Boards
from busenv.game.rules import Rules
from busenv.rewards import Reward
from busenv.validation import Illegal, check_options, check_whole

try:
    import torch

    from busenv.batch.cuda_batch import CudaBatch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        'device="cuda" requires PyTorch: install the extra cuda', name="torch"
    ) from error


class CudaVectorEnv(VectorEnv):
    """N games on a GPU, one decision of each per step; equal to `BusVectorEnv` bit for bit.

    `reset` and `step` return what those of `busenv.envs.vector.BusVectorEnv` return, as torch
    tensors on the device. `step` takes a tensor of whole numbers, (N,), on the device. It runs on
    the current stream of torch and never waits for the device, so a CUDA graph can capture it.

    Differences in `info`: `illegal_action` is always present. With SAME_STEP, `final_obs` (uint8,
    (N, size)), `_final_obs`, `final_info` and `_final_info` are present in every step; rows of
    `final_obs` are valid where `_final_obs` is true, and values of `final_info` are 0 elsewhere.

    num_envs and the other arguments are those of `BusVectorEnv`, with these differences:
    reward: a name only.
    opponents: "random" (default), "greedy", a sequence of the two names, or None.
    illegal: "replace" (default) or "lose".
    observation_keys, observation_dtype, threads, render_mode: only their defaults are accepted.
    copy: True (default) returns fresh tensors; False returns the buffers, which the next step
        overwrites.
    autoreset_mode: as for `BusVectorEnv`. With DISABLED, a step starts a new game where one has
        ended and has not been reset, because kernels cannot raise.

    Raises ValueError for an invalid or unsupported setting, ModuleNotFoundError without the extra
    `cuda`, and RuntimeError without a GPU.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's attribute
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        num_players: int | Sequence[int] = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: Boards = "city",
        reward: str | Reward = "win",
        opponents: Opponents = "random",
        learner_seat: int | None = None,
        illegal: Illegal = "replace",
        observation_keys: Sequence[str] | None = None,
        observation_dtype: DTypeLike = "uint8",
        relative_types: bool = False,
        skip_forced: bool = False,
        threads: int = 1,
        copy: bool = True,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        num_envs = check_whole("num_envs", num_envs, 1)
        if observation_keys is not None:
            raise ValueError(
                "observation_keys is not supported on a GPU: leave it out and read the mask from "
                'info["action_mask"]'
            )
        if observation_dtype != "uint8":
            raise ValueError(
                "observation_dtype other than uint8 is not supported on a GPU: leave it out and "
                "scale the rows with busenv.ObservationLayout(board).scale in the network"
            )
        if threads != 1:
            raise ValueError(
                "threads is not supported on a GPU: leave it out, or increase num_envs"
            )
        if render_mode is not None:
            raise ValueError(
                'render_mode is not supported on a GPU: render with device="cpu", which plays the '
                "same games from the same seed and actions"
            )
        self.batch = CudaBatch(
            num_envs,
            num_players=num_players,
            rules=rules,
            board=board,
            reward=reward,  # type: ignore[arg-type]  # a function is refused there
            opponents=opponents,
            learner_seat=learner_seat,
            illegal=illegal,
            autoreset_mode=autoreset_mode,
            relative_types=relative_types,
            skip_forced=skip_forced,
        )
        self.num_envs, self.copy, self.render_mode = num_envs, copy, None
        self.device = self.batch.device
        self.autoreset_mode = self.batch.autoreset_mode
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        spaces = as_observation_format(self.batch.board)
        self.single_observation_space = spaces.observation_space
        self.single_action_space = spaces.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._truncations = torch.zeros_like(self.batch.terminations)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """Start new games; without a seed, one is drawn from `np_random`.

        options: "reset_mask", bool (N,), an array or a tensor, restricts the reset to some games.
            Without a seed these continue their random streams, as after the end of a game.

        Returns observations and `info`. Raises ValueError for an invalid seed, mask or option.
        """
        mask = check_options(options, ["reset_mask"]).get("reset_mask")
        super().reset(seed=seed)
        if seed is None and mask is None:
            seed = int(self.np_random.integers(2**63))
        self.batch.reset(seed, mask)
        return self._output(self.batch.observations), self._info()

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Take one action in every game. actions: whole numbers, (N,), a tensor on the device.

        Raises ValueError for another shape, dtype or device.
        """
        batch = self.batch
        batch.step(actions)
        info = self._info()
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._add_final_info(info)
        observations, rewards, terminations, truncations = map(
            self._output,
            (batch.observations, batch.acting_rewards, batch.terminations, self._truncations),
        )
        return observations, rewards, terminations, truncations, info

    def action_masks(self) -> torch.Tensor:
        """Return the legal actions of the seats to decide: bool, (N, num_actions)."""
        return self._output(self.batch.masks)

    def _output(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if self.copy else tensor

    def _info(self) -> dict[str, Any]:
        batch = self.batch
        info = {
            "seat": self._output(batch.seats),
            "acting_seat": self._output(batch.acting_seats),
            "rewards": self._output(batch.rewards),
            "action_mask": self._output(batch.masks).view(torch.int8),
            "illegal_action": self._output(batch.illegal_actions),
        }
        if len(batch.boards) > 1:
            info["board_index"] = self._output(batch.board_index)
        return info

    def _add_final_info(self, info: dict[str, Any]) -> None:
        """Add observations and info of the games that this step ended; zeros for the others."""
        batch, ended = self.batch, self.batch.terminations.clone()
        values = {
            "seat": batch.acting_seats,
            "acting_seat": batch.acting_seats,
            "rewards": batch.rewards,
            "action_mask": batch.final_masks.view(torch.int8),
            "illegal_action": batch.illegal_actions,
        }
        if len(batch.boards) > 1:
            values["board_index"] = batch.final_board_index
        final_info: dict[str, Any] = {}
        for name, value in values.items():
            rows = ended if value.ndim == 1 else ended[:, None]
            final_info[name] = torch.where(rows, value, torch.zeros_like(value))
        final_info |= {f"_{name}": ended for name in values}
        info["illegal_action"] = batch.illegal_actions & ~ended
        info |= {"final_obs": self._output(batch.final_observations), "_final_obs": ended}
        info |= {"final_info": final_info, "_final_info": ended}
