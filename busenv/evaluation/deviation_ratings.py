"""Deviation ratings of agents from the rankings of games.

Adding copies of an agent does not change the ratings (clone invariance).

Marris et al. 2025, "Deviation Ratings: A General, Clone-Invariant Rating Method", rate each
strategy of a game by the gain of deviating to it from the strictest coarse correlated equilibrium:
the one that minimises the largest gain, then the next largest, and so on.

Rated games do not give a payoff for every joint choice of agents by 3 to 5 players. The game here
is the two-player zero-sum game in which each player names an agent and the payoff is the margin of
one agent over the other. In each of its equilibria both players draw their agents from maximal
lotteries (Fishburn 1984; Lanctot et al. 2023, "Evaluating Agents using Social Choice Theory"):
mixtures over which no agent has a positive margin. A rating is therefore the agent's margin over
the strictest maximal lottery, and is unique where the lottery is not.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

DIGITS = 6  # of ratings; the linear programs are solved to 1e-7


def margins(orders: np.ndarray, agents: int) -> np.ndarray:
    """Return how much more often each agent is ranked ahead of another than behind it.

    orders: int (games, players), agent numbers in the order of ranks, the winner first.
    Returns float64 (agents, agents) in [-1, 1], skew-symmetric: the share of a pair's games with
    the first agent ahead minus the share with it behind, 0 for a pair without games. A game in
    which the two have several seats counts once, by the pairs of these seats.
    """
    copies = (orders[:, :, None] == orders[:, None, :]).sum(axis=2)  # seats of a seat's agent
    better, worse = np.triu_indices(orders.shape[1], 1)  # ranks of each pair of seats
    ahead = np.zeros((agents, agents))
    weights = 1 / (copies[:, better] * copies[:, worse])
    np.add.at(ahead, (orders[:, better], orders[:, worse]), weights)
    games = ahead + ahead.T
    return np.divide(ahead - ahead.T, games, out=np.zeros_like(ahead), where=games > 0)


def deviation_ratings(margin: np.ndarray) -> np.ndarray:
    """Return each agent's margin over the strictest maximal lottery, float64 (agents,).

    margin: of `margins`. Ratings are 0 for agents of a maximal lottery, and negative for others.
    """
    agents = len(margin)
    ratings = np.full(agents, np.nan)
    while (free := np.isnan(ratings)).any():
        # Variables: the lottery, and the largest rating of the free agents, which is minimised.
        solution = linprog(
            np.append(np.zeros(agents), 1),
            A_ub=np.column_stack([margin, -1.0 * free]),
            b_ub=np.where(free, 0, ratings),
            A_eq=np.append(np.ones(agents), 0)[None],
            b_eq=[1],
            bounds=[(0, None)] * agents + [(None, None)],
            method="highs",
        )
        # An agent with a multiplier other than 0 has this rating under every solution.
        binding = np.argmin(np.where(free, solution.ineqlin.marginals, 0))
        ratings[binding] = solution.fun
    return np.round(ratings, DIGITS) + 0.0  # turns -0.0 into 0.0
