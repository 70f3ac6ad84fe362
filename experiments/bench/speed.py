"""How fast this machine plays: `python -m busenv.experiments.bench.speed` prints the tables."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from busenv import EDITIONS, bus_v0, random_playouts
from busenv.batch import Batch
from busenv.core import bots, kernels
from busenv.envs.sb3 import BusVecEnv
from busenv.envs.vector import BusVectorEnv

GAMES, REPEATS, FACE_REPEATS = 20_000, 5, 15
NUM_ENVS, STEPS = 1024, 300


def rates(plays: list[Callable[[], int]], repeats: int = REPEATS) -> list[list[float]]:
    """Decisions a second of each of several runs of each of `plays`, which return how many it took.

    They take turns, so that a slow minute of the machine falls on all alike, and each is run once
    before, uncounted, so that nothing is compiled or cold.
    """
    found: list[list[float]] = [[] for _ in plays]
    for repeat in range(-1, repeats):
        for play, rate in zip(plays, found, strict=True):
            began = time.perf_counter()
            decisions = play()
            if repeat >= 0:
                rate.append(decisions / (time.perf_counter() - began))
    return found


def playout_rates(num_players: int, rules: str, games: int = GAMES) -> list[float]:
    """Random decisions a second on one core, for each repeat."""
    return rates([lambda: random_playouts(games, num_players, rules).decisions])[0]


class Picker:
    """Chooses random legal actions for a batch in compiled code."""

    def __init__(self, games: Batch) -> None:
        self._games = games
        self._noise = np.zeros(1, np.uint64)
        self._actions = np.zeros(len(games.seats), np.int64)

    def __call__(self) -> np.ndarray:
        games, board = self._games.games, self._games.board.array
        bots.bot_actions(games, board, bots.RANDOM, self._noise, self._actions)
        return self._actions


def vector_run(env: BusVectorEnv) -> Callable[[], int]:
    """Steps of a vector environment by random legal actions."""
    env.reset(seed=0)
    pick = Picker(env.batch)

    def play() -> int:
        for _ in range(STEPS):
            env.step(pick())
        return STEPS * env.num_envs

    return play


def sb3_run(env: BusVecEnv) -> Callable[[], int]:
    """Steps of the Stable-Baselines3 environment, masks fetched as MaskablePPO does."""
    env.reset()
    pick = Picker(env.batch)

    def play() -> int:
        for _ in range(STEPS):
            np.stack(env.env_method("action_masks"))
            env.step(pick())
        return STEPS * env.num_envs

    return play


def aec_run() -> int:
    """A few games of the raw PettingZoo environment, each agent looking before it acts."""
    env = bus_v0.raw_env()
    count = 0
    for seed in range(20):
        env.reset(seed=seed)
        while not env.terminations[env.agent_selection]:
            mask = env.last()[0]["action_mask"]
            env.step(int(mask.argmax()))
            count += 1
    return count


def parts_of_a_step() -> list[tuple[str, float]]:
    """Nanoseconds a game of choosing, of a whole batched step, and of its parts by themselves."""
    games = Batch(NUM_ENVS, same_step=True)
    games.reset(0)
    pick = Picker(games)
    board = games.board.array
    spent = {"choosing": 0.0, "checking legality": 0.0, "the whole step": 0.0}
    for _ in range(STEPS):
        clock = [time.perf_counter()]
        actions = pick()
        clock.append(time.perf_counter())
        kernels.first_illegal(games.games, board, actions)
        clock.append(time.perf_counter())
        games.step(actions)
        clock.append(time.perf_counter())
        for name, begin, end in zip(spent, clock, clock[1:], strict=False):
            spent[name] += end - begin
    rows = np.zeros((NUM_ENVS, games.observations.shape[1]), np.uint8)
    masks, bits = np.zeros_like(games.masks), np.zeros(6, np.uint64)
    for name, part in (
        ("a whole observation, painted anew", lambda: kernels.observe_seats(
            games.games, board, games.seats, rows)),
        ("a mask", lambda: kernels.legal_bytes(games.games, board, bits, masks)),
    ):  # fmt: skip
        part()
        began = time.perf_counter()
        for _ in range(STEPS):
            part()
        spent[name] = time.perf_counter() - began
    return [(name, seconds / STEPS / NUM_ENVS * 1e9) for name, seconds in spent.items()]


def main() -> None:
    console = Console()
    faces = Table(title=f"4 players, N = {NUM_ENVS}, {FACE_REPEATS} runs, decisions a second")
    for column in ("what", "median", "fastest", "of the bare core"):
        faces.add_column(column, justify="left" if column == "what" else "right")
    plays: dict[str, Callable[[], int]] = {
        "bare core, random play": lambda: random_playouts(GAMES).decisions,
        "vector environment": vector_run(BusVectorEnv(NUM_ENVS)),
        "vector environment, 2 threads": vector_run(BusVectorEnv(NUM_ENVS, threads=2)),
        "Stable-Baselines3 VecEnv": sb3_run(BusVecEnv(NUM_ENVS)),
        "PettingZoo raw AEC, one game": aec_run,
    }
    measured = rates([*plays.values()], FACE_REPEATS)
    core = statistics.median(measured[0])
    for name, found in zip(plays, measured, strict=True):
        median = statistics.median(found)
        faces.add_row(name, f"{median:,.0f}", f"{max(found):,.0f}", f"{median / core:.1%}")
    console.print(faces)

    parts = Table(title="a step of a batch and what is in it (nanoseconds a game)")
    parts.add_column("part")
    parts.add_column("ns", justify="right")
    for name, spent in parts_of_a_step():
        parts.add_row(name, f"{spent:.0f}")
    console.print(parts)

    table = Table(title=f"Random play, one core, {GAMES} games, {REPEATS} runs (million a second)")
    for column in ("rules", "players", "median", "slowest", "fastest", "decisions a game"):
        table.add_column(column, justify="right")
    for rules in EDITIONS:
        for players in (3, 4, 5):
            found = [rate / 1e6 for rate in playout_rates(players, rules)]
            length = random_playouts(GAMES, players, rules).decisions / GAMES
            row = [f"{v:.1f}" for v in (statistics.median(found), min(found), max(found), length)]
            table.add_row(rules, str(players), *row)
    console.print(table)


if __name__ == "__main__":
    main()
