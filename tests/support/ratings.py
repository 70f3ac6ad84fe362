"""Games of small ratings."""

from functools import cache
from pathlib import Path
from typing import Any

from busenv import Game, Record
from busenv.evaluation.game_log import GAMES, ranking, read_games
from busenv.evaluation.schedule import Schedule
from busenv.evaluation.tournament import play_game

THREE_AGENTS = Schedule(("greedy", "random", "random"), players=3, games=90)
TWO_AGENTS = Schedule(("greedy", "random"), players=3, games=18)


@cache
def rated_game(number: int, schedule: Schedule = TWO_AGENTS) -> dict[str, Any]:
    """One game of a schedule, played in this process. Callers do not change it."""
    return play_game(schedule, number)


def games_of(schedule: Schedule) -> list[dict[str, Any]]:
    """A schedule's games, played in this process and in reverse. Callers do not change them."""
    return [rated_game(number, schedule) for number in reversed(range(schedule.total))]


def stored_games(folder: Path) -> list[dict[str, Any]]:
    """The games in a run's folder."""
    return read_games(folder / GAMES)


def without_times(games: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Games in order of number, without measured times."""
    played = [{key: game[key] for key in game if key not in ("seconds", "timed")} for game in games]
    return sorted(played, key=lambda game: game["number"])


def forfeited(line: dict[str, Any], plies: int, number: int) -> dict[str, Any]:
    """A rated game under another number, in which the seat to decide forfeits after some plies."""
    record = {**line["record"], "actions": line["record"]["actions"][:plies], "result": None}
    decided = [0] * record["players"]
    for game, _ in Game.replay(Record.from_dict(record)):
        decided[game.current_player] += 1
    loser = game.current_player
    return {
        **line,
        "number": number,
        "record": record,
        "points": game.points,
        "ranking": ranking(game.ranking(), [seat == loser for seat in range(game.num_players)]),
        "forfeit": {"seat": loser, "ply": plies, "why": "no answer"},
        "decisions": decided,
        "timed": decided,
    }
