"""RLlib: a multi-agent environment and an RLModule with action masks, for the new API stack.

Requires the extra `rllib`. Seats are agents, and one policy plays all of them:

    from busenv.envs import rllib

    algorithm = rllib.ppo_config(num_players=(3, 4, 5), reward="shaped").build_algo()
    algorithm.train()
"""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env
from torch import nn

from busenv.envs.pettingzoo import raw_env
from busenv.game.rules import player_counts

NAME, POLICY = "busenv", "seat"
KEYS = ("observations", "action_mask")


class BusMultiAgentEnv(MultiAgentEnv):
    """The game with agents `player_0`, ..., in turns; only the agent to move observes.

    settings: "num_players" is a number of players, or several to draw from in each game, default 4.
        The others are those of `busenv.bus_v0.env`; observations are float32 by default.
    """

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        config = {"observation_dtype": "float32", "observation_keys": KEYS, **(settings or {})}
        self._player_counts = player_counts(config.pop("num_players", 4))
        self._env = raw_env(max(self._player_counts), **config)
        self.possible_agents = self._env.possible_agents
        self.agents = self.possible_agents
        self.observation_spaces = self._env.observation_spaces
        self.action_spaces = self._env.action_spaces
        super().__init__()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start a game; returns the observation of the agent to move, by agent, and no infos."""
        super().reset(seed=seed)
        players = int(self.np_random.choice(self._player_counts))
        self._env.reset(int(self.np_random.integers(2**63)), {"num_players": players})
        self.agents = self._env.agents
        return self._observations([self._env.agent_selection]), {}

    def step(self, action_dict: dict[str, int]) -> Any:
        """Take the action of the agent to move.

        Returns observations of the next agent, or of all at the end, the rewards of all agents,
        terminations, truncations (False) and no infos, by agent.
        """
        self._env.step(int(action_dict[self._env.agent_selection]))
        over = all(self._env.terminations.values())
        agents = self.agents if over else [self._env.agent_selection]
        rewards = {agent: float(reward) for agent, reward in self._env.rewards.items()}
        terminations = {**self._env.terminations, "__all__": over}
        return self._observations(agents), rewards, terminations, {"__all__": False}, {}

    def _observations(self, agents: list[str]) -> dict[str, Any]:
        return {agent: self._env.observe(agent) for agent in agents}


class MaskedModule(TorchRLModule, ValueFunctionAPI):
    """A masked policy and a value network with a shared first layer.

    `model_config`: "width" of the layers, default 256.
    """

    def setup(self) -> None:
        size, width = self.observation_space[KEYS[0]].shape[0], self.model_config.get("width", 256)
        self.shared = nn.Sequential(nn.Linear(size, width), nn.ReLU())
        self.policy, self.value = (
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))
            for outputs in (int(self.action_space.n), 1)
        )

    def _embed(self, batch: dict[str, Any]) -> Any:
        return self.shared(batch[Columns.OBS][KEYS[0]].float())

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        shared = self._embed(batch)
        illegal = batch[Columns.OBS][KEYS[1]] == 0
        logits = self.policy(shared).masked_fill(illegal, torch.finfo(torch.float32).min)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: shared}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        if embeddings is None:
            embeddings = self._embed(batch)
        return self.value(embeddings).squeeze(-1)


def register() -> None:
    """Register the environment with RLlib as "busenv"."""
    register_env(NAME, BusMultiAgentEnv)


def ppo_config(width: int = 256, **settings: Any) -> PPOConfig:
    """Return a PPO configuration with one policy for all seats.

    width: of the layers. settings: those of `BusMultiAgentEnv` except `observation_keys`, whose
    default the module requires: ValueError for another value.
    """
    if tuple((keys := settings.get("observation_keys", KEYS)) or ()) != KEYS:
        raise ValueError(f"observation_keys is {keys!r}; allowed: {KEYS}")
    register()
    return (
        PPOConfig()
        # RLlib's check of environments plays illegal actions.
        .environment(NAME, env_config=settings, disable_env_checking=True)
        .multi_agent(policies={POLICY}, policy_mapping_fn=lambda *_, **__: POLICY)
        .rl_module(
            rl_module_spec=RLModuleSpec(module_class=MaskedModule, model_config={"width": width})
        )
    )
