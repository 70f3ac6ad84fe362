"""What learns: the baselines, and one learner's seat in the usual setup of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnvWrapper
from torch import nn

from busenv.agents import Agent
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.envs.sb3 import BusVecEnv
from busenv.experiments.benchmark.results import Entry
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.ppo import ppo_settings
from busenv.train.ppo_run import PPORun
from busenv.train.run import TrainingRun

STEPS = 64  # of each environment in a rollout of the usual setup


class Learning(Protocol):
    """A run of a learner, as `busenv.train.ppo_run.PPORun` is one."""

    decisions: int

    @property
    def agent(self) -> Agent: ...

    @property
    def progress(self) -> float: ...

    @property
    def is_done(self) -> bool: ...

    def step(self) -> object: ...

    def save(self) -> None: ...


class _Divided(VecEnvWrapper):
    """Environments whose rewards are divided by a number: PPO learns from small ones."""

    def __init__(self, venv: BusVecEnv, unit: float) -> None:
        super().__init__(venv)
        self._unit = unit

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, ends, infos = self.venv.step_wait()
        return observations, rewards / self._unit, ends, infos


class _Network(nn.Module):
    """A policy of Stable-Baselines3, called as a network of `busenv.agents.networks.mlp`."""

    def __init__(self, policy: MaskableActorCriticPolicy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found: Any = self.policy.get_distribution(observations).distribution
        return found.logits, self.policy.predict_values(observations)


class OneSeat(TrainingRun):
    """MaskablePPO as its users set it up: one learner's seat of each of many games, copies of the
    first of the settings' bots on the others; the library's loop and policy.

    Goes on from the folder's checkpoint, with new games.
    """

    config: PPOConfig

    def __init__(self, config: PPOConfig, folder: Path) -> None:
        super().__init__(config, folder)
        games = BusVecEnv(
            config.games,
            opponents=config.bots[0],
            num_players=config.players,
            rules=self.rules,
            board=self.board,
            reward=config.reward,
        )
        games.seed(config.seed)
        self._ppo = MaskablePPO(
            "MlpPolicy",
            _Divided(games, config.reward_unit),
            n_steps=STEPS,
            policy_kwargs={"net_arch": [config.width] * 2},
            device="cpu",
            **{**ppo_settings(config), "learning_rate": config.learning_rate},
        )
        self._ppo.set_logger(Logger(None, []))  # its own leaves a folder behind in each rollout
        policy = self._ppo.policy
        self.network, self._optimizer = policy, policy.optimizer
        self.agent = PolicyAgent(
            _Network(policy), self.board, "one-seat", config.seed, config.temperature
        )
        checkpoint = self._checkpoint(dict(policy.state_dict()))
        if checkpoint is not None:
            self._resume(*checkpoint)
        self._start_clock()

    def step(self) -> None:
        """One rollout, and learning from it."""
        rollout = self.config.games * STEPS
        self._ppo.learn(rollout, reset_num_timesteps=False)
        self.iteration += 1
        self.decisions += rollout
        self._seconds = self.seconds

    def save(self) -> None:
        """Write the checkpoint."""
        self._save_checkpoint()


@dataclass(frozen=True)
class BenchmarkLearner:
    """about: what it is, in a line. changes: of the settings that are its base. begin: makes a run
    of them."""

    about: str
    changes: dict[str, Any]
    begin: Callable[[Any, Path], Learning] = PPORun
    base: AnyConfig = PRESETS["quick"]

    def config(self, entry: Entry, seed: int, threads: int) -> AnyConfig:
        """All settings of a run."""
        limit: dict[str, Any] = {"decisions": entry.decisions}
        if entry.hours is not None:
            limit = {"seconds": 3600 * entry.hours}
        own = {"players": (entry.players,), "seed": seed, "threads": threads, "device": "cpu"}
        return self.base.changed({**self.changes, **own, **limit})


# Stable-Baselines3's own settings, but for minibatches of 1024 (64) and some entropy (none).
USUAL = {
    "warm_start": "",
    "bots": ("greedy",),
    "learning_rate": 3e-4,
    "gae_lambda": 0.95,
    "batch_size": 1024,
    "epochs": 10,
    "entropy_coef": 0.01,
}

LEARNERS = {
    "ppo": BenchmarkLearner(
        "PPO on every seat's decisions, against greedy, planner and past selves",
        {"warm_start": ""},
    ),
    "one-seat": BenchmarkLearner(
        "MaskablePPO of Stable-Baselines3 on one seat, against greedy",
        USUAL,
        OneSeat,
    ),
    "every-seat": BenchmarkLearner(
        "PPO on every seat's decisions with one-seat's settings, against greedy and past selves",
        USUAL,
    ),
    "imitation": BenchmarkLearner(
        "imitation of the search uct:50",
        {"warm_start": "uct:50", "imitation_share": 1.0},
    ),
    "expert-iteration": BenchmarkLearner(
        "expert iteration: self-play by a search of 64 simulations that the network guides; "
        "decisions of fast searches do not count, and the network is rated without search",
        {
            "network": "seats",
            "width": 256,
            "games": 64,
            "bot_share": 0.0,
            "replay_size": 100_000,
            "reuse": 2.0,
            "learning_rate": 1e-3,
            "temperature": 0.25,
        },
        ExpertRun,
        ExpertConfig(),
    ),
    "imitation-ppo": BenchmarkLearner(
        "imitation of planner for 30% of the budget, then ppo; the default of busenv train",
        {"warm_start": "planner", "imitation_share": 0.3},
    ),
}
