"""How fast the tree search is: `python -m busenv.experiments.bench.searching` prints the table."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

from busenv.agents.mcts.uct import UctAgent
from busenv.experiments.bench.speed import rates
from rich.console import Console
from rich.table import Table

from busenv import Game

PLAYERS = 4


def own_games(simulations: int, threads: int, games: int) -> Callable[[], int]:
    """Whole games in which one search plays all seats; each run returns its simulations."""
    agent = UctAgent(simulations, threads=threads)

    def play() -> int:
        count = 0
        for seed in range(games):
            agent.reset(seed)
            game = Game(PLAYERS, seed=seed)
            while not game.is_over:
                count += simulations * (len(game.legal_actions()) > 1)  # forced: no search
                game.step(agent.act(game))
        return count

    return play


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1500, help="of each decision (1500)")
    parser.add_argument("--games", type=int, default=1, help="of each run (1)")
    parser.add_argument("--repeats", type=int, default=9, help="runs, which take turns (9)")
    chosen = parser.parse_args()
    plays = [own_games(chosen.simulations, threads, chosen.games) for threads in (1, 2)]
    measured = rates(plays, chosen.repeats)
    table = Table(
        title=f"{chosen.simulations} simulations a decision, whole games of {PLAYERS} players"
    )
    for column in ("threads", "simulations a second, median", "slowest", "fastest"):
        table.add_column(column, justify="right")
    for threads, found in zip((1, 2), measured, strict=True):
        numbers = statistics.median(found), min(found), max(found)
        table.add_row(str(threads), *(f"{number:,.0f}" for number in numbers))
    ratio = statistics.median([two / one for one, two in zip(*measured, strict=True)])
    table.caption = f"two threads: {ratio:.2f} times one (median of the runs side by side)"
    Console().print(table)


if __name__ == "__main__":
    main()
