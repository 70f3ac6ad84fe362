"""The protocol busenv-agents-v3: which games measure a learner.

A learner has a budget of training decisions, and at least RUNS runs with different seeds on one
machine. At every tenth of the budget the agent plays CURVE_PANEL: one seat against copies of each
bot. At the end it plays PANEL in the same way. Games come in blocks of n * n for n players, in
which the agent holds every seat, and starts, equally often. An exploiter of each run is trained
for EXPLOITER_DECISIONS, and plays EXPLOITER_BLOCKS blocks against copies of the agent.

Opponents are frozen: a result has a digest of each (`agent_digest`), and a table has results with
equal digests only.

A decision is a training decision if at least one update uses it; it counts once. Decisions of
measured games do not count.

A change of anything in this module requires a new NAME.
"""

from __future__ import annotations

NAME = "busenv-agents-v3"
RUNS = 5  # at least
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
CHALLENGE = ("uct:100", "uct:1000", "net:city-4")  # opponents of the challenge's score
BUDGETS = (10_000_000, 1_000_000_000)  # largest ones of its classes
EXPLOITER_DECISIONS, EXPLOITER_BLOCKS = 1_000_000, 25


def count_games(panel: dict[str, int], players: int) -> dict[str, int]:
    """Number of games against each opponent of a panel."""
    return {name: blocks * players**2 for name, blocks in panel.items()}
