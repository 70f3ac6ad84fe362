"""The protocol: what is played to tell how good a learner is, so that one number means one thing.

A learner learns from a budget of decisions, or for a budget of hours on two cores, several times
with different seeds. On the way, at every tenth of the budget, it plays POINTS: one seat against
copies of a bot. At the end it plays PANEL likewise. Seats and starting players are balanced: games
come in blocks of n * n for n players, in which it sits everywhere and starts equally often.

A decision learned from is one choice of one seat that goes into at least one update; it counts once
however often it is gone through. What is only looked at while measuring is none.

Whoever changes anything here changes NAME too.
"""

from __future__ import annotations

from busenv.game.rules import check_players

NAME = "busenv-agents-v1"
RULES, BOARD = "capstone-2024", "city"
SEED = 0  # of all games that are measured
TENTHS = 10  # points of a learning curve
SEEDS = 5  # runs of a learner that a published result has, at least

# Blocks of n * n games against n - 1 copies of each.
POINTS = {"greedy": 4, "planner": 4}
PANEL = {"greedy": 25, "planner": 25, "uct:100": 4, "uct:1000": 1}


def games(blocks: dict[str, int], players: int) -> dict[str, int]:
    """How many games are played against each opponent, at a number of players."""
    return {name: count * check_players(players) ** 2 for name, count in blocks.items()}
