"""Learning speed of RLlib compared with `busenv train`, measured in turns on one machine.

`python -m busenv.experiments.profiling.rllib_speed` requires the extra `rllib`. Both train PPO by
self-play in games of 4 with the same width, batch size and epochs, and steady speeds are reported.
RLlib steps through every decision, forced ones included; `busenv train` skips and does not count
decisions with one legal action.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.ppo_run import PPORun

BATCH = 4096  # decisions of a rollout of RLlib, about as many as those of 64 games


def rllib_speed(config: PPOConfig, runners: int, seconds: float) -> float:
    """Return decisions learned per second by RLlib.

    runners: number of processes that play; with 0 the learner's process plays.
    """
    from busenv.envs import rllib

    settings = (
        rllib.ppo_config(config.width, players=config.players, reward=config.reward)
        .env_runners(num_env_runners=runners)
        .training(
            train_batch_size_per_learner=BATCH,
            minibatch_size=config.batch_size,
            num_epochs=config.epochs,
            lr=config.learning_rate,
            gamma=config.gamma,
        )
    )
    algorithm = settings.build_algo()
    try:
        before, began = _sampled(algorithm), time.perf_counter()  # a warm-up rollout
        after = before
        while time.perf_counter() - began < seconds:
            after = _sampled(algorithm)
        return (after - before) / (time.perf_counter() - began)
    finally:
        algorithm.stop()


def _sampled(algorithm: Any) -> float:
    """Learn from a rollout; return the number of decisions so far."""
    return float(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"])


def own_speed(config: PPOConfig, seconds: float) -> float:
    """Return decisions learned per second by `busenv train`."""
    with tempfile.TemporaryDirectory() as folder:
        run = PPORun(config, Path(folder))
        run.step()  # warms up
        before, began = run.decisions, time.perf_counter()
        while time.perf_counter() - began < seconds:
            run.step()
        return (run.decisions - before) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.rllib_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runners", type=int, nargs="+", default=[0, 2], help="of RLlib (0 and 2)")
    parser.add_argument("--repeats", type=int, default=3, help="of each measurement (3)")
    parser.add_argument("--seconds", type=float, default=20, help="of each at least (20)")
    parser.add_argument("--threads", type=int, default=2, help="of torch (2)")
    chosen = parser.parse_args()
    import ray  # imported late: --help needs no extra

    os.environ.setdefault("RAY_TMPDIR", "/tmp")  # paths of sockets must be short
    os.environ.setdefault("RAY_worker_niceness", "0")  # the priority of other processes
    alone = {"warm_start": "", "opponent_share": 0.0, "seconds": 1e6, "device": "cpu"}
    config = PRESETS["quick"].changed({**alone, "threads": chosen.threads})
    ray.init("local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    found: dict[str, list[float]] = {}
    for _ in range(chosen.repeats):
        own = own_speed(config, chosen.seconds)
        found.setdefault("busenv train", []).append(own)
        for runners in chosen.runners:
            speed = rllib_speed(config, runners, chosen.seconds)
            found.setdefault(f"RLlib, {runners} runners", []).append(speed)
    ray.shutdown()
    for name, speeds in found.items():
        told = ", ".join(f"{speed:,.0f}" for speed in speeds)
        print(f"{name}: {median(speeds):,.0f} decisions a second, the median of {told}")


if __name__ == "__main__":
    run_command(main)
