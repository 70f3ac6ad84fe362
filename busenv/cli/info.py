"""`busenv info`: installed versions and speed of this machine, as plain text without an extra."""

from __future__ import annotations

import platform
import statistics
from importlib import metadata

import busenv
from busenv.common.cores import available_cores
from busenv.observation import ObservationLayout
from busenv.profiling.measurements import measure

PACKAGES = (
    "numpy numba gymnasium pettingzoo torch stable-baselines3 sb3-contrib rich matplotlib "
    "pandas openskill scipy resvg-py pygame-ce"
).split()


def show_info() -> None:
    """Print versions, the board, the editions, and the speed of this machine."""
    board = busenv.load_board("city")
    speed = statistics.median(measure("playouts", 5)) / 1e6
    facts = {
        "busenv": busenv.__version__,
        "Python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "machine": f"{platform.machine()}, {available_cores()} cores",
        "board": f"{board.name}, {len(board.intersections)} intersections, "
        f"{len(board.streets)} streets, {len(board.sites)} sites",
        "fingerprint": board.fingerprint,
        "actions": str(board.num_actions),
        "observation": f"{ObservationLayout(board).size} bytes",
        "editions": ", ".join(busenv.EDITIONS),
        "speed": f"{speed:.1f} million decisions per second (random play, 4 players, one core)",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:{width}}  {value}")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
