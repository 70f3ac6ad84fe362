"""The measurements of `busenv bench`, and a process that runs them in one version of busenv.

`busenv bench --against` runs this file as a script with another version's package. It therefore
uses public names only and imports nothing from the command line.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import busenv

Workload = Callable[[], int]  # does some work, and returns its size: decisions or simulations

NUM_ENVS = 1024


def playouts(scale: float = 1.0) -> Workload:
    """Uniformly random play of whole games in one compiled call; counts decisions."""
    games = _scaled(20_000, scale)
    return lambda: busenv.random_playouts(games).decisions


def vector(scale: float = 1.0, threads: int = 1, copy: bool = False) -> Workload:
    """Steps of the vector environment of all seats; counts decisions.

    copy: whether each step returns copies of observations and masks, or views.
    """
    envs = gymnasium.make_vec(
        "busenv/BusSelfPlay-v0", num_envs=NUM_ENVS, threads=threads, copy=copy
    )

    def reset() -> np.ndarray:
        return envs.reset(seed=0)[1]["action_mask"]

    def step(actions: np.ndarray) -> np.ndarray:
        return envs.step(actions)[4]["action_mask"]

    return _batch_steps(reset, step, _scaled(300, scale))


def sb3(scale: float = 1.0) -> Workload:
    """Steps of the Stable-Baselines3 environment, with masks fetched as MaskablePPO does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of opponents=None, whose rewards are not read here
        envs = importlib.import_module("busenv.envs.sb3").BusVecEnv(NUM_ENVS, opponents=None)

    def masks() -> np.ndarray:
        return np.stack(envs.env_method("action_masks")).reshape(NUM_ENVS, -1)

    def reset() -> np.ndarray:
        envs.seed(0)
        envs.reset()
        return masks()

    def step(actions: np.ndarray) -> np.ndarray:
        envs.step(actions)
        return masks()

    return _batch_steps(reset, step, _scaled(300, scale))


def _batch_steps(
    reset: Callable[[], np.ndarray], step: Callable[[np.ndarray], np.ndarray], steps: int
) -> Workload:
    """Steps of a batch of games, the same in every call.

    reset, step: return action masks. Actions are sampled once, so that only steps are timed.
    """
    rng, masks, actions = np.random.default_rng(0), reset(), []
    for _ in range(steps):
        actions.append((rng.random(masks.shape, np.float32) * masks).argmax(axis=1))
        masks = step(actions[-1])

    def run() -> int:
        reset()
        for row in actions:
            step(row)
        return steps * NUM_ENVS

    return run


def aec(scale: float = 1.0) -> Workload:
    """PettingZoo's raw environment, with an observation before each action; counts decisions."""
    env = importlib.import_module("busenv.bus_v0").raw_env()
    games = _scaled(40, scale)

    def run() -> int:
        count = 0
        for seed in range(games):
            env.reset(seed=seed)
            while not env.terminations[env.agent_selection]:
                env.step(int(env.last()[0]["action_mask"].argmax()))
                count += 1
        return count

    return run


def learner(scale: float = 1.0, vectorized: bool = False) -> Workload:
    """Steps of one learner among greedy opponents, by `make` or by `make_vec` of one game."""
    make: Any = partial(gymnasium.make_vec, num_envs=1) if vectorized else gymnasium.make
    env = make("busenv/Bus-v0", opponents="greedy")
    steps = _scaled(2_000, scale)

    def run() -> int:
        _, info = env.reset(seed=0)
        for _ in range(steps):
            _, _, over, _, info = env.step(info["action_mask"].argmax(axis=-1))
            if over and not vectorized:
                _, info = env.reset()
        return steps

    return run


def agent(spec: str, games: int, scale: float = 1.0) -> Workload:
    """Games of 4 in which an agent plays every seat; counts decisions that are not forced."""
    player = importlib.import_module("busenv.agents").make_agent(spec)
    games = _scaled(games, scale)

    def run() -> int:
        count = 0
        for seed in range(games):
            player.reset(seed)
            game = busenv.Game(4, seed=seed)
            while not game.is_over:
                count += len(game.legal_actions()) > 1
                game.step(player.act(game))
        return count

    return run


def search(spec: str, simulations: int, scale: float = 1.0) -> Workload:
    """The same for a tree search; counts simulations. spec: the agent's, without simulations."""
    simulations = _scaled(simulations, scale)
    play = agent(f"{spec}:{simulations}", 1)
    return lambda: simulations * play()


# By name: a description, and a factory that takes the scale. All play 4 players, capstone-2024.
MEASUREMENTS: dict[str, tuple[str, Callable[[float], Workload]]] = {
    "playouts": ("random play, bare core", playouts),
    "vector": (f"vector environment, N = {NUM_ENVS}, views", vector),
    "vector-2": ("the same, 2 threads", partial(vector, threads=2)),
    "vector-copy": ("the same, one thread, copies", partial(vector, copy=True)),
    "sb3": (f"Stable-Baselines3 VecEnv, N = {NUM_ENVS}", sb3),
    "aec": ("PettingZoo raw AEC, one game", aec),
    "learner": ("one learner among greedy, make", learner),
    "learner-vec": ("the same, make_vec of one game", partial(learner, vectorized=True)),
    "greedy": ("decisions of greedy", partial(agent, "greedy", 40)),
    "planner": ("decisions of planner", partial(agent, "planner", 10)),
    "network": ("decisions of net:city-2", partial(agent, "net:city-2", 10)),
    "network-board": ("decisions of net:generated-1", partial(agent, "net:generated-1", 10)),
    "search": ("simulations of uct:300", partial(search, "uct", 300)),
    "search-2": ("the same, 2 threads", partial(search, "uct@2", 300)),
    "guided": ("simulations of az:city-3:100", partial(search, "az:city-3", 100)),
}


def _scaled(number: int, scale: float) -> int:
    return max(1, round(number * scale))


def measure_speeds(workloads: Sequence[Workload], repeats: int) -> list[list[float]]:
    """Return the speeds of each workload in each of its runs, in units of work per second.

    Workloads run in turns, so that a slow minute of the machine affects all of them. One run of
    each comes before the others and is not counted: it compiles code and warms caches.
    """
    measured: list[list[float]] = [[] for _ in workloads]
    for repeat in range(-1, repeats):
        for workload, speeds in zip(workloads, measured, strict=True):
            start = time.perf_counter()
            count = workload()
            if repeat >= 0:
                speeds.append(count / (time.perf_counter() - start))
    return measured


def serve(scale: float) -> None:
    """Run the measurement named by each line of standard input.

    Writes one line of JSON per request: the size of the work (count) and its duration in seconds,
    or the error.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    workloads: dict[str, Workload] = {}
    for line in sys.stdin:
        name = line.strip()
        answer: dict[str, str | float]
        try:
            if name not in workloads:
                workloads[name] = MEASUREMENTS[name][1](scale)
                _check_origin()
            start = time.perf_counter()
            answer = {"count": workloads[name](), "seconds": time.perf_counter() - start}
        except Exception as error:  # another version may fail in any way
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def _check_origin() -> None:
    """ImportError when a module of busenv comes from elsewhere than the measured tree."""
    tree = Path(str(busenv.__file__)).parents[1]
    for name, module in sys.modules.items():
        path = getattr(module, "__file__", None)
        if path and name.partition(".")[0] == "busenv" and tree not in Path(path).parents:
            raise ImportError(f"{name} is imported from {path}, not from {tree}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all sizes")
    serve(parser.parse_args().scale)
