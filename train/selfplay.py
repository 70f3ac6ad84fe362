"""PPO by self-play: one network plays every seat, and every seat's decisions are learned from."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from agents.policy import PolicyAgent, policy_settings
from busenv.sb3 import BusVecEnv
from train.rollout import SeatRolloutBuffer

# A whole game of four is about 200 decisions; a rollout holds many games and parts of games.
GAMES, STEPS = 64, 256


class Clock(BaseCallback):
    """Stops the training when its time is up, not before one rollout; reports after each."""

    def __init__(self, seconds: float, report: Callable[[float, int], None]) -> None:
        super().__init__()
        self._seconds, self._report = seconds, report
        self._rollouts = 0
        self.learned = 0

    def _on_training_start(self) -> None:
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        return self._rollouts == 0 or self.elapsed() < self._seconds

    def elapsed(self) -> float:
        """Seconds of training so far."""
        return time.monotonic() - self._began

    def _on_rollout_end(self) -> None:
        self._rollouts += 1
        self._report(self.elapsed(), self.learned)
        self.learned = self.num_timesteps  # as soon as the update that follows is done


def compile_first(env: BusVecEnv) -> None:
    """Have everything compiled before the clock starts."""
    env.reset()
    env.step(env.action_masks().argmax(axis=1))
    buffer = SeatRolloutBuffer(1, env.observation_space, env.action_space, n_envs=GAMES, env=env)
    buffer.compute_returns_and_advantage(torch.zeros(GAMES), env.batch.over)


def train_selfplay(
    seconds: float,
    seed: int = 0,
    threads: int = 2,
    report: Callable[[PolicyAgent, float, int], None] = lambda agent, elapsed, decisions: None,
) -> PolicyAgent:
    """Train a small agent for a time and return it.

    report: called with the agent so far, the seconds and the decisions learned from, before each
        update and once more at the end.
    """
    torch.set_num_threads(threads)
    env = BusVecEnv(GAMES, reward="margin")
    compile_first(env)
    model = MaskablePPO(
        "MlpPolicy",
        env,
        learning_rate=5e-4,
        n_steps=STEPS,
        batch_size=2048,
        n_epochs=3,
        gamma=1.0,
        gae_lambda=0.95,
        ent_coef=0.01,
        vf_coef=0.25,
        seed=seed,
        rollout_buffer_class=SeatRolloutBuffer,
        rollout_buffer_kwargs={"env": env},
        policy_kwargs=policy_settings(env.batch.board),
        device="cpu",
    )
    agent = PolicyAgent(model.policy, env.batch.board, seed=seed)
    callback = Clock(seconds, lambda elapsed, decisions: report(agent, elapsed, decisions))
    model.learn(10**12, callback)
    model.policy.set_training_mode(False)
    report(agent, callback.elapsed(), callback.learned)
    return agent
