"""Learners of the benchmark, among them MaskablePPO of Stable-Baselines3 on one seat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger

from busenv.agents import from_policy
from busenv.agents.policy_agent import FunctionAgent
from busenv.envs.sb3 import BusVecEnv
from busenv.evaluation.benchmark.results import Entry
from busenv.rewards import as_reward
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.config_files import AnyConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig, FitConfig, SelfPlayConfig
from busenv.train.expert_iteration.expert_run import ExpertRun, FitRun
from busenv.train.expert_iteration.selfplay_run import run_selfplay
from busenv.train.ppo_run import PPORun
from busenv.train.training_run import MODEL, TrainingRun

ROLLOUT_STEPS = 64  # of each environment in a rollout of OneSeatRun
POLICY = "policy.zip"  # that OneSeatRun saves


def one_seat_agent(path: str | MaskableActorCriticPolicy) -> FunctionAgent:
    """Return the agent of a policy, or of the file of one that OneSeatRun saved."""
    policy = MaskableActorCriticPolicy.load(path) if isinstance(path, str) else path

    @torch.no_grad()
    def logits(rows: np.ndarray, masks: np.ndarray) -> torch.Tensor:
        distribution: Any = policy.get_distribution(torch.from_numpy(rows)).distribution
        return distribution.logits

    return from_policy(logits, temperature=PRESETS["quick"].temperature, name="one-seat")


class OneSeatRun(TrainingRun):
    """MaskablePPO in the usual setup: the library's loop and policy on one seat of each game.

    Copies of the first of the settings' bots hold the other seats. The run does not resume.
    """

    config: PPOConfig

    def __init__(self, config: PPOConfig, folder: Path) -> None:
        super().__init__(config, folder)
        write = as_reward(config.reward)

        def reward(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
            write(before, after, rewards)
            rewards /= config.reward_unit

        games = BusVecEnv(
            config.games,
            opponents=config.bots[0],
            num_players=config.players,
            rules=self.rules,
            board=self.board,
            reward=reward,
        )
        self._ppo = MaskablePPO(
            "MlpPolicy",
            games,
            n_steps=ROLLOUT_STEPS,
            policy_kwargs={"net_arch": [config.width] * 2},
            device="cpu",
            learning_rate=config.learning_rate,
            batch_size=config.batch_size,
            n_epochs=config.epochs,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip_range,
            ent_coef=config.entropy_coef,
            vf_coef=config.value_coef,
            max_grad_norm=config.max_grad_norm,
            seed=config.seed % 2**32,
        )
        self._ppo.set_logger(Logger(None, []))  # the default logger creates a folder per rollout
        policy = self._ppo.policy
        # Networks of Stable-Baselines3, which the run uses like an `Mlp`.
        self.network, self.optimizer = policy, policy.optimizer  # type: ignore[assignment]
        self.agent = one_seat_agent(policy)
        self.agent.reset(config.seed)
        self._start_clock()

    def step(self) -> None:
        """Play one rollout and learn from it."""
        rollout = self.config.games * ROLLOUT_STEPS
        self._ppo.learn(rollout, reset_num_timesteps=False)
        self.iteration += 1
        self.decisions += rollout
        self._seconds = self.seconds

    def save(self) -> None:
        """Write the policy for `one_seat_agent`."""
        self._ppo.policy.save(str(self.folder / POLICY))


LearnerRun = PPORun | ExpertRun | FitRun | OneSeatRun


@dataclass(frozen=True)
class BenchmarkLearner:
    """A learner: a description in one line, settings that differ from `base`, the class of runs.

    teacher: agent whose games a run of class `FitRun` plays first. agent: spec of the agent that a
    run saves, with the place of its folder.
    """

    about: str
    settings: dict[str, Any]
    make_run: Callable[[Any, Path], LearnerRun] = PPORun
    base: AnyConfig = PRESETS["quick"]
    teacher: str = ""
    agent: str = f"net:{{}}/{MODEL}"

    def config(self, entry: Entry, seed: int, threads: int) -> AnyConfig:
        """All settings of a run."""
        common = {"players": (entry.players,), "seed": seed, "threads": threads}
        common |= {} if self.teacher else {"decisions": entry.decisions}
        common |= {"device": "cpu"} if isinstance(self.base, PPOConfig) else {}
        return self.base.changed({**self.settings, **common})

    def start(self, config: AnyConfig, decisions: int, folder: Path) -> LearnerRun:
        """Start a run in a folder. decisions: number of samples of the teacher."""
        if self.teacher:
            games = SelfPlayConfig(
                agent=self.teacher,
                samples=decisions,
                full_search_share=1.0,
                players=config.players,
                seed=config.seed,
                threads=config.threads,
            )
            run_selfplay(games, folder / "games", Console(quiet=True))
            config = config.changed({"data": (str(folder / "games"),)})
        return self.make_run(config, folder)


LEARNERS = {
    "ppo": BenchmarkLearner(
        "PPO on every seat's decisions, against greedy, planner and past selves", {}
    ),
    "ppo-self-play": BenchmarkLearner(
        "ppo with the network in every seat, without bots and past selves",
        {"bots": (), "opponent_share": 0.0},
    ),
    "one-seat": BenchmarkLearner(
        "MaskablePPO of Stable-Baselines3 on one seat, against greedy",
        # Stable-Baselines3's defaults, except minibatches of 1024 (64), an entropy bonus (none)
        {
            "bots": ("greedy",),
            "learning_rate": 3e-4,
            "batch_size": 1024,
            "epochs": 10,
            "entropy_coef": 0.01,
            "relative_types": False,
        },
        OneSeatRun,
        agent=f"py:busenv.evaluation.benchmark.learners:one_seat_agent:{{}}/{POLICY}",
    ),
    "imitation": BenchmarkLearner(
        "imitation of the search uct:50",
        {"network": "seats", "learning_rate": 1e-3, "temperature": 0.0},
        FitRun,
        FitConfig(),
        teacher="uct:50",
    ),
    "expert-iteration": BenchmarkLearner(
        "expert iteration: self-play by a search of 16 simulations that the network guides; the "
        "network is rated without search",
        {
            "network": "seats",
            "temperature": 0.0,
            "games": 64,
            "num_simulations": 16,
            "full_search_share": 1.0,
            "bot_share": 0.0,
            "replay_size": 100_000,
            "reuse": 2.0,
            "learning_rate": 1e-3,
        },
        ExpertRun,
        ExpertConfig(),
    ),
}
