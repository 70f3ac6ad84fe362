"""Deviation ratings: examples by hand, and copies of an agent."""

import numpy as np
import pytest

from busenv.evaluation.deviation_ratings import deviation_ratings, margins
from busenv.evaluation.tables import rate_agents

CYCLE = np.array([[0.0, -0.2, 0.4], [0.2, 0.0, -0.6], [-0.4, 0.6, 0.0]])  # lottery 1/2, 1/3, 1/6


def with_agent(margin: np.ndarray, row: list[float]) -> np.ndarray:
    """Margins with one more agent, whose margins over the others are `row`."""
    return np.block([[margin, -np.array(row)[:, None]], [np.array(row), np.zeros(1)]])


@pytest.mark.parametrize(
    ("margin", "ratings"),
    [
        (np.zeros((2, 2)), [0, 0]),
        (CYCLE, [0, 0, 0]),
        (with_agent(CYCLE, [-1, 0, 0]), [0, 0, 0, -1 / 2]),
        (with_agent(CYCLE, [0, -1, 0]), [0, 0, 0, -1 / 3]),
        (with_agent(CYCLE, [0.1, 0.2, 0.3]), [-0.1, -0.2, -0.3, 0]),
        # Two agents tie: any mixture of them is maximal, and only the second is the strictest.
        (with_agent(np.zeros((2, 2)), [-0.2, -0.4]), [0, 0, -0.4]),
    ],
    ids=["tie", "cycle", "loser", "other loser", "winner", "tied winners"],
)
def test_ratings_of_small_games(margin: np.ndarray, ratings: list[float]) -> None:
    assert deviation_ratings(margin) == pytest.approx(ratings, abs=1e-6)


def test_margins_count_each_game_of_a_pair_once() -> None:
    orders = np.array([[0, 1, 2], [2, 0, 1], [0, 2, 0], [0, 2, 2]])
    expected = [[0, 1, 1 / 4, 0], [-1, 0, 0, 0], [-1 / 4, 0, 0, 0], [0, 0, 0, 0]]
    assert margins(orders, agents=4).tolist() == expected  # agent 3 has no games


@pytest.fixture
def orders() -> np.ndarray:
    """Rankings of 40 games of three out of five agents, with a cycle at the top."""
    generator = np.random.default_rng(2)
    return np.array([generator.permutation(5)[:3] for _ in range(40)])


@pytest.mark.parametrize("agent", range(5))
def test_copies_move_the_ratings_of_no_other_agent(orders: np.ndarray, agent: int) -> None:
    """The agent enters under three names with the same results."""
    entered = np.concatenate([np.where(orders == agent, name, orders) for name in (agent, 5, 6)])
    (_, deviation), (_, same) = rate_agents(orders, 5, 0), rate_agents(entered, 7, 0)
    assert same == pytest.approx([*deviation, deviation[agent], deviation[agent]], abs=1e-6)
