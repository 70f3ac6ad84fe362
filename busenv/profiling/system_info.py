"""Installed versions and speed of this machine, as plain text without an extra."""

from __future__ import annotations

import platform
import statistics
from importlib import metadata

import busenv
from busenv.common.cores import available_cores
from busenv.observation import ObservationLayout
from busenv.profiling.speed_worker import measure_speeds

PACKAGES = (
    "numpy numba gymnasium pettingzoo torch stable-baselines3 sb3-contrib rich matplotlib "
    "pandas openskill scipy resvg-py pygame-ce"
).split()
GAMES, REPEATS = 20_000, 5


def show_info() -> None:
    """Print versions, the board, the editions, and the speed of this machine."""
    board = busenv.load_board("city")
    _print_facts(
        {
            "busenv": busenv.__version__,
            "Python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
            "machine": f"{platform.machine()}, {available_cores()} cores",
        }
    )
    _print_facts(
        {
            "board": f"{board.name}, {len(board.intersections)} intersections, "
            f"{len(board.streets)} streets, {len(board.sites)} sites",
            "fingerprint": board.fingerprint,
            "actions": str(board.num_actions),
            "observation": f"{ObservationLayout(board).size} bytes",
            "editions": "\n".join(busenv.EDITIONS),
        }
    )
    speeds = measure_speeds([lambda: busenv.random_playouts(GAMES).decisions], REPEATS)[0]
    median = statistics.median(speeds) / 1e6
    speed = f"{median:.1f} million decisions per second"
    _print_facts({"speed": f"{speed} (random play, 4 players, one core)"})


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _print_facts(facts: dict[str, str]) -> None:
    """Print names and values below each other, in two columns, and an empty line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        first, *others = value.split("\n")
        print(f"{name:{width}}  {first}")
        for line in others:
            print(f"{'':{width}}  {line}")
    print(flush=True)
