"""The measurements of `busenv bench`, and a process that runs them in one version of busenv.

`busenv bench --against` runs this file as a script with another version's package. It therefore
uses public names only.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np

import busenv

Workload = Callable[[], int]  # does some work, and returns its size: decisions or simulations

NUM_ENVS, STEPS = 1024, 300  # of batches
# A path, because other versions of busenv may not have the model.
BOARD_MODEL = Path(__file__).parents[1] / "networks/models/generated-4.safetensors"


def playouts() -> Workload:
    """Uniformly random play of whole games in one compiled call; counts decisions."""
    return lambda: busenv.random_playouts(20_000).decisions


def vector(**settings: Any) -> Workload:
    """Steps of the vector environment of all seats; counts decisions."""
    envs = gymnasium.make_vec("busenv/BusSelfPlay-v0", num_envs=NUM_ENVS, **settings)

    def step(actions: np.ndarray | None) -> np.ndarray:
        result = envs.reset(seed=0) if actions is None else envs.step(actions)
        return result[-1]["action_mask"]

    return _batch_steps(step)


def sb3() -> Workload:
    """Steps of the Stable-Baselines3 environment, with masks fetched as MaskablePPO does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of opponents=None, whose rewards are not read here
        envs = importlib.import_module("busenv.envs.sb3").BusVecEnv(NUM_ENVS, opponents=None)

    def step(actions: np.ndarray | None) -> np.ndarray:
        if actions is None:
            envs.seed(0)
            envs.reset()
        else:
            envs.step(actions)
        return np.stack(envs.env_method("action_masks"))

    return _batch_steps(step)


def _batch_steps(step: Callable[[np.ndarray | None], np.ndarray]) -> Workload:
    """Steps of a batch of games.

    step: takes actions, or None for new games, and returns action masks. Actions are sampled once,
    so that only `step` is timed.
    """
    rng, masks, actions = np.random.default_rng(0), step(None), []
    for _ in range(STEPS):
        actions.append((rng.random(masks.shape, np.float32) * masks).argmax(axis=1))
        masks = step(actions[-1])

    def run() -> int:
        for row in [None, *actions]:
            step(row)
        return STEPS * NUM_ENVS

    return run


def aec() -> Workload:
    """PettingZoo's raw environment, with an observation before each action; counts decisions."""
    env = importlib.import_module("busenv.bus_v0").raw_env()

    def run() -> int:
        count = 0
        for seed in range(40):
            env.reset(seed=seed)
            while not env.terminations[env.agent_selection]:
                env.step(int(env.last()[0]["action_mask"].argmax()))
                count += 1
        return count

    return run


def agent(spec: str, games: int, simulations: int = 1) -> Workload:
    """Games of 4 in which an agent plays every seat; counts decisions that are not forced.

    simulations: of a search, per decision; they are counted instead.
    """
    player = importlib.import_module("busenv.agents").make_agent(spec)

    def run() -> int:
        count = 0
        for seed in range(games):
            player.reset(seed)
            game = busenv.Game(4, seed=seed)
            while not game.is_over:
                count += simulations * (len(game.legal_actions()) > 1)
                game.step(player.act(game))
        return count

    return run


def ppo(threads: int) -> Workload:
    """Iterations of `busenv train quick`, without ratings and past selves; counts its decisions."""
    settings = {"threads": threads, "snapshot_every": 10**6}  # iterations; writes no files
    config = importlib.import_module("busenv.train.config").PPOConfig(**settings)
    with TemporaryDirectory(prefix="busenv-") as folder:
        run = importlib.import_module("busenv.train.ppo_run").PPORun(config, folder)

    def iterate() -> int:
        before = run.decisions
        for _ in range(5):
            run.step()
        return run.decisions - before

    return iterate


# By name: a description, and a factory. All play 4 players.
MEASUREMENTS: dict[str, tuple[str, Callable[[], Workload]]] = {
    "playouts": ("random play, bare core", playouts),
    "vector": (f"vector environment, N = {NUM_ENVS}, views", partial(vector, copy=False)),
    "vector-2": ("the same, 2 threads", partial(vector, copy=False, threads=2)),
    "vector-copy": ("the same, one thread, copies", vector),
    "sb3": (f"Stable-Baselines3 VecEnv, N = {NUM_ENVS}", sb3),
    "aec": ("PettingZoo raw AEC, one game", aec),
    "greedy": ("decisions of greedy", partial(agent, "greedy", 40)),
    "planner": ("decisions of planner", partial(agent, "planner", 10)),
    "network": ("decisions of net:city-2", partial(agent, "net:city-2", 10)),
    "network-board": ("decisions of net:generated-4", partial(agent, f"net:{BOARD_MODEL}", 10)),
    "search": ("simulations of uct:300", partial(agent, "uct:300", 1, 300)),
    "search-2": ("the same, 2 threads", partial(agent, "uct@2:300", 1, 300)),
    "guided": ("simulations of az:city-3:100", partial(agent, "az:city-3:100", 1, 100)),
    "ppo": ("training decisions of PPO (quick)", partial(ppo, 1)),
    "ppo-2": ("the same, 2 threads", partial(ppo, 2)),
}


def measure(name: str, repeats: int) -> list[float]:
    """Return the speeds of a measurement in units of work per second.

    An additional first run compiles code, warms caches, and is not counted.
    """
    workload = MEASUREMENTS[name][1]()
    workload()
    speeds = []
    for _ in range(repeats):
        start = time.perf_counter()
        count = workload()
        speeds.append(count / (time.perf_counter() - start))
    return speeds


def main() -> None:
    """Measure in a process: arguments and results are JSON."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of libraries must not mix with the results
    names, repeats = json.loads(sys.argv[1])
    results: dict[str, list[float] | str] = {}
    for name in names:
        try:
            results[name] = measure(name, repeats)
        except Exception as error:  # another version may fail in any way
            results[name] = f"{type(error).__name__}: {error}"
    json.dump({"package": busenv.__file__, "results": results}, output)


if __name__ == "__main__":
    main()
