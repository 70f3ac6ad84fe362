"""Print the shortest and the longest of 900 games of scripted agents for each number of players."""

from __future__ import annotations

import busenv
from busenv.common.keyboard_interrupt import run_command
from experiments.studies import study_parser

SPECS = ("random", "greedy", "planner")
GAMES = 300  # of each agent, which plays all seats


def main() -> None:
    """Print one line for each number of players."""
    study_parser("episode_lengths", __doc__).parse_args()
    for players in (3, 4, 5):
        lengths = []
        for agent in (busenv.make_agent(spec, seed=1) for spec in SPECS):
            for seed in range(GAMES):
                game = busenv.Game(players, seed=seed)
                while not game.is_over:
                    game.step(agent.act(game))
                lengths.append(len(game.history))
        print(f"{min(lengths)} to {max(lengths)} decisions with {players} players")


if __name__ == "__main__":
    run_command(main)
