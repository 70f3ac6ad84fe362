"""Check and measure the environment and PPO on a GPU, in one command of about nine minutes.

    python -m experiments.gpu_benchmark OUT --seconds 500

compares the games on the device with those on the CPU bit for bit, measures the speed of the
environment by number of games, then trains by PPO from random weights for the time that is left,
and rates the network on the machine's cores. OUT receives `result.json`, which is written after
each part, and `model.safetensors`. `--device cpu` runs the same program without a GPU.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

import busenv
from busenv.agents import make_agent
from busenv.agents.match import play_match
from busenv.common.cores import available_cores
from busenv.core.bots import GREEDY, RANDOM
from busenv.io import write_whole
from busenv.networks.factory import build_network
from busenv.networks.model_files import save_model
from busenv.train.ppo import (
    Games,
    LineUps,
    PPOSettings,
    frozen_policy,
    make_rollout,
    play_rollout,
    update,
)
from busenv.train.run import LOWEST_LEARNING_RATE

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


def make_env(device: str, games: int, **settings: Any) -> Any:
    """Make a self-play environment that returns its buffers; other opponents by settings."""
    settings = {"opponents": None, "illegal": "replace", "copy": False, **settings}
    return gymnasium.make_vec("busenv/Bus-v0", num_envs=games, device=device, **settings)


def compare(
    device: str, settings: dict[str, Any], games: int, *, steps: int, seconds: float
) -> int:
    """Play the same actions on the device and on the CPU; returns the number of decisions.

    One action in about fifty is illegal. Ends after a number of steps or seconds. Raises
    AssertionError for the first difference.
    """
    envs = [
        make_env(device, games, **settings),
        make_env("cpu", games, threads=available_cores(), **settings),
    ]
    on_device, _ = (env.reset(seed=1) for env in envs)
    generator = torch.Generator(device).manual_seed(2)
    began, step = time.perf_counter(), 0
    while step < steps and time.perf_counter() - began < seconds:
        masks = torch.as_tensor(on_device[-1]["action_mask"])
        actions = torch.rand(masks.shape, generator=generator, device=device).mul_(masks).argmax(1)
        wrong = torch.rand(games, generator=generator, device=device) < 0.02
        actions = actions.masked_fill_(wrong, -1)
        on_device = envs[0].step(actions.numpy() if device == "cpu" else actions)
        on_cpu = envs[1].step(actions.cpu().numpy())
        outputs = [_named(one, step % COMPARE_ROWS_EVERY == 0) for one in (on_device, on_cpu)]
        for name, expected in outputs[1].items():
            if not torch.equal(outputs[0][name].cpu(), expected):
                raise AssertionError(f"{name} differs in step {step} with {settings}")
        step += 1
    return games * step


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
        self._games = Games(env, LineUps(self._weights))
        self._games.reset(0, self._generator)
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
        slot = len(self._snapshots) % NUM_PAST_SELVES
        drawn = self._snapshots[self._rng.integers(len(self._snapshots))]
        self._past[slot].load_state_dict(drawn)
        self._weights[GREEDY + slot] = 0.5

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


def rate(model: Path, workers: int, parts: int) -> Iterator[dict[str, list[int]]]:
    """Yield games won and played so far against three copies of each bot, PART games a part."""
    wins = {bot: [0, 0] for bot in BOTS}
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        # The slowest bots begin, so that no core is idle at the end.
        jobs = [(str(model), bot, PART * k) for bot in reversed(BOTS) for k in range(parts)]
        bots = {pool.submit(_rate, job): job[1] for job in jobs}
        for future in as_completed(bots):
            wins[bots[future]] = [
                a + b for a, b in zip(wins[bots[future]], future.result(), strict=True)
            ]
            yield wins


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all parts; write the result after each of them and return it."""
    began, out, device = time.perf_counter(), Path(arguments.out), arguments.device
    out.mkdir(parents=True, exist_ok=True)
    name = platform.machine() if device == "cpu" else torch.cuda.get_device_name()
    result: dict[str, Any] = {"device": name, "torch": torch.__version__, "environment": {}}

    def note(**parts: Any) -> None:
        result.update(parts, seconds=round(time.perf_counter() - began, 1))
        write_whole(out / "result.json", json.dumps(result, indent=1) + "\n")
        print(json.dumps(parts), flush=True)

    steps = arguments.compare // (len(COMPARED) * arguments.compare_games) or 1
    limit = arguments.compare_seconds / len(COMPARED)
    compared = sum(
        compare(device, one, arguments.compare_games, steps=steps, seconds=limit)
        for one in COMPARED
    )
    note(compared_decisions=compared)
    for bot in BOTS:  # compiles the agents of the ratings once, before many processes load them
        play_match([make_agent(bot, k) for k in range(4)], 1)
    for games in (size for size in SIZES if size <= arguments.largest):
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
    if length <= 0:
        raise ValueError(f"no time is left for PPO; increase --seconds by {1 - length:.0f} or more")
    curve: list[dict[str, float]] = []
    while (elapsed := time.perf_counter() - start) < length:
        statistics = trainer.step(elapsed / length)
        if trainer.iteration % arguments.snapshot_every == 0:
            trainer.add_past_self()
            curve.append({"seconds": elapsed, "total": trainer.decisions, **statistics})
    _wait(device)
    elapsed = time.perf_counter() - start
    curve.append({"seconds": elapsed, "total": trainer.decisions, **statistics})
    speed = round((trainer.decisions - first) / elapsed)
    trainer.save(out / "model.safetensors")
    note(ppo={"training_decisions": trainer.decisions, "per_second": speed, "curve": curve})
    for wins in rate(out / "model.safetensors", available_cores(), arguments.rating_parts):
        note(wins=wins)
    return result


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="folder of the results")
    add = parser.add_argument
    add("--device", default="cuda", choices=("cuda", "cpu"))
    add("--seconds", type=float, default=500.0, help="time limit of the program")
    add("--rating-seconds", type=float, default=90.0, help="reserved for the ratings")
    add("--rating-parts", type=int, default=8, help=f"groups of {PART} games against each bot")
    add("--compare", type=int, default=100_000_000, help="decisions compared with the CPU")
    add("--compare-games", type=int, default=16_384, help="games of the comparison")
    add("--compare-seconds", type=float, default=120.0, help="time limit of the comparison")
    add("--largest", type=int, default=SIZES[-1], help="most games of the speed measurements")
    add("--games", type=int, default=16_384, help="games of PPO")
    add("--steps", type=int, default=64, help="of a rollout")
    add("--batch-size", type=int, default=32_768)
    add("--epochs", type=int, default=2)
    add("--width", type=int, default=256)
    add("--learning-rate", type=float, default=1e-3)
    add("--snapshot-every", type=int, default=25, help="iterations between past selves")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
