"""Training speed: PPO on every seat's decisions, compared with MaskablePPO on one seat.

Both use the same settings; in the second, copies of the first bot hold the other seats.
`python -m busenv.experiments.profiling.training_speed` measures both in turns and prints a table.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from busenv.experiments.benchmark.learners import OneSeatRun
from busenv.experiments.common.console import TextTable
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.train.config import PRESETS, PPOConfig
from busenv.train.ppo_run import PPORun


def every_seat_speed(config: PPOConfig, seconds: float) -> tuple[float, float]:
    """Return decisions learned per second by `PPORun`, and the share of time in updates."""
    with tempfile.TemporaryDirectory() as folder:
        run = PPORun(config, Path(folder))
        run.step()
        update, updating = run.ppo.update, []

        def timed_update(*args: object) -> dict[str, float]:
            start = time.perf_counter()
            statistics = update(*args)  # type: ignore[arg-type]
            updating.append(time.perf_counter() - start)
            return statistics

        run.ppo.update = timed_update  # type: ignore[method-assign, assignment]
        speed, spent = _speed(run, seconds)
        return speed, sum(updating) / spent


def one_seat_speed(config: PPOConfig, seconds: float) -> float:
    """Return decisions learned per second by `OneSeatRun`."""
    with tempfile.TemporaryDirectory() as folder:
        run = OneSeatRun(config, Path(folder))
        run.step()
        return _speed(run, seconds)[0]


def _speed(run: PPORun | OneSeatRun, seconds: float) -> tuple[float, float]:
    """Step a run for at least `seconds`; return decisions per second, and the seconds spent."""
    decisions, start = run.decisions, time.perf_counter()
    while time.perf_counter() - start < seconds:
        run.step()
    spent = time.perf_counter() - start
    return (run.decisions - decisions) / spent, spent


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.training_speed", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement (30)")
    parser.add_argument("--repeats", type=int, default=3, help="of each (3)")
    parser.add_argument("--threads", type=int, default=2, help="of play and of torch (2)")
    parser.add_argument("--precision", default="auto", help="float32, bfloat16 or auto (auto)")
    parser.add_argument("--seed", type=int, default=0, help="(0)")
    arguments = parser.parse_args()
    names = ("threads", "precision", "seed")
    changes = {name: getattr(arguments, name) for name in names}
    config = PRESETS["quick"].changed(
        {**changes, "device": "cpu", "warm_start": "", "seconds": 1e6}
    )
    every, updating, one = [], [], []
    for _ in range(arguments.repeats):  # in turns, so that other load affects both alike
        speed, share = every_seat_speed(config, arguments.seconds)
        every.append(speed)
        updating.append(share)
        one.append(one_seat_speed(config, arguments.seconds))
    console = Console()
    TextTable(
        f"{arguments.threads} threads, medians of {arguments.repeats} runs of "
        f"{arguments.seconds:g} s, {os.cpu_count()} cores",
        ["training", "decisions learned\nper second", "time in updates"],
        [
            ["every seat", f"{np.median(every):,.0f}", f"{np.median(updating):.0%}"],
            ["one seat, MaskablePPO", f"{np.median(one):,.0f}", ""],
        ],
    ).show(console)
    console.print(f"{np.median(np.array(every) / one):.1f} times as many")


if __name__ == "__main__":
    run_command(main)
