"""Gymnasium's vector interface over a batch of games, in arrays.

`gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=N)` makes a `BusVectorEnv` in which every
seat's decisions come up; `make_vec("busenv/Bus-v0", num_envs=N)` one learner's seat of each game
among compiled opponents, as `make` does with one game.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from busenv.batch import Batch
from busenv.observation import spaces_of


class BusVectorEnv(VectorEnv):
    """N games, one decision of each a step, whoever's turn it is.

    Observations, uint8 (N, size), are those of the seats to decide. Each step returns the reward of
    the seat that decided, float64 (N,), which games ended, bool (N,), and that none was cut off,
    bool (N,), all false; `info` names the rest:

    seat: int64 (N,), who is to decide next. acted: int64 (N,), who decided in this step.
    rewards: float32 (N, 5), what every seat was paid in this step.
    action_mask: bool (N, num_actions), what the seats to decide may do.

    Episodes follow Gymnasium's next-step convention: after a step that ends a game (`terminations`)
    the next step ignores that game's action, begins a new one and pays 0. The mask is all true
    there. Observations, mask and seat are views of buffers: two steps' observations stand side by
    side (two buffers take turns), the others change with the next step. Copy what is to be kept.

    An illegal action raises IllegalActionError and changes nothing.

    num_envs: N. The other settings are those of `busenv.batch.Batch`: num_players, rules, board,
    reward, opponent, learner_seat, threads, first_game. With an opponent, `seat` is always the
    learner's, who also sees the end, and rewards add up until it decides again.

    There is nothing to render: a batch keeps no record of what was done. To look at a game, play it
    in one of the other environments.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium's own name and form
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int = 1, **settings: Any) -> None:
        self.batch = Batch(num_envs, same_step=False, **settings)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = spaces_of(self.batch.board)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._games = np.arange(num_envs)
        self._acted = np.zeros(num_envs, np.int64)
        self._reward = np.zeros(num_envs, np.float64)
        self._truncations = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin every game anew; without a seed from the generator's next number.

        No options are known. Returns observations and `info` as `step` does.
        """
        super().reset(seed=seed)
        chosen = seed if seed is not None else int(self.np_random.integers(2**63))
        self.batch.reset(chosen)
        self._acted[:] = self.batch.seats
        return self.batch.observations, self._info()

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one decision in every game. actions: whole numbers, (N,).

        Raises IllegalActionError or ValueError as `busenv.batch.Batch.step`, nothing changed.
        """
        acted = self.batch.seats.copy()
        self.batch.step(actions)
        self._acted[:] = acted
        self._reward[:] = self.batch.rewards[self._games, self._acted]
        return (
            self.batch.observations,
            self._reward,
            self.batch.over,
            self._truncations,
            self._info(),
        )

    def action_masks(self) -> np.ndarray:
        """What the seats to decide may do: bool, (N, num_actions); a view, as in `info`."""
        return self.batch.masks

    def _info(self) -> dict[str, Any]:
        return {
            "seat": self.batch.seats,
            "acted": self._acted,
            "rewards": self.batch.rewards,
            "action_mask": self.batch.masks,
        }


def learner_envs(
    num_envs: int = 1, opponents: str = "random", seat: int | None = None, **settings: Any
) -> BusVectorEnv:
    """N games of one learner's seat each among compiled opponents ("random" or "greedy").

    seat: the learner's; by default game i's is seat i mod 3 (or 4, or 5, the number of players).
    settings: as for `BusVectorEnv`. ValueError says what is allowed.
    """
    return BusVectorEnv(num_envs, opponent=opponents, learner_seat=seat, **settings)


def register() -> None:
    """Make the environments known to Gymnasium: one id, one problem."""
    gymnasium.register(
        "busenv/Bus-v0",
        entry_point="busenv.envs.gymnasium:BusEnv",
        vector_entry_point="busenv.envs.vector:learner_envs",
    )
    gymnasium.register(
        "busenv/BusSelfPlay-v0", vector_entry_point="busenv.envs.vector:BusVectorEnv"
    )
