"""A small rating that tests play."""

from __future__ import annotations

from typing import Any

from busenv.experiments.ratings.schedule import Plan
from busenv.experiments.ratings.tournament import play_game

SMALL = Plan(("greedy", "random", "random"), players=3, games=90)


def alone(plan: Plan) -> list[dict[str, Any]]:
    """A plan's games, played here and in reverse."""
    return [play_game(plan, number) for number in reversed(range(plan.total))]
