"""Matches: seats, starting players, scores and intervals."""

import numpy as np
import pytest

from busenv import Board, IllegalActionError
from busenv.agents import Agent, make_agent
from busenv.agents.match import Score, play_match
from busenv.core.state import Phase


class Watcher(Agent):
    """Plays at random and records its seats and the starting players."""

    name = "watcher"

    def __init__(self) -> None:
        self.inner = make_agent("random")
        self.seats: list[tuple[int, int]] = []

    def reset(self, seed: int) -> None:
        self.inner.reset(seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        for game in games[(games["phase"] == Phase.SETUP_BUILDINGS) & (games["power"] == 2)]:
            self.seats.append((int(game["seat"]), int(game["first"])))
        return self.inner.choose(games, board)


@pytest.mark.parametrize("players", [3, 4, 5])
def test_seats_and_starting_players_are_balanced(players: int) -> None:
    watcher = Watcher()
    others = [make_agent("random", k) for k in range(players - 1)]
    scores = play_match([watcher, *others], 2 * players * players)
    assert sorted(watcher.seats) == sorted(
        2 * [(seat, first) for seat in range(players) for first in range(players)]
    )
    assert sum(score.wins for score in scores) == 2 * players * players
    assert sum(score.rank for score in scores) == pytest.approx(players * (players - 1) / 2)


def test_equal_agents_score_par() -> None:
    scores = play_match([make_agent("random", k) for k in range(4)], 4000)
    for score in scores:
        assert score.wins / score.games == pytest.approx(0.25, abs=0.027)  # four standard errors


def test_wilson_interval() -> None:
    low, high = Score("a", 100, 25, 0, 0).interval()
    assert (round(low, 4), round(high, 4)) == (0.1755, 0.3430)
    for games in range(1, 200):  # a plot needs error bars of positive length
        assert Score("a", games, 0, 0, 0).interval()[0] == 0
        assert Score("a", games, games, 0, 0).interval()[1] == 1


def test_an_illegal_action_names_the_agent() -> None:
    class Illegal(Watcher):
        name = "illegal"

        def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
            return np.full(len(games), 374)

    with pytest.raises(
        IllegalActionError,
        match=r"'illegal': action 374 .*of game 0 is illegal for seat \d in phase",
    ):
        play_match([Illegal(), make_agent("random"), make_agent("random")], 3)
