"""A small rating that tests play."""

from functools import cache
from pathlib import Path
from typing import Any

from busenv.experiments.ratings.rating_store import GAMES, parse_games
from busenv.experiments.ratings.schedule import Schedule
from busenv.experiments.ratings.tournament import play_game

SMALL = Schedule(("greedy", "random", "random"), players=3, games=90)


@cache
def alone(schedule: Schedule) -> list[dict[str, Any]]:
    """A schedule's games, played here and in reverse. Callers do not change them."""
    return [play_game(schedule, number) for number in reversed(range(schedule.total))]


def stored(folder: Path) -> list[dict[str, Any]]:
    """The games of a run."""
    return parse_games((folder / GAMES).read_bytes())[0]


def bare(games: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Games in order of number, without what was measured."""
    played = [{key: game[key] for key in game if key not in ("seconds", "timed")} for game in games]
    return sorted(played, key=lambda game: game["number"])
