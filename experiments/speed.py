"""How fast this machine plays: `python -m experiments.speed` prints the table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from busenv import EDITIONS, random_playouts

GAMES, REPEATS = 20_000, 5


def rates(play: Callable[[], int], repeats: int = REPEATS) -> list[float]:
    """Decisions a second of each of several runs of `play`, which returns how many it took.

    It is run once before, uncounted, so that nothing is compiled or cold.
    """
    play()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        decisions = play()
        found.append(decisions / (time.perf_counter() - began))
    return found


def playout_rates(num_players: int, rules: str, games: int = GAMES) -> list[float]:
    """Random decisions a second on one core, for each repeat."""
    return rates(lambda: random_playouts(games, num_players, rules).decisions)


def main() -> None:
    table = Table(title=f"Random play, one core, {GAMES} games, {REPEATS} runs (million a second)")
    for column in ("rules", "players", "median", "slowest", "fastest", "decisions a game"):
        table.add_column(column, justify="right")
    for rules in EDITIONS:
        for players in (3, 4, 5):
            found = [rate / 1e6 for rate in playout_rates(players, rules)]
            length = random_playouts(GAMES, players, rules).decisions / GAMES
            row = [f"{v:.1f}" for v in (statistics.median(found), min(found), max(found), length)]
            table.add_row(rules, str(players), *row)
    Console().print(table)


if __name__ == "__main__":
    main()
