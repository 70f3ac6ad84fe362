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

    reset, step: return action masks. Actions are sampled once, so that only `step` is timed.
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


def agent(spec: str, games: int, simulations: int = 0, scale: float = 1.0) -> Workload:
    """Games of 4 in which an agent plays every seat; counts decisions that are not forced.

    simulations: of a search, per decision; they are counted, and `spec` is without them.
    """
    simulations = _scaled(simulations, scale) if simulations else 0
    spec = f"{spec}:{simulations}" if simulations else spec
    player = importlib.import_module("busenv.agents").make_agent(spec)
    games = _scaled(games, scale)

    def run() -> int:
        count = 0
        for seed in range(games):
            player.reset(seed)
            game = busenv.Game(4, seed=seed)
            while not game.is_over:
                count += max(simulations, 1) * (len(game.legal_actions()) > 1)
                game.step(player.act(game))
        return count

    return run


def _scaled(number: int, scale: float) -> int:
    return max(1, round(number * scale))


# By name: a description, and a factory, which takes a factor of the size. All play 4 players.
MEASUREMENTS: dict[str, tuple[str, Callable[..., Workload]]] = {
    "playouts": ("random play, bare core", playouts),
    "vector": (f"vector environment, N = {NUM_ENVS}, views", vector),
    "vector-2": ("the same, 2 threads", partial(vector, threads=2)),
    "vector-copy": ("the same, one thread, copies", partial(vector, copy=True)),
    "sb3": (f"Stable-Baselines3 VecEnv, N = {NUM_ENVS}", sb3),
    "aec": ("PettingZoo raw AEC, one game", aec),
    "greedy": ("decisions of greedy", partial(agent, "greedy", 40)),
    "planner": ("decisions of planner", partial(agent, "planner", 10)),
    "network": ("decisions of net:city-2", partial(agent, "net:city-2", 10)),
    "network-board": ("decisions of net:generated-1", partial(agent, "net:generated-1", 10)),
    "search": ("simulations of uct:300", partial(agent, "uct", 1, 300)),
    "search-2": ("the same, 2 threads", partial(agent, "uct@2", 1, 300)),
    "guided": ("simulations of az:city-3:100", partial(agent, "az:city-3", 1, 100)),
}


def measure(name: str, repeats: int, scale: float = 1.0) -> list[float]:
    """Return the speeds of a measurement in units of work per second.

    An additional first run compiles code, warms caches, and is not counted.
    """
    workload = MEASUREMENTS[name][1](scale=scale)
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
    names, repeats, scale = json.loads(sys.argv[1])
    results: dict[str, list[float] | str] = {}
    for name in names:
        try:
            results[name] = measure(name, repeats, scale)
        except Exception as error:  # another version may fail in any way
            results[name] = f"{type(error).__name__}: {error}"
    json.dump({"package": busenv.__file__, "results": results}, output)


if __name__ == "__main__":
    main()
