"""How fast the tree search is: `python -m busenv.experiments.profiling.search_speed` prints the table."""

from __future__ import annotations

import argparse
import statistics

from rich.console import Console

from busenv.experiments.common.console import TextTable
from busenv.experiments.common.keyboard_interrupt import run_command
from busenv.experiments.profiling.speed_worker import search
from busenv.experiments.profiling.timing import speeds

THREADS = (1, 2)


def show_searching(console: Console, simulations: int, games: int, repeats: int) -> None:
    """Measure whole games in which one search plays all seats, and print simulations a second."""
    plays = [search(simulations, threads, games) for threads in THREADS]
    one, two = measured = speeds(plays, repeats)
    rows = []
    for threads, found in zip(THREADS, measured, strict=True):
        numbers = statistics.median(found), min(found), max(found)
        rows.append([str(threads), *(f"{number:,.0f}" for number in numbers)])
    title = f"Simulations a second, {simulations} a decision, 4 players; {repeats} runs"
    TextTable(title, ["threads", "median", "slowest", "fastest"], rows).show(console)
    ratio = statistics.median([b / a for a, b in zip(one, two, strict=True)])
    console.print(f"Two threads: {ratio:.2f} times one (median of the runs side by side).")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m busenv.experiments.profiling.search_speed",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--simulations", type=int, default=1500, help="of each decision (1500)")
    parser.add_argument("--games", type=int, default=1, help="of each run (1)")
    parser.add_argument("--repeats", type=int, default=9, help="runs, which take turns (9)")
    chosen = parser.parse_args()
    show_searching(Console(), chosen.simulations, chosen.games, chosen.repeats)


if __name__ == "__main__":
    run_command(main)
