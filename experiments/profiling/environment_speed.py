"""How fast this machine plays: `python -m busenv.experiments.profiling.environment_speed` prints the tables.

What `busenv bench` prints, and besides what is in a step of a batch, and random play by edition.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from rich.console import Console

from busenv import EDITIONS, random_playouts
from busenv.batch.batch import Batch
from busenv.core import kernels
from busenv.experiments.common.console import TextTable
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.profiling.speed_worker import MEASUREMENTS, NUM_ENVS, choose
from busenv.experiments.profiling.timing import speeds

GAMES, STEPS, REPEATS = 20_000, 300, 15


def show_speeds(
    console: Console, repeats: int = REPEATS, names: Sequence[str] = tuple(MEASUREMENTS)
) -> None:
    """Measure, and print how much is done a second; names: of `bench.worker.MEASUREMENTS`.

    What needs a package that is not installed is left out.
    """
    plays = {}
    for name in names:
        try:
            plays[name] = MEASUREMENTS[name][1](1.0)
        except ModuleNotFoundError as error:
            console.print(f"{name} is left out: {error}", markup=False)
    rows = []
    for name, found in zip(plays, speeds([*plays.values()], repeats), strict=True):
        numbers = statistics.median(found), min(found), max(found)
        rows.append([name, MEASUREMENTS[name][0], *(f"{number:,.0f}" for number in numbers)])
    title = f"How much is done a second, 4 players, one thread unless said; {repeats} runs"
    TextTable(title, ["", "what", "median", "slowest", "fastest"], rows, names=2).show(console)


def parts_of_a_step(steps: int = STEPS) -> TextTable:
    """Nanoseconds a game of a whole batched step, and of its parts by themselves."""
    games = Batch(NUM_ENVS, autoreset_mode="SameStep")
    games.reset(0)
    board = games.board.array
    random = np.random.default_rng(0)
    spent = {"checking legality": 0.0, "the whole step": 0.0}
    for _ in range(steps):
        actions = choose(games.masks, random)
        clock = [time.perf_counter()]
        kernels.first_illegal(games.games, board, actions)
        clock.append(time.perf_counter())
        games.step(actions)
        clock.append(time.perf_counter())
        for name, begin, end in zip(spent, clock, clock[1:], strict=False):
            spent[name] += end - begin
    rows = np.zeros((NUM_ENVS, games.observations.shape[1]), np.uint8)
    masks, bits = np.zeros_like(games.masks), np.zeros(6, np.uint64)
    for name, part in (
        ("a whole observation, cache empty", lambda: kernels.observe_seats(
            games.games, board, games.seats, rows)),
        ("a mask", lambda: kernels.legal_bytes(games.games, board, bits, masks)),
    ):  # fmt: skip
        part()
        began = time.perf_counter()
        for _ in range(steps):
            part()
        spent[name] = time.perf_counter() - began
    table = [[name, f"{s / steps / NUM_ENVS * 1e9:,.0f}"] for name, s in spent.items()]
    return TextTable("A step of a batch, and what is in it", ["part", "nanoseconds a game"], table)


def _editions(repeats: int) -> TextTable:
    """Random play by every edition, on one core."""
    rows = []
    for rules in EDITIONS:
        for players in (3, 4, 5):
            play = partial(_decisions, players, rules)
            found = [speed / 1e6 for speed in speeds([play], repeats)[0]]
            numbers = statistics.median(found), min(found), max(found), play() / GAMES
            rows.append([rules, str(players), *(f"{number:.1f}" for number in numbers)])
    header = ["rules", "players", "median", "slowest", "fastest", "decisions\na game"]
    return TextTable(
        f"Random play, one core, million decisions a second; {repeats} runs", header, rows
    )


def _decisions(players: int, rules: str) -> int:
    return random_playouts(GAMES, players, rules).decisions


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.environment_speed",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs ({REPEATS})")
    repeats, console = parser.parse_args().repeats, Console()
    show_speeds(console, repeats)
    parts_of_a_step().show(console)
    _editions(max(repeats // 3, 1)).show(console)


if __name__ == "__main__":
    run_command(main)
