"""The protocol busenv-agents-v2: which games measure a learner.

A learner has a budget of training decisions, and several runs with different seeds. At every
tenth of the budget the agent plays CURVE_PANEL: one seat against copies of each bot. At the end it
plays PANEL in the same way. Games come in blocks of n * n for n players, in which the agent holds
every seat, and starts, equally often.

A decision is a training decision if at least one update uses it; it counts once. Decisions of
measured games do not count.

A change of anything in this module requires a new NAME.
"""

from __future__ import annotations

NAME = "busenv-agents-v2"
RULES, BOARD = "capstone-2024", "city"
SEED = 0  # of all measured games
CURVE_LENGTH = 10  # points of a learning curve

# Number of blocks of n * n games against n - 1 copies of each bot.
CURVE_PANEL = {"greedy": 4, "planner": 4}
PANEL = {
    "greedy": 25,
    "planner": 25,
    "uct:100": 25,
    "uct:1000": 4,
    # Networks of different training procedures, which a learner cannot exploit as it can bots
    "net:city-2": 25,
    "net:city-3": 25,
    "net:city-4": 25,
}


def count_games(panel: dict[str, int], players: int) -> dict[str, int]:
    """Number of games against each opponent of a panel."""
    return {name: blocks * players**2 for name, blocks in panel.items()}
