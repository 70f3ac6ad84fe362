"""One of our environments that exists already, seen in another form.

    >>> import gymnasium, busenv
    >>> env = gymnasium.make("busenv/Bus-v0")
    >>> seen, info = with_form(env, ("obs", "mask"), "float32").reset(seed=1)
    >>> seen["obs"].dtype, seen["mask"].shape
    (dtype('float32'), (375,))

Where you make the environment yourself, its own settings `observation_keys` and `observation_dtype`
do the same, faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import DTypeLike
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper, BaseWrapper

from busenv.envs.observation_format import ObservationFormat, as_observation_format
from busenv.game.board import Board

KEYS = ("observation", "action_mask")  # PettingZoo's by default

AnyEnv = TypeVar("AnyEnv", gymnasium.Env, VectorEnv, AECEnv, ParallelEnv)


def with_form(
    env: AnyEnv,
    observation_keys: Sequence[str] | None = KEYS,
    observation_dtype: DTypeLike = "uint8",
) -> AnyEnv:
    """The environment with its observations in another form (`busenv.envs.observation_format`).

    env: Gymnasium's (single or vector) or PettingZoo's (in turns or all at once), of busenv, in
        its default form, maybe wrapped.

    TypeError for anything else, ValueError for another form or where `as_observation_format` has one.
    """
    for kind, wrapper in _WRAPPERS.items():
        if isinstance(env, kind):
            form = as_observation_format(_board_of(env), observation_keys, observation_dtype)
            return wrapper(env, form)
    raise TypeError(f"{env!r} is no environment of Gymnasium or PettingZoo")


def _board_of(env: Any) -> Board:
    """The board of an environment in its default form."""
    base = env.unwrapped
    board = base.batch.board if hasattr(base, "batch") else getattr(base, "board", None)
    if board is None:
        raise TypeError(f"{env!r} is no environment of busenv")
    if isinstance(env, (AECEnv, ParallelEnv)):
        found, usual = (
            env.observation_space(env.possible_agents[0]),
            as_observation_format(board, KEYS),
        )
    else:
        found, usual = (
            getattr(env, "single_observation_space", env.observation_space),
            as_observation_format(board),
        )
    if found != usual.observation_space:
        raise ValueError(f"{env!r} has another form already: {found}")
    return board


class _Single(gymnasium.Wrapper):
    def __init__(self, env: gymnasium.Env, form: ObservationFormat) -> None:
        super().__init__(env)
        self._form, self.observation_space = form, form.observation_space

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        row, info = self.env.reset(**arguments)
        return self._form.show(row, info["action_mask"].copy()), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        row, *rest, info = self.env.step(action)
        return self._form.show(row, info["action_mask"].copy()), *rest, info  # type: ignore[return-value]


class _Vector(VectorWrapper):
    def __init__(self, env: VectorEnv, form: ObservationFormat) -> None:
        super().__init__(env)
        self._form, self.single_observation_space = form, form.observation_space
        self.observation_space = batch_space(form.observation_space, env.num_envs)

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        rows, info = self.env.reset(**arguments)
        return self._form.show(rows, info["action_mask"].copy()), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        rows, *rest, info = self.env.step(actions)
        if "final_obs" in info:
            masks = info["final_info"]["action_mask"]
            for i in np.flatnonzero(info["_final_obs"]):
                info["final_obs"][i] = self._form.show(info["final_obs"][i], masks[i].copy())
        return self._form.show(rows, info["action_mask"].copy()), *rest, info


class _Seats:
    """What both of PettingZoo's interfaces need."""

    _form: ObservationFormat

    def _take(self, env: Any, form: ObservationFormat) -> None:
        if form.keys is None:
            raise ValueError("observation_keys is None; PettingZoo wants two names")
        board = _board_of(env)
        dtype = "uint8" if form.scale is None else "float32"
        self._form, self._spaces = (
            form,
            {
                agent: as_observation_format(board, form.keys, dtype).observation_space
                for agent in env.possible_agents
            },
        )

    def observation_space(self, agent: str) -> spaces.Space:
        return self._spaces[agent]

    def _show(self, seen: dict[str, np.ndarray]) -> Any:
        return self._form.show(*(seen[key] for key in KEYS))


class _Turns(_Seats, BaseWrapper):
    def __init__(self, env: AECEnv, form: ObservationFormat) -> None:
        super().__init__(env)
        self._take(env, form)

    def observe(self, agent: str) -> Any:
        return self._show(self.env.observe(agent))


class _Parallel(_Seats, BaseParallelWrapper):
    def __init__(self, env: ParallelEnv, form: ObservationFormat) -> None:
        super().__init__(env)
        self._take(env, form)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        seen, infos = self.env.reset(seed=seed, options=options)
        return {agent: self._show(one) for agent, one in seen.items()}, infos

    def step(self, actions: dict[str, Any]) -> Any:
        seen, *rest = self.env.step(actions)
        return {agent: self._show(one) for agent, one in seen.items()}, *rest


_WRAPPERS: dict[type, Any] = {
    gymnasium.Env: _Single,
    VectorEnv: _Vector,
    AECEnv: _Turns,
    ParallelEnv: _Parallel,
}
