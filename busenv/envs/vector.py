"""Gymnasium's vector interface over a batch of games, in arrays.

`gymnasium.make_vec("busenv/Bus-v0", num_envs=N)` makes N games of the problem that `make` makes one
of: one learner's seat among opponents. In `make_vec("busenv/BusSelfPlay-v0", num_envs=N)` every
seat's decisions come up. Both are a `BusVectorEnv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import DTypeLike

from busenv.batch.batch import Batch
from busenv.batch.batch_opponents import Opponents
from busenv.envs.observation_format import Illegal, as_observation_format
from busenv.game.board import Board
from busenv.game.rules import Rules
from busenv.rewards import Reward

Observations = np.ndarray | dict[str, np.ndarray]


class BusVectorEnv(VectorEnv):
    """N games, one decision of each a step.

    Each step returns observations (see `observation_keys`), the reward of the seat that decided,
    float64 (N,), which games ended, bool (N,), that none was cut off, bool (N,), all false, and
    `info`:

    action_mask: int8 (N, num_actions), what may be decided next (with `observation_keys` it stands
        in the observation as well); all ones where a game is over.
    seat: int64 (N,), who is to decide next: the learner, if there are opponents.
    acted: int64 (N,), who decided in this step. rewards: float32 (N, 5), what each seat was paid,
        all that happened since `acted` decided.
    illegal_action: bool (N,), whether the action of this step was illegal; unless illegal="raise".
        With SAME_STEP, whether one that ended a game was stands in `final_info`, as in Gymnasium.

    num_envs: N.
    num_players: 3, 4 or 5, or several of them to draw from for each episode.
    rules, board: as for `busenv.Game`.
    reward: a name in `busenv.rewards.REWARDS`, or a function (see there).
    opponents: who plays the other seats, clockwise from the learner: spec strings of agents or
        objects with a method `act(game)` or `choose(games, board)` (`busenv.Batch`). One alone
        plays all of them. None: every seat's decisions come up, whoever's turn it is; a learner
        must then go by `seat`, `acted` and `rewards`, since a row is no one seat's trajectory.
    learner_seat: the learner's seat, None: drawn for each episode.
    illegal: what an illegal action does. "raise": IllegalActionError, and nothing has changed.
        "lose": the episode ends and pays -1. "replace": a legal one, drawn from the game's own
        stream, is played in its place.
    observation_keys: None: the flat row. A pair of names: a dict of row and mask under them.
    observation_dtype: "uint8", or "float32" for rows scaled to 0..1 (`busenv.envs.observation_format`).
    threads: how many share the work of a step. Results do not depend on it, nor on N.
    copy: True: all that is returned is the caller's own. False, faster: views of buffers that the
        next step overwrites, to be read only.
    autoreset_mode: a gymnasium.vector.AutoresetMode or its value. NEXT_STEP: the step after the one
        that ends a game ignores its action, begins a new one and pays 0. SAME_STEP: a new game
        begins in the step that ends one, whose end stands in `info["final_obs"]` and
        `info["final_info"]`. DISABLED: `reset(options={"reset_mask": ...})` begins it.

    ValueError says what is allowed instead. There is nothing to render: a batch keeps no record of
    what was done. To look at a game, play it in one of the other environments.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's own name and form
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
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
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
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
            autoreset_mode,
            threads,
        )
        self.num_envs, self.copy = num_envs, copy
        self.autoreset_mode = self.batch.autoreset_mode
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self._form = as_observation_format(self.batch.board, observation_keys, observation_dtype)
        self._illegal = illegal
        self.single_observation_space = self._form.observation_space
        self.single_action_space = self._form.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._truncations = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin every game anew; without a seed from the generator's next number.

        options: "reset_mask", bool (N,), names the games to begin anew, the others stay as they
        are; without a seed these go on in their own random streams, as after any end of a game.

        Returns observations and `info` as `step` does. ValueError for another seed or mask.
        """
        mask = (options or {}).get("reset_mask")
        super().reset(seed=seed)
        if seed is None and mask is None:
            seed = int(self.np_random.integers(2**63))
        self.batch.reset(seed, mask)
        return self._seen(), self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one decision in every game. actions: whole numbers, (N,).

        Raises IllegalActionError, ValueError or AgentError as `busenv.Batch.step`, nothing changed.
        """
        batch = self.batch
        batch.step(actions)
        info = self._info()
        if self.autoreset_mode == AutoresetMode.SAME_STEP and batch.over.any():
            self._add_ends(info)
        rewards, over = self._own(batch.paid), self._own(batch.over)
        return self._seen(), rewards, over, self._own(self._truncations), info

    def action_masks(self) -> np.ndarray:
        """What the seats to decide may do: bool, (N, num_actions)."""
        return self._own(self.batch.masks)

    def close_extras(self, **kwargs: Any) -> None:
        """Give back what opponents hold, such as running programs."""
        self.batch.close()

    def _own(self, array: np.ndarray) -> np.ndarray:
        """What is handed out of an array that the next step overwrites."""
        return array.copy() if self.copy else array

    def _seen(self) -> Observations:
        rows = self.batch.observations
        return self._form.show(
            rows if self._form.scale is not None else self._own(rows), self._own(self.batch.masks)
        )

    def _info(self) -> dict[str, Any]:
        batch = self.batch
        info = {
            "seat": self._own(batch.seats),
            "acted": self._own(batch.acted),
            "rewards": self._own(batch.rewards),
            "action_mask": self._own(batch.masks).view(np.int8),
        }
        if self._illegal != "raise":
            info["illegal_action"] = self._own(batch.wrong)
        return info

    def _add_ends(self, info: dict[str, Any]) -> None:
        """Add to the info of a step what the games that it ended looked like, as Gymnasium does."""
        batch, ended = self.batch, self.batch.over.copy()
        rows, masks = batch.last_views()
        final_obs = np.full(self.num_envs, None, object)
        for i, row, mask in zip(np.flatnonzero(ended), rows, masks, strict=True):
            final_obs[i] = self._form.show(row, mask)
        known = {"seat": batch.acted, "acted": batch.acted, "rewards": batch.rewards}
        if self._illegal != "raise":
            known["illegal_action"] = batch.wrong
            info["illegal_action"] = batch.wrong & ~ended
        final_info: dict[str, Any] = {}
        for name, value in known.items():
            final_info[name] = np.zeros_like(value)
            final_info[name][ended] = value[ended]
        final_info["action_mask"] = np.zeros(batch.masks.shape, np.int8)
        final_info["action_mask"][ended] = masks
        final_info |= {f"_{name}": ended.copy() for name in final_info}
        info |= {"final_obs": final_obs, "_final_obs": ended}
        info |= {"final_info": final_info, "_final_info": ended.copy()}


def register() -> None:
    """Make the environments known to Gymnasium: one id, one problem."""
    gymnasium.register(
        "busenv/Bus-v0",
        entry_point="busenv.envs.gymnasium:BusEnv",
        vector_entry_point="busenv.envs.vector:BusVectorEnv",
    )
    gymnasium.register(
        "busenv/BusSelfPlay-v0",
        vector_entry_point="busenv.envs.vector:BusVectorEnv",
        kwargs={"opponents": None},
    )
