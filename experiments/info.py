"""What is installed and how fast it runs here."""

from __future__ import annotations

import os
import platform
import statistics
from importlib import metadata

from busenv.experiments.bench.speed import GAMES, playout_rates
from rich.console import Console
from rich.table import Table

import busenv
from busenv.observation import ObservationLayout

PACKAGES = (
    "numpy numba gymnasium pettingzoo torch stable-baselines3 sb3-contrib rich matplotlib "
    "pandas openskill"
).split()


def show_info() -> None:
    """Print versions, editions, the board, and the speed of this machine."""
    console = Console()
    versions = Table(show_header=False, title="busenv")
    versions.add_row("busenv", busenv.__version__)
    versions.add_row("Python", platform.python_version())
    for name in PACKAGES:
        try:
            versions.add_row(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            versions.add_row(name, "not installed")
    versions.add_row("machine", f"{platform.machine()}, {os.cpu_count()} cores")
    console.print(versions)

    board = busenv.load_board("city")
    facts = Table(show_header=False, title="board and rules")
    facts.add_row("board", f"{board!r}")
    facts.add_row("fingerprint", board.fingerprint)
    facts.add_row("actions", str(board.num_actions))
    facts.add_row("observation", f"{ObservationLayout(board).size} bytes")
    facts.add_row("editions", ", ".join(busenv.EDITIONS))
    console.print(facts)

    with console.status(f"playing {GAMES} random games five times"):
        median = statistics.median(playout_rates(4, "capstone-2024"))
    console.print(
        f"random play, 4 players, one core: [bold]{median / 1e6:.1f} million[/] decisions/s"
    )
