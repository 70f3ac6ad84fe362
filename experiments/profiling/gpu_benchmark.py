"""Check and measure the environment and PPO on a GPU, in one command of about nine minutes.

    python -m busenv.experiments.profiling.gpu_benchmark OUT --seconds 500

compares the games on the device with those on the CPU bit for bit, measures the speed of the
environment by number of games, then trains by PPO from random weights for the time that is left,
and rates the network on the machine's cores. OUT receives `result.json`, which is written after
each part, and `model.safetensors`. `--device cpu` runs the same program without a GPU.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

import busenv
from busenv.agents import make_agent
from busenv.agents.networks.mlp import build_network
from busenv.agents.networks.model_files import save_model
from busenv.core.bots import GREEDY, RANDOM
from busenv.experiments.ratings.match import play_match
from busenv.io import write_whole
from busenv.train.vector_ppo import (
    Games,
    LineUps,
    PPOSettings,
    frozen_policy,
    make_rollout,
    play_rollout,
    update,
)

# Settings of environments whose games are compared.
COMPARED: list[dict[str, Any]] = [
    {},
    {"num_players": (3, 4, 5), "reward": "shaped", "skip_forced": True, "relative_types": True},
    {"opponents": "greedy", "num_players": (3, 4, 5), "autoreset_mode": "SameStep"},
    {"opponents": ("random", "greedy", "greedy"), "reward": "rank", "illegal": "lose"},
    {"board": "generated:city:train:64", "rules": "splotter-1999", "num_players": 5},
    {"rules": "condensed", "reward": "margin", "skip_forced": True},
]
COMPARE_ROWS_EVERY = 16  # steps; all other outputs are compared after every step
SIZES = (1024, 4096, 16_384, 65_536, 131_072)  # games of the speed measurements
PART = 48  # games of a rating that one process plays
BOTS = ("greedy", "planner", "uct:100", "uct:300")
NUM_PAST_SELVES = 2
FIRST_PAST_SELF = GREEDY + 1  # owner of a seat
LOWEST_LEARNING_RATE = 0.05  # at the end of the run, as a share of that at the beginning


def make_env(device: str, games: int, **settings: Any) -> Any:
    """Make a self-play environment that returns its buffers; other opponents by settings."""
    settings = {"opponents": None, "illegal": "replace", "copy": False, **settings}
    return gymnasium.make_vec("busenv/Bus-v0", num_envs=games, device=device, **settings)


def compare(device: str, settings: dict[str, Any], games: int, steps: int) -> int:
    """Play the same actions on the device and on the CPU; returns the number of decisions.

    One action in about fifty is illegal. Raises AssertionError for the first difference.
    """
    envs = [make_env(one, games, **settings) for one in (device, "cpu")]
    on_device, on_cpu = (env.reset(seed=1) for env in envs)
    rng = np.random.default_rng(2)
    for step in range(steps):
        masks = on_cpu[-1]["action_mask"].view(np.bool_)
        actions = (rng.random(masks.shape, np.float32) * masks).argmax(axis=1)
        actions[rng.random(games) < 0.02] = -1
        if device == "cpu":
            on_device = envs[0].step(actions)
        else:
            on_device = envs[0].step(torch.from_numpy(actions).to(device))
        on_cpu = envs[1].step(actions)
        outputs = [(_named(one, step % COMPARE_ROWS_EVERY == 0)) for one in (on_device, on_cpu)]
        for name, wanted in outputs[1].items():
            if not torch.equal(outputs[0][name].cpu(), wanted):
                raise AssertionError(f"{name} differs in step {step} with {settings}")
    return games * steps


def _named(step: Any, with_rows: bool) -> dict[str, torch.Tensor]:
    """The outputs of a step by name, as tensors."""
    rows, rewards, terminations, _, info = step
    outputs = {"rewards of the acting seats": rewards, "terminations": terminations}
    outputs |= {"rows": rows, "masks": info["action_mask"]} if with_rows else {}
    names = ("seat", "acting_seat", "rewards", "illegal_action", "board_index")
    outputs |= {name: info[name] for name in names if name in info}
    return {name: torch.as_tensor(value) for name, value in outputs.items()}


def environment_speed(device: str, games: int, seconds: float) -> float:
    """Return decisions a second of the environment, rows and masks included.

    Every action is illegal, so that the environment draws a random legal one by itself.
    """
    env = make_env(device, games, threads=1)
    env.reset(seed=0)
    actions: Any = np.full(games, -1)
    actions = actions if device == "cpu" else torch.from_numpy(actions).to(device)
    for _ in range(10):
        env.step(actions)
    _wait(device)
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(20):
            env.step(actions)
        _wait(device)
        steps += 20
    return games * steps / (time.perf_counter() - start)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


class Trainer:
    """PPO from random weights among `greedy` and past selves, without checkpoints."""

    def __init__(self, device: str, games: int, width: int, settings: PPOSettings, rate: float):
        self.settings, self.rate, self._width = settings, rate, width
        self.device, self.board = torch.device(device), busenv.load_board("city")
        network = build_network("mlp", self.board, width, 0, relative_types=True)
        self.network = network.to(self.device)
        self._past = [copy.deepcopy(self.network) for _ in range(NUM_PAST_SELVES)]
        self._snapshots: list[dict[str, torch.Tensor]] = []
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=rate, eps=1e-5, fused=True)
        self._generator = torch.Generator(self.device).manual_seed(0)
        self._rng = np.random.default_rng(0)
        self._opponents = {
            FIRST_PAST_SELF + k: frozen_policy(past, self._generator, settings.bfloat16)
            for k, past in enumerate(self._past)
        }
        self._weights = torch.zeros(GREEDY + NUM_PAST_SELVES, device=self.device)
        self._weights[GREEDY - RANDOM] = 1.0
        env = make_env(device, games, reward="margin", relative_types=True, skip_forced=True)
        self._games = Games(env, LineUps(self._weights), 0, self._generator)
        size, num_actions = env.single_observation_space.shape[0], env.single_action_space.n
        self._rollout = make_rollout(settings.steps, games, size, int(num_actions), self.device)
        self.decisions = self.iteration = 0

    def step(self, progress: float) -> dict[str, float]:
        """Play a rollout and learn from it. progress: of the run, 0 to 1."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * max(1 - progress, LOWEST_LEARNING_RATE)
        shared: Any = {"settings": self.settings, "generator": self._generator}
        play_rollout(self._games, self.network, self._opponents, self._rollout, **shared)
        statistics = update(self.network, self.optimizer, self._rollout, **shared)
        self.decisions += int(statistics["decisions"])
        self.iteration += 1
        return statistics

    def add_past_self(self) -> None:
        """Store the network, and let one past self play with weights drawn from all stored ones."""
        self._snapshots.append({k: v.clone() for k, v in self.network.state_dict().items()})
        past = self._past[len(self._snapshots) % NUM_PAST_SELVES]
        past.load_state_dict(self._snapshots[self._rng.integers(len(self._snapshots))])
        self._weights[GREEDY:] = 0.5

    def save(self, path: Path) -> None:
        """Write the network as a model file."""
        card = {
            "network": "mlp", "width": self._width,
            "rules": "capstone-2024", "players": [4], "temperature": 0.25,
            "training": {"busenv": busenv.__version__, "decisions": self.decisions},
        }  # fmt: skip
        save_model(copy.deepcopy(self.network).cpu(), self.board, path, card)


def _rate(arguments: tuple[str, str, int]) -> tuple[int, int]:
    """Return games won and played by a model against copies of a bot, on one core."""
    model, bot, seed = arguments
    torch.set_num_threads(1)
    agents = [make_agent(spec, seed + k) for k, spec in enumerate((f"net:{model}", *[bot] * 3))]
    score = play_match(agents, PART, first_game=seed)[0]
    return int(score.wins), score.games


def rate(model: Path, workers: int, parts: int) -> dict[str, list[int]]:
    """Return games won and played against three copies of each bot, PART games a part."""
    jobs = [(str(model), bot, PART * k) for bot in BOTS for k in range(parts)]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        results = list(pool.map(_rate, jobs))
    return {
        bot: np.sum([r for job, r in zip(jobs, results, strict=True) if job[1] == bot], 0).tolist()
        for bot in BOTS
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all parts; write the result after each of them and return it."""
    began, out, device = time.perf_counter(), Path(arguments.out), arguments.device
    out.mkdir(parents=True, exist_ok=True)
    name = platform.processor() if device == "cpu" else torch.cuda.get_device_name()
    result: dict[str, Any] = {"device": name, "torch": torch.__version__, "environment": {}}

    def note(**parts: Any) -> None:
        result.update(parts, seconds=round(time.perf_counter() - began, 1))
        write_whole(out / "result.json", json.dumps(result, indent=1) + "\n")
        print(json.dumps(parts), flush=True)

    steps = arguments.compare // (len(COMPARED) * arguments.compare_games) or 1
    compared = sum(compare(device, one, arguments.compare_games, steps) for one in COMPARED)
    note(compared_decisions=compared)
    for games in (size for size in SIZES if size <= arguments.games):
        result["environment"][games] = round(environment_speed(device, games, 2.0))
        note(environment=result["environment"])
    settings = PPOSettings(
        steps=arguments.steps, batch_size=arguments.batch_size, epochs=arguments.epochs,
        bfloat16=device != "cpu",
    )  # fmt: skip
    trainer = Trainer(device, arguments.games, arguments.width, settings, arguments.learning_rate)
    trainer.step(0.0)  # compiles
    start, first = time.perf_counter(), trainer.decisions
    length = arguments.seconds - (start - began) - arguments.rating_seconds
    curve: list[dict[str, float]] = []
    while (elapsed := time.perf_counter() - start) < length:
        statistics = trainer.step(elapsed / length)
        if trainer.iteration % arguments.snapshot_every == 0:
            trainer.add_past_self()
            curve.append({"seconds": elapsed, "total": trainer.decisions, **statistics})
    _wait(device)
    speed = (trainer.decisions - first) / (time.perf_counter() - start)
    trainer.save(out / "model.safetensors")
    note(ppo={"decisions": trainer.decisions, "per_second": round(speed), "curve": curve})
    note(wins=rate(out / "model.safetensors", os.cpu_count() or 1, arguments.rating_parts))
    return result


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="folder of the results")
    add = parser.add_argument
    add("--device", default="cuda", choices=("cuda", "cpu"))
    add("--seconds", type=float, default=500.0, help="of the whole program")
    add("--rating-seconds", type=float, default=90.0, help="of them, left for the ratings")
    add("--rating-parts", type=int, default=8, help=f"groups of {PART} games against each bot")
    add("--compare", type=int, default=100_000_000, help="decisions compared with the CPU")
    add("--compare-games", type=int, default=16_384, help="games of the comparison")
    add("--games", type=int, default=16_384, help="games of PPO, most of the speed measurements")
    add("--steps", type=int, default=64, help="of a rollout")
    add("--batch-size", type=int, default=32_768)
    add("--epochs", type=int, default=2)
    add("--width", type=int, default=256)
    add("--learning-rate", type=float, default=1e-3)
    add("--snapshot-every", type=int, default=25, help="iterations between past selves")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
