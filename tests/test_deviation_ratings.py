"""Deviation ratings: examples by hand, the general definition, and copies of an agent."""

import numpy as np
import pytest
from scipy.optimize import linprog

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


def general_ratings(margin: np.ndarray) -> np.ndarray:
    """Deviation ratings of both players by the definition, which mixes joint choices (a, b)."""
    n = len(margin)
    first = margin[:, None] - margin  # gain of c over a: margin[c, b] - margin[a, b]
    second = margin - margin.T[:, :, None]  # gain of c over b: margin[a, b] - margin[a, c]
    gains = np.concatenate([first, second]).reshape(2 * n, n * n)
    ratings = np.full(2 * n, np.nan)
    while (free := np.isnan(ratings)).any():
        solution = linprog(
            np.append(np.zeros(n * n), 1),
            A_ub=np.column_stack([gains, -1.0 * free]),
            b_ub=np.where(free, 0, ratings),
            A_eq=np.append(np.ones(n * n), 0)[None],
            b_eq=[1],
            bounds=[(0, None)] * (n * n) + [(None, None)],
        )
        ratings[np.argmin(np.where(free, solution.ineqlin.marginals, 0))] = solution.fun
    return ratings


@pytest.fixture
def orders() -> np.ndarray:
    """Rankings of 40 games of three out of five agents, with a cycle at the top."""
    generator = np.random.default_rng(2)
    return np.array([generator.permutation(5)[:3] for _ in range(40)])


def test_ratings_are_those_of_correlated_equilibria(orders: np.ndarray) -> None:
    margin = margins(orders, 5)
    ratings = deviation_ratings(margin)
    assert (ratings == 0).sum() == 3
    assert general_ratings(margin) == pytest.approx([*ratings, *ratings], abs=1e-6)


@pytest.mark.parametrize("agent", range(5))
def test_copies_move_the_ratings_of_no_other_agent(orders: np.ndarray, agent: int) -> None:
    """The agent enters under three names with the same results; Plackett-Luce ratings move."""
    entered = np.concatenate([np.where(orders == agent, name, orders) for name in (agent, 5, 6)])
    (rating, deviation), (moved, same) = rate_agents(orders, 5, 0), rate_agents(entered, 7, 0)
    assert same == pytest.approx([*deviation, deviation[agent], deviation[agent]], abs=1e-6)
    assert moved[:5] != pytest.approx(rating, abs=0.1)
