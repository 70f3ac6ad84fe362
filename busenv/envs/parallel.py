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
from pettingzoo.utils.conversions import turn_based_aec_to_parallel_wrapper

from busenv.core.state import PASS
from busenv.envs.observation_format import Observation
from busenv.envs.pettingzoo import env, raw_env
from busenv.game.board import Board
from busenv.game.game import Game

AgentInfos = dict[str, dict[str, Any]]


class parallel_env(turn_based_aec_to_parallel_wrapper):  # noqa: N801 - PettingZoo's name
    """The environment in which one agent decides per step and the others pass (id 7).

    Arguments and errors as for `busenv.envs.pettingzoo.raw_env`.
    """

    def __init__(self, num_players: int = 4, **settings: Any) -> None:
        super().__init__(env(num_players, **settings))
        self.metadata = {**raw_env.metadata, "is_parallelizable": True}

    @property
    def board(self) -> Board:
        """The board of the current game."""
        return self.unwrapped.board

    @property
    def game(self) -> Game:
        """The current game. Raises ResetNeeded before the first `reset`."""
        if not hasattr(self.unwrapped, "game"):
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self.unwrapped.game

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], AgentInfos]:
        """Start a game, as `raw_env.reset`; returns observations and infos."""
        return self._allow_pass(*super().reset(seed, options))

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
        if self.game.is_over or not self.aec_env.agents:
            return {}, {}, {}, {}, {}
        mover = self.unwrapped.agent_selection
        if mover not in actions:
            raise ValueError(
                f"no action for {mover}, the agent to move; actions were given for {[*actions]}"
            )
        observations, *results, infos = super().step(actions)
        for info in infos.values():
            info.pop("active_agent", None)  # a string, which some libraries cannot store
        observations, infos = self._allow_pass(observations, infos)
        return observations, *results, infos

    def _allow_pass(
        self, observations: dict[str, Any], infos: AgentInfos
    ) -> tuple[dict[str, Observation], AgentInfos]:
        """Let the masks of waiting agents allow PASS."""
        keys = self.unwrapped.observation_format.keys
        for entry in (observations if keys else infos).values():
            mask = entry[keys[1] if keys else "action_mask"]
            mask[PASS] |= not mask.any()
        return observations, infos
