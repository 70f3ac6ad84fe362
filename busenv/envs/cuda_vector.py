"""Gymnasium's vector environment over games on a GPU, with torch tensors in and out.

`gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=N, device="cuda")`, or `busenv/Bus-v0`, makes
a `CudaVectorEnv`.
"""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode

from busenv.batch.opponents import Opponents
from busenv.envs.vector import BusVectorEnv
from busenv.validation import Illegal, check_whole

try:
    import torch

    from busenv.batch.cuda_batch import CudaBatch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        'device="cuda" requires PyTorch: install the extra cuda', name="torch"
    ) from error


class CudaVectorEnv(BusVectorEnv):
    """N games on a GPU, one decision of each per step; equal to `BusVectorEnv` bit for bit.

    `reset` and `step` return what those of `busenv.envs.vector.BusVectorEnv` return, as torch
    tensors on the device. `step` takes a tensor of whole numbers, (N,), on the device. It runs on
    the current stream of torch and never waits for the device, so a CUDA graph can capture it.

    Differences in `info`: `illegal_action` is always present. With SAME_STEP, `final_obs` (uint8,
    (N, size)), `_final_obs`, `final_info` and `_final_info` are present in every step; rows of
    `final_obs` are valid where `_final_obs` is true, and values of `final_info` are 0 elsewhere.

    num_envs and the other arguments are those of `BusVectorEnv`, with these differences:
    reward: a name only.
    opponents: "greedy" (default), "random", a sequence of the two names, or None.
    illegal: "replace" (default) or "lose".
    observation_keys, observation_dtype, render_mode: refused. The mask is in `info["action_mask"]`;
        `busenv.ObservationLayout(board).scale` scales rows. threads: ignored.
    copy: True (default) returns fresh tensors; False returns the buffers, which the next step
        overwrites.
    autoreset_mode: as for `BusVectorEnv`. With DISABLED, a step starts a new game where one has
        ended and has not been reset, because kernels cannot raise.

    Raises ValueError for an invalid setting or without a GPU, and ModuleNotFoundError without the
    extra `cuda`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's attribute
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    batch: Any  # a CudaBatch; arrays of the CPU's environment are tensors here
    _truncations: Any
    _int8 = torch.int8

    def __init__(
        self,
        num_envs: int = 1,
        *,
        opponents: Opponents = "greedy",
        illegal: Illegal = "replace",
        copy: bool = True,
        **settings: Any,
    ) -> None:
        self.batch = CudaBatch(
            check_whole("num_envs", num_envs, 1), opponents=opponents, illegal=illegal, **settings
        )
        self.device, self.render_mode = self.batch.device, None
        self._truncations = torch.zeros_like(self.batch.terminations)
        self._set_up(num_envs, copy, illegal)

    def observations(self) -> Any:
        """Return the observations of the seats to decide, as `step` does."""
        return self._output(self.batch.observations)

    def close_extras(self, **kwargs: Any) -> None:
        """Do nothing: opponents on a GPU are compiled."""

    def _output(self, array: Any) -> Any:
        return array.clone() if self.copy else array

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
