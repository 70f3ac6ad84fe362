"""What is measured, and a process that measures it in one version of busenv.

`busenv bench --against` runs this file as a script with another commit's package, so it keeps to
what is public in all of them, and imports nothing from beside it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import busenv

Play = Callable[[], int]  # plays, and returns how much of it there was

NUM_ENVS = 1024


def choose(masks: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A random legal action for every row; int64, (N,)."""
    return (random.random(masks.shape, np.float32) * masks).argmax(axis=1)


def playouts(scale: float = 1.0) -> Play:
    """Random play of whole games in one compiled call; decisions."""
    games = _size(20_000, scale)
    return lambda: busenv.random_playouts(games).decisions


def vector(scale: float = 1.0, threads: int = 1, copy: bool = False) -> Play:
    """Every decision of many games side by side, Gymnasium's way; decisions.

    copy: whether what a step returns is the caller's own; earlier commits know views only.
    """
    known = "busenv/BusSelfPlay-v0" in gymnasium.registry
    name = "busenv/BusSelfPlay-v0" if known else "busenv/Bus-v0"
    make = partial(gymnasium.make_vec, name, num_envs=NUM_ENVS, threads=threads)
    envs = _made(partial(make, copy=copy), make)

    def begin() -> np.ndarray:
        return envs.reset(seed=0)[1]["action_mask"]

    def step(actions: np.ndarray) -> np.ndarray:
        return envs.step(actions)[4]["action_mask"]

    return _steps(begin, step, _size(300, scale))


def sb3(scale: float = 1.0) -> Play:
    """The same for Stable-Baselines3, masks fetched as MaskablePPO does; decisions."""
    module = "busenv.envs.sb3" if importlib.util.find_spec("busenv.envs") else "busenv.sb3"
    make = partial(importlib.import_module(module).BusVecEnv, NUM_ENVS)
    envs = _made(partial(make, opponents=None), make)

    def masks() -> np.ndarray:
        return np.stack(envs.env_method("action_masks")).reshape(NUM_ENVS, -1)

    def begin() -> np.ndarray:
        envs.seed(0)
        envs.reset()
        return masks()

    def step(actions: np.ndarray) -> np.ndarray:
        envs.step(actions)
        return masks()

    return _steps(begin, step, _size(300, scale))


def _made(make: Callable[[], Any], before: Callable[[], Any]) -> Any:
    """What is made by this commit's settings, or by those of commits before it."""
    try:
        return make()
    except TypeError:
        return before()


def _steps(
    begin: Callable[[], np.ndarray], step: Callable[[np.ndarray], np.ndarray], steps: int
) -> Play:
    """Steps of a batch of games that begins alike every time.

    begin, step: both return masks. The actions are chosen once, so that only steps are timed.
    """
    random, masks, chosen = np.random.default_rng(0), begin(), []
    for _ in range(steps):
        chosen.append(choose(masks, random))
        masks = step(chosen[-1])

    def play() -> int:
        begin()
        for actions in chosen:
            step(actions)
        return steps * NUM_ENVS

    return play


def aec(scale: float = 1.0) -> Play:
    """Games of PettingZoo's raw environment, each agent looking before it acts; decisions."""
    env = importlib.import_module("busenv.bus_v0").raw_env()
    games = _size(40, scale)

    def play() -> int:
        count = 0
        for seed in range(games):
            env.reset(seed=seed)
            while not env.terminations[env.agent_selection]:
                env.step(int(env.last()[0]["action_mask"].argmax()))
                count += 1
        return count

    return play


def learner(scale: float = 1.0, batch: bool = False) -> Play:
    """One learner's seat among greedy opponents, by Gymnasium's `make` or a `make_vec` of one game;
    its steps."""
    make = partial(gymnasium.make_vec, num_envs=1) if batch else gymnasium.make
    env = make("busenv/Bus-v0", opponents="greedy")
    steps = _size(2_000, scale)

    def play() -> int:
        _, info = env.reset(seed=0)
        for _ in range(steps):
            _, _, over, _, info = env.step(info["action_mask"].argmax(axis=-1))
            if over and not batch:  # a batch begins anew by itself
                _, info = env.reset()
        return steps

    return play


def agent(spec: str, games: int, scale: float = 1.0) -> Play:
    """Whole games of 4 in which an agent plays all seats; its decisions, forced ones left out."""
    player = importlib.import_module("busenv.agents").make_agent(spec)
    number = _size(games, scale)

    def play() -> int:
        count = 0
        for seed in range(number):
            player.reset(seed)
            game = busenv.Game(4, seed=seed)
            while not game.is_over:
                count += len(game.legal_actions()) > 1
                game.step(player.act(game))
        return count

    return play


def search(simulations: int, threads: int = 1, games: int = 1, scale: float = 1.0) -> Play:
    """The same for a tree search; its simulations."""
    play = agent(f"uct@{threads}:{_size(simulations, scale)}", games)
    return lambda: _size(simulations, scale) * play()


# Name: what it is in words, and what makes it; all play 4 players by the 2024 edition.
MEASUREMENTS: dict[str, tuple[str, Callable[[float], Play]]] = {
    "playouts": ("random play, bare core", playouts),
    "vector": (f"vector environment, N = {NUM_ENVS}, views", vector),
    "vector-2": ("the same, 2 threads", partial(vector, threads=2)),
    "vector-copy": ("the same, one thread, copies", partial(vector, copy=True)),
    "sb3": (f"Stable-Baselines3 VecEnv, N = {NUM_ENVS}", sb3),
    "aec": ("PettingZoo raw AEC, one game", aec),
    "learner": ("one learner among greedy, make", learner),
    "learner-vec": ("the same, make_vec of one game", partial(learner, batch=True)),
    "greedy": ("decisions of greedy", partial(agent, "greedy", 40)),
    "planner": ("decisions of planner", partial(agent, "planner", 10)),
    "search": ("simulations of uct:300", partial(search, 300, 1, 1)),
}


def _size(number: int, scale: float) -> int:
    return max(1, round(number * scale))


def serve(scale: float) -> None:
    """Run a measurement for every line of standard input, which holds its name.

    Answers with a line of JSON: what it did (count) in which time (seconds), or the error.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    plays: dict[str, Play] = {}
    for line in sys.stdin:
        name = line.strip()
        answer: dict[str, str | float]
        try:
            if name not in plays:
                plays[name] = MEASUREMENTS[name][1](scale)
                _check_origin()
            began = time.perf_counter()
            answer = {"count": plays[name](), "seconds": time.perf_counter() - began}
        except Exception as error:  # another commit may fail in any way; the others go on
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def _check_origin() -> None:
    """Nothing of busenv may come from elsewhere than the tree that is measured."""
    tree = Path(str(busenv.__file__)).parents[1]
    for name, module in sys.modules.items():
        place = getattr(module, "__file__", None)
        if place is None or name.partition(".")[0] not in ("busenv", "agents"):
            continue
        if tree not in Path(place).parents:
            raise ImportError(f"{name} comes from {place}, not from {tree}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.speed_worker",
        description="Measure what standard input names, a name a line: " + ", ".join(MEASUREMENTS),
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes (1)")
    serve(parser.parse_args().scale)


if __name__ == "__main__":
    main()
