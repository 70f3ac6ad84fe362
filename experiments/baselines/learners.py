"""What learns: the baselines, and one learner's seat in the usual setup of Stable-Baselines3."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import VecEnvWrapper

from busenv.agents import Agent
from busenv.agents.neural.files import save_model
from busenv.agents.neural.networks import build_network, weights_of
from busenv.agents.neural.policy import PolicyAgent
from busenv.board import load_board
from busenv.envs.sb3 import BusVecEnv
from busenv.rules import as_rules
from busenv.train.checkpoint import NAME, read_state, read_tensors, restore, save_checkpoint
from busenv.train.config import PRESETS, Config
from busenv.train.interrupts import interrupts_deferred
from busenv.train.ppo import LOWEST_LEARNING_RATE, NetworkPolicy, ppo_settings
from busenv.train.trainer import MODEL, Run

STEPS = 64  # of each environment in a rollout of the usual setup


class Learning(Protocol):
    """A run of a learner, as `busenv.train.trainer.Run` is one."""

    decisions: int
    agent: Agent

    @property
    def seconds(self) -> float: ...

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


class OneSeat:
    """MaskablePPO as it comes, one learner's seat of each of many games, copies of the first of
    the settings' bots on the others. Network and settings are those of our own training.

    Goes on from the folder's checkpoint, with new games.
    """

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.board, self.rules = load_board(config.board), as_rules(config.rules)
        torch.set_num_threads(config.threads)
        self.network = build_network(config.network, self.board, config.width, config.seed)
        games = BusVecEnv(
            config.games,
            opponent=config.bots[0],
            num_players=config.players,
            rules=self.rules,
            board=self.board,
            reward=config.reward,
        )
        games.seed(config.seed)
        self._ppo = MaskablePPO(
            NetworkPolicy,
            _Divided(games, config.reward_unit),
            n_steps=STEPS,
            policy_kwargs={"network": self.network},
            device="cpu",
            **{**ppo_settings(config), "learning_rate": self._learning_rate},
        )
        self._ppo.set_logger(Logger(None, []))
        self.agent = PolicyAgent(
            self.network, self.board, "one-seat", config.seed, config.temperature
        )
        self.decisions, self._seconds = 0, 0.0
        if (folder / NAME).exists():
            self._resume()
        self._began = time.monotonic() - self._seconds

    @property
    def seconds(self) -> float:
        """Of the run so far, those before a checkpoint included."""
        return time.monotonic() - self._began

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1 and a little more."""
        if self.config.decisions is not None:
            return self.decisions / self.config.decisions
        assert self.config.seconds is not None
        return self._seconds / self.config.seconds

    @property
    def is_done(self) -> bool:
        return self.progress >= 1

    def step(self) -> None:
        """One rollout, and learning from it."""
        rollout = self.config.games * STEPS
        with interrupts_deferred():  # what is saved on Ctrl-C is whole
            self._ppo.learn(rollout, reset_num_timesteps=False)
            self.decisions += rollout
            self._seconds = self.seconds

    def save(self) -> None:
        """Write the checkpoint, and the model with its card."""
        state = {
            "config": self.config.to_dict(),
            "board": {"name": self.board.name, "fingerprint": self.board.fingerprint},
            "rules": self.rules.to_dict(),
            "iteration": 0,
            "decisions": self.decisions,
            "imitated": 0,
            "seconds": self._seconds,
            "pool": {},
        }
        save_checkpoint(self.folder, self.network, self._ppo.policy.optimizer, state)
        card = {"network": self.config.network, "width": self.config.width}
        card |= {"temperature": self.config.temperature, "training": state}
        save_model(self.network, self.board, self.folder / MODEL, card)

    def _learning_rate(self, remaining: float) -> float:
        """As in our own training; the library knows of one rollout at a time only."""
        return self.config.learning_rate * max(1 - self.progress, LOWEST_LEARNING_RATE)

    def _resume(self) -> None:
        state = read_state(self.folder)
        weights = weights_of(self.config.network, self.board, self.config.width)
        tensors = read_tensors(self.folder, weights)
        restore(tensors, self.network, self._ppo.policy.optimizer)
        self.decisions, self._seconds = state.decisions, state.seconds


@dataclass(frozen=True)
class Learner:
    """about: what it is, in a line. changes: of the settings of `quick`. begin: makes a run."""

    about: str
    changes: dict[str, Any]
    begin: Callable[[Config, Path], Learning] = Run

    def config(self, players: int, seed: int, limit: dict[str, Any], threads: int) -> Config:
        """All settings of a run."""
        own = {"players": (players,), "seed": seed, "threads": threads, "device": "cpu"}
        return PRESETS["quick"].changed({**self.changes, **own, **limit})


LEARNERS = {
    "ppo": Learner(
        "PPO from every seat, among greedy, planner and past selves, from nothing",
        {"warm_start": ""},
    ),
    "one-seat": Learner(
        "the usual setup: MaskablePPO, one seat among three greedy, from nothing",
        {"warm_start": "", "bots": ("greedy",), "batch_size": 1024, "epochs": 4},
        OneSeat,
    ),
    "imitation": Learner(
        "imitation of the search uct:50, nothing else",
        {"warm_start": "uct:50", "warm_share": 1.0},
    ),
    "pupil": Learner(
        "imitation of planner for 30% of the budget, then as ppo: what busenv train does",
        {"warm_start": "planner", "warm_share": 0.3},
    ),
}
