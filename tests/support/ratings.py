"""A small rating that tests play."""

from __future__ import annotations

from typing import Any

from busenv.experiments.ratings.schedule import Schedule
from busenv.experiments.ratings.tournament import play_game

SMALL = Schedule(("greedy", "random", "random"), players=3, games=90)


def alone(schedule: Schedule) -> list[dict[str, Any]]:
    """A schedule's games, played here and in reverse."""
    return [play_game(schedule, number) for number in reversed(range(schedule.total))]


def bare(games: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Games in order of number, without what was measured."""
    played = [{key: game[key] for key in game if key not in ("seconds", "timed")} for game in games]
    return sorted(played, key=lambda game: game["number"])
