"""PettingZoo's parallel environment: all agents act in every step.

One agent decides in each step; the others wait, with action PASS (id 7), the only action that their
masks allow. Spaces, rewards and settings are those of `busenv.envs.pettingzoo`.

    from busenv import bus_v0

    env = bus_v0.parallel_env(num_players=4)
    observations, infos = env.reset(seed=42)
    while env.agents:
        actions = {
            agent: env.action_space(agent).sample(observation["action_mask"])
            for agent, observation in observations.items()
        }
        observations, rewards, terminations, truncations, infos = env.step(actions)

Actions of waiting agents have no effect.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from busenv.core.state import PASS
from busenv.envs.observation_format import Observation
from busenv.envs.pettingzoo import raw_env
from busenv.game.board import Board
from busenv.game.game import Game

AgentInfos = dict[str, dict[str, Any]]


class parallel_env(ParallelEnv[str, Observation, int]):  # noqa: N801 - PettingZoo's name
    """The environment in which one agent decides per step and the others pass (id 7).

    Arguments and errors as for `busenv.envs.pettingzoo.raw_env`.
    """

    metadata: dict[str, Any] = {**raw_env.metadata, "is_parallelizable": True}  # noqa: RUF012

    def __init__(self, num_players: int = 4, **settings: Any) -> None:
        self._aec = raw_env(num_players, **settings)
        self.render_mode = self._aec.render_mode
        self.possible_agents = self._aec.possible_agents
        self.observation_spaces = self._aec.observation_spaces
        self.action_spaces = self._aec.action_spaces
        self.state_space = self._aec.state_space
        self.agents: list[str] = []

    @property
    def board(self) -> Board:
        """The board of the current game."""
        return self._aec.board

    @property
    def game(self) -> Game:
        """The current game. Raises ResetNeeded before the first `reset`."""
        return self._started_aec().game

    def _started_aec(self) -> raw_env:
        if not hasattr(self._aec, "game"):
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self._aec

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the observation space, equal for all agents."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the action space, equal for all agents."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], AgentInfos]:
        """Start a game, as `raw_env.reset`; returns observations and infos."""
        self._aec.reset(seed, options)
        self.agents = self._aec.agents.copy()
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], AgentInfos
    ]:
        """Take the action of the agent to move; those of the others have no effect.

        Returns observations, rewards, terminations, truncations (all False) and infos; empty dicts
        after the end of the game.

        Raises IllegalActionError for its illegal action with illegal="raise", ValueError without
        its action, and ResetNeeded before the first `reset`, without any change.
        """
        aec = self._started_aec()
        if not self.agents:
            return {}, {}, {}, {}, {}
        mover = aec.agent_selection
        if mover not in actions:
            raise ValueError(
                f"no action for {mover}, the agent to move; actions were given for {[*actions]}"
            )
        aec.step(actions[mover])
        infos = self._infos()
        results = aec.rewards.copy(), aec.terminations.copy(), aec.truncations.copy(), infos
        observations = self._observations()
        if any(aec.terminations.values()):
            self.agents = []
        return observations, *results

    def _observations(self) -> dict[str, Observation]:
        observations = {agent: self._aec.observe(agent) for agent in self.agents}
        if keys := self._aec.observation_format.keys:
            _allow_pass(observations, keys[1])
        return observations

    def _infos(self) -> AgentInfos:
        infos = self._aec.infos
        if self._aec.observation_format.keys is None:
            _allow_pass(infos, "action_mask")
        return infos

    def state(self) -> np.ndarray:
        """Return the observation of seat 0, which encodes the seat to move.

        Its shape is (size,), its dtype `observation_dtype`; the array is fresh.
        """
        return self._started_aec().state()

    def render(self) -> str | np.ndarray | None:
        """Render the game (`busenv.render.render_modes`)."""
        return self._started_aec().render()

    def close(self) -> None:
        """Close the window."""
        self._aec.close()


def _allow_pass(by_agent: dict[str, Any], mask_key: str) -> None:
    """Let the masks of waiting agents allow PASS."""
    for entry in by_agent.values():
        entry[mask_key][PASS] |= not entry[mask_key].any()
