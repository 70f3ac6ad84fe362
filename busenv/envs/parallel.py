"""PettingZoo's parallel interface: all agents step at once.

One agent decides at each step and the others wait. To wait is to pass (id 7): the mask of who is
not to move allows that alone. So spaces, masks, rewards, settings and networks are those of
`busenv.envs.pettingzoo`, which says more of them.

    from busenv import bus_v0

    env = bus_v0.parallel_env(num_players=4)
    observations, infos = env.reset(seed=42)
    while env.agents:
        actions = {
            agent: env.action_space(agent).sample(observation["action_mask"])
            for agent, observation in observations.items()
        }
        observations, rewards, terminations, truncations, infos = env.step(actions)

What an agent that waits does beside passing is an illegal action of its own, and does as `illegal`
says: with "replace" it is taken to wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike
from pettingzoo import ParallelEnv

from busenv.core.state import PASS
from busenv.envs.observation_format import Illegal, check_illegal
from busenv.envs.pettingzoo import KEYS, Observation, raw_env
from busenv.errors import IllegalActionError
from busenv.game.actions import describe_action
from busenv.game.board import Board
from busenv.game.game import Game
from busenv.game.rules import Rules
from busenv.rewards import Reward


class parallel_env(ParallelEnv[str, Observation, int]):  # noqa: N801 - PettingZoo's own name
    """All agents step at once: one of them decides, the others wait by passing (id 7).

    Settings as at the top of `busenv.envs.pettingzoo`.
    """

    metadata: dict[str, Any] = {**raw_env.metadata, "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self,
        num_players: int = 4,
        rules: str | Path | Rules = "capstone-2024",
        board: str | Path | Board = "city",
        reward: str | Reward = "win",
        illegal: Illegal = "raise",
        observation_keys: Sequence[str] = KEYS,
        observation_dtype: DTypeLike = "uint8",
        render_mode: str | None = None,
    ) -> None:
        self._turns = raw_env(
            num_players,
            rules,
            board,
            reward,
            illegal,
            observation_keys,
            observation_dtype,
            render_mode,
        )
        turns = self._turns
        self.possible_agents, self.render_mode = turns.possible_agents, turns.render_mode
        self.observation_spaces, self.action_spaces = turns.observation_spaces, turns.action_spaces
        self.state_space, self._illegal = turns.state_space, check_illegal(illegal)
        self.board = turns.board
        self._mask = str(observation_keys[1])
        self.agents: list[str] = []

    @property
    def game(self) -> Game:
        """The game being played."""
        return self._turns.game

    def observation_space(self, agent: str) -> spaces.Space:
        """What an agent sees: the same for all."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """What an agent may do: the same for all."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin a game, as in turns. Returns what each agent sees, and infos."""
        self._turns.reset(seed, options)
        self.agents = self._turns.agents.copy()
        return self._observations(), self._turns.infos

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Take the decision of the agent that is to move. Who waits may be left out.

        Returns what each agent sees, is paid, whether its game is over, False (no game is cut off),
        and infos. Raises IllegalActionError as `illegal` says, nothing changed, ValueError without
        an action of who is to move. Nothing is left to do, or returned, once the game is over.
        """
        if not self.agents:
            return {}, {}, {}, {}, {}
        turns, mover = self._turns, self._turns.agent_selection
        if mover not in actions:
            raise ValueError(f"no action of {mover}, who is to move; actions of {[*actions]}")
        waiting = [agent for agent in self.agents if agent != mover]
        wrong = [agent for agent in waiting if actions.get(agent, PASS) != PASS]
        if wrong and self._illegal == "raise":
            raise IllegalActionError(
                f"action {actions[wrong[0]]} is illegal for {wrong[0]}, who is not to move; "
                f"legal: {PASS} ({describe_action(self.game.board, PASS)})"
            )
        if wrong and self._illegal == "lose":
            turns.forfeit(wrong)
        else:
            turns.step(actions[mover])
        infos = turns.infos
        for agent in waiting if infos[mover] else ():
            infos[agent]["illegal_action"] = np.bool_(agent in wrong)
        results = turns.rewards.copy(), turns.terminations.copy(), turns.truncations.copy(), infos
        seen = self._observations()
        if any(turns.terminations.values()):
            self.agents = []
        return seen, *results

    def _observations(self) -> dict[str, Observation]:
        """What each agent sees; who is not to move may pass, and nothing else."""
        seen = {agent: self._turns.observe(agent) for agent in self.agents}
        for observation in seen.values():
            mask = observation[self._mask]
            mask[PASS] |= not mask.any()
        return seen

    def state(self) -> np.ndarray:
        """The whole table as seat 0 sees it, with who is to move: uint8 (size,), a fresh array."""
        return self._turns.state()

    def render(self) -> str | np.ndarray | None:
        """The table as the render mode has it (`busenv.render.render_modes`)."""
        return self._turns.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self._turns.close()
