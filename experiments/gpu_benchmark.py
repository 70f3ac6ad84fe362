"""Check and measure the environment, self-play and PPO on a GPU, in one command.

    python -m experiments.gpu_benchmark OUT --seconds 180

compares the games on the device with those on the CPU bit for bit, measures the speed of the
environment for several numbers of games and of self-play with the `az` search, trains by PPO from
random weights, and rates the network on the machine's cores. OUT receives `result.json`, which is
written after each part, and the folders of the run and of the ratings. `--device cpu` runs the same
program without a GPU.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

from busenv.common.cores import available_cores
from busenv.evaluation.rating import run_rating
from busenv.evaluation.schedule import Schedule
from busenv.game.board_specs import load_board
from busenv.game.rules import as_rules
from busenv.io import write_whole
from busenv.networks.compiled_network import read_weights
from busenv.networks.model_files import load_model, model_path
from busenv.train.config import PRESETS
from busenv.train.expert_iteration.expert_config import SelfPlayConfig
from busenv.train.expert_iteration.expert_selfplay import (
    SearchPlay,
    SelfPlayPayload,
    draw_games,
    run_games,
)
from busenv.train.expert_iteration.lockstep_run import play_in_lockstep
from busenv.train.run_training import run_training
from busenv.train.training_run import MODEL

# Settings of environments whose games are compared.
COMPARED: list[dict[str, Any]] = [
    {},
    {"num_players": (3, 4, 5), "reward": "shaped", "skip_forced": True, "relative_types": True},
    {"opponents": "greedy", "num_players": (3, 4, 5), "autoreset_mode": "SameStep"},
    {"opponents": ("random", "greedy", "greedy"), "reward": "rank", "illegal": "lose"},
    {"board": "generated:city:train:64", "rules": "splotter-1999", "num_players": 5},
    {"rules": "condensed", "reward": "margin", "skip_forced": True},
]
COMPARED_GAMES, COMPARED_STEPS, COMPARED_SECONDS = 16_384, 1000, 20.0  # at most, of each
COMPARE_ROWS_EVERY = 16  # steps; all other outputs are compared after every step
SIZES = (1024, 4096, 16_384, 65_536, 131_072)  # games of the speed measurements
PPO_SETTINGS = {"games": 16_384, "steps": 64, "batch_size": 32_768, "learning_rate": 1e-3}
SELFPLAY_GAMES = 4096  # at a time
COMPARED_SELFPLAY = 64  # games that are also played on the CPU
BOTS = ("greedy", "planner", "uct:100", "uct:300")
RATING_GAMES = 384  # against copies of each bot


def make_env(device: str, games: int, **settings: Any) -> Any:
    """Make a self-play environment that returns its buffers; other opponents by settings."""
    settings = {"opponents": None, "illegal": "replace", "copy": False, **settings}
    return gymnasium.make_vec("busenv/Bus-v0", num_envs=games, device=device, **settings)


def compare(device: str, settings: dict[str, Any]) -> int:
    """Play the same actions on the device and on the CPU; returns the number of decisions.

    One action in about fifty is illegal. Raises AssertionError for the first difference.
    """
    games = COMPARED_GAMES
    envs = [
        make_env(device, games, **settings),
        make_env("cpu", games, threads=available_cores(), **settings),
    ]
    on_device, _ = (env.reset(seed=1) for env in envs)
    generator = torch.Generator(device).manual_seed(2)
    began, step = time.perf_counter(), 0
    while step < COMPARED_STEPS and time.perf_counter() - began < COMPARED_SECONDS:
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


def selfplay(device: str, games: int) -> dict[str, Any]:
    """Play games of the search `az:city-4` on the device; returns speeds and equal games.

    positions_per_second: rows evaluated by the network, including the idle rows of slots whose game
    has ended. equal_games: how many of the first COMPARED_SELFPLAY games are identical on the CPU;
    rounding in the network may change some. Compilation time is excluded.
    """
    network, board = load_model(model_path("city-4"))[0], load_board("city")
    play = SearchPlay(
        num_simulations=32, fast_simulations=8, full_search_share=0.25, bot_simulations=1
    )
    config = SelfPlayConfig(bot_share=0.0)
    drawn = draw_games(config, games, as_rules(config.rules), board, np.random.default_rng(0))
    on_device, calls = torch.device(device), 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    first = drawn.part(slice(COMPARED_SELFPLAY))
    ours = play_in_lockstep(first, network, play, board, slots=COMPARED_SELFPLAY, device=on_device)
    payload = SelfPlayPayload(read_weights(network), play, board)
    theirs = run_games(first, payload, available_cores())
    network.register_forward_hook(count)
    began = time.perf_counter()
    samples = play_in_lockstep(drawn, network, play, board, slots=games, device=on_device)
    seconds = time.perf_counter() - began
    return {
        "games": games,
        "seconds": round(seconds, 1),
        "positions_per_second": round(calls * games / seconds),
        "samples_per_second": round(sum(map(len, samples)) / seconds),
        "equal_games": sum(
            len(one) == len(other) and bool((one["game"] == other["game"]).all())
            for one, other in zip(ours, theirs, strict=True)
        ),
    }


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


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

    compared = sum(compare(device, one) for one in COMPARED)
    note(compared_decisions=compared)
    for games in SIZES:
        result["environment"][games] = round(environment_speed(device, games, 2.0))
        note(environment=result["environment"])
    note(selfplay=selfplay(device, SELFPLAY_GAMES))
    config = PRESETS["quick"].changed({
        "device": device, "bots": ("greedy",), "seconds": arguments.seconds, **PPO_SETTINGS,
        "rated": ("greedy",), "rate_games": 48, "rate_every": 1e9,
    })  # fmt: skip
    ppo, _ = run_training(config, out / "ppo")
    note(
        ppo={"training_decisions": ppo.decisions, "per_second": round(ppo.decisions / ppo.seconds)}
    )
    for bot in BOTS:
        agents = (f"net:{out / 'ppo' / MODEL}",)
        schedule = Schedule(agents, 4, RATING_GAMES, 0, against=bot)
        report = run_rating(schedule, out / bot.replace(":", "-"), available_cores())
        note(**{bot: float(report.results.iloc[0]["won"])})
    return result


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", help="folder of the results")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--seconds", type=float, default=180.0, help="length of the PPO run")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
