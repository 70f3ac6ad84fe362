"""How fast training learns: this package's loop and the usual setup, side by side.

In the usual setup there is one learner's seat, the other seats are stepped inside of the
environment by the same policy, and the loop is the library's own.
`python -m busenv.experiments.profiling.training_speed` measures both and prints the tables.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import TransformReward
from rich.console import Console
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

from busenv import load_board
from busenv.agents.networks.mlp import SEAT_VALUE_NETWORKS, build_network
from busenv.agents.networks.policy_agent import PolicyAgent
from busenv.envs.gymnasium import BusEnv
from busenv.experiments.common.console import TextTable
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.ratings.match import Score
from busenv.experiments.training.training_run import against
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.ppo import NetworkPolicy, ppo_settings
from busenv.train.ppo_run import PPORun

USUAL_ENVS = 8
BOTS = ("random", "greedy")
EVERY_SEAT, ONE_SEAT = "every seat", "one seat, the library's loop"


class Stopwatch:
    """Adds up the time inside of some calls, those inside of each other counted once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            began = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.perf_counter() - began

        return timed


def seat_training(config: PPOConfig, seconds: float) -> tuple[float, float]:
    """Decisions learned from a second by PPO, and the share of time in torch's passes and steps."""
    with tempfile.TemporaryDirectory() as folder:
        run = PPORun(config, Path(folder))
        run.step()  # warms up
        watch = Stopwatch()
        kind, policy = type(run.network), run.ppo.policy  # past selves are of this kind too
        forward, backward = kind.forward, torch.Tensor.backward
        kind.forward = watch.around(forward)
        policy.evaluate_actions = watch.around(policy.evaluate_actions)  # type: ignore[method-assign]
        policy.optimizer.step = watch.around(policy.optimizer.step)  # type: ignore[method-assign]
        torch.Tensor.backward = watch.around(backward)  # type: ignore[method-assign]
        decisions, began = run.decisions, time.perf_counter()
        try:
            while time.perf_counter() - began < seconds:
                run.step()
        finally:
            kind.forward = forward
            torch.Tensor.backward = backward  # type: ignore[method-assign]
        spent = time.perf_counter() - began
        return (run.decisions - decisions) / spent, watch.seconds / spent


class _Until(BaseCallback):
    """Ends the library's loop with the first rollout after its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self.learned, self.spent = 0, 0.0

    def _on_rollout_start(self) -> None:
        # Whatever was collected before is learned from by now.
        if self.num_timesteps == 0:
            self._began = time.perf_counter()
        self.learned, self.spent = self.num_timesteps, time.perf_counter() - self._began

    def _on_step(self) -> bool:
        return self.learned == 0 or self.spent < self._seconds


def usual_setup(config: PPOConfig) -> tuple[MaskablePPO, nn.Module]:
    """The usual setup, with the same network, settings and updates."""
    board = load_board(config.board)
    torch.set_num_threads(config.threads)
    network = build_network(config.network, board, config.width, config.seed)
    others = PolicyAgent(network, board)

    def make() -> gymnasium.Env:
        env = BusEnv(opponents=others, rules=config.rules, board=board, reward=config.reward)
        return TransformReward(env, lambda reward: float(reward) / config.reward_unit)

    ppo = MaskablePPO(
        NetworkPolicy,
        DummyVecEnv([make] * USUAL_ENVS),
        n_steps=4 * config.batch_size // USUAL_ENVS,
        policy_kwargs={"network": network},
        device="cpu",
        **ppo_settings(config),
    )
    return ppo, network


def usual_training(config: PPOConfig, seconds: float) -> float:
    """Decisions learned from a second in the usual setup."""
    until = _Until(seconds)
    usual_setup(config)[0].learn(10**12, until)
    return until.learned / until.spent


def learning(config: PPOConfig, decisions: int, games: int) -> list[tuple[str, list[Score]]]:
    """What both are worth against three of each of BOTS, by self-play alone, after so many
    decisions."""
    alone = config.changed({"seconds": None, "decisions": decisions, "opponent_share": 0.0})
    with tempfile.TemporaryDirectory() as folder:
        run = PPORun(alone, Path(folder))
        while not run.is_done:
            run.step()
    ppo, network = usual_setup(alone)
    ppo.learn(decisions)
    usual = PolicyAgent(network, run.board, seed=alone.seed, temperature=alone.temperature)
    learned = ((EVERY_SEAT, run.agent, run.decisions), (ONE_SEAT, usual, ppo.num_timesteps))
    return [
        (
            f"{name}, {count:,} decisions",
            [against(agent, bot, games, alone.seed)[0] for bot in BOTS],
        )
        for name, agent, count in learned
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.training_speed", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement (30)")
    parser.add_argument("--repeats", type=int, default=3, help="of each (3)")
    parser.add_argument("--threads", type=int, default=2, help="of torch (2)")
    parser.add_argument("--network", choices=[*SEAT_VALUE_NETWORKS], default="mlp", help="(mlp)")
    parser.add_argument("--decisions", type=int, default=150_000, help="learned from (150000)")
    parser.add_argument("--games", type=int, default=400, help="of each rating (400)")
    parser.add_argument("--seed", type=int, default=0, help="of what is learned (0)")
    chosen = parser.parse_args()
    changes = {"threads": chosen.threads, "network": chosen.network, "device": "cpu"}
    changes |= {"seed": chosen.seed, "warm_start": "", "seconds": 1e6}
    config = PRESETS["quick"].changed(changes)
    seats, shares, usual = [], [], []
    for _ in range(chosen.repeats):  # in turns: a slow minute of the machine falls on all alike
        speed, share = seat_training(config, chosen.seconds)
        seats.append(speed)
        shares.append(share)
        usual.append(usual_training(config, chosen.seconds))
    console = Console()
    TextTable(
        f"{chosen.network}, {chosen.threads} threads, medians of {chosen.repeats} runs of "
        f"{chosen.seconds:g} s, {os.cpu_count()} cores",
        ["training", "decisions learned\nfrom a second", "in torch's\npasses and steps"],
        [
            [EVERY_SEAT, f"{np.median(seats):,.0f}", f"{np.median(shares):.0%}"],
            [ONE_SEAT, f"{np.median(usual):,.0f}", ""],
        ],
    ).show(console)
    console.print(f"{np.median(np.array(seats) / usual):.1f} times as many")
    learned = learning(config, chosen.decisions, chosen.games)
    TextTable(
        f"{chosen.games} games each; par is 25%",
        ["learned from", *(f"games won\nagainst three {bot}" for bot in BOTS)],
        [[name, *map(_won, scores)] for name, scores in learned],
    ).show(console)


def _won(score: Score) -> str:
    low, high = score.interval()
    return f"{score.wins / score.games:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    run_command(main)
