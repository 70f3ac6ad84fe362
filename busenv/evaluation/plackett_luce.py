"""Plackett-Luce ratings of agents from the rankings of games, on the scale of Elo.

In the model of Plackett 1975 and Luce 1959 every agent has a strength. The winner of a game is
drawn with probabilities proportional to the strengths, the next rank from the other seats, and so
on. The odds that one agent is ranked ahead of another are the ratio of their strengths.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

ELO = 400 / math.log(10)  # points per unit of log strength: 400 points are odds of 10 to 1
# Standard deviation (1,700 points) of a weak prior of log strengths, which keeps the ratings finite
# of agents that win or lose every game.
PRIOR = 10.0


def plackett_luce_ratings(orders: np.ndarray, agents: int) -> np.ndarray:
    """Return the maximum a posteriori ratings, float64 (agents,), with a mean of 0.

    orders: int (games, players), agent numbers in the order of ranks, the winner first. An agent
    may have several seats in a game.
    """

    def loss(strengths: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative logarithm of the posterior for log strengths, and its gradient."""
        weights = np.exp(strengths)[orders]
        remaining = weights[:, ::-1].cumsum(axis=1)[:, ::-1]  # of the seats that have no rank yet
        expected = weights * (1 / remaining).cumsum(axis=1)  # draws of each seat; it was drawn once
        value = np.log(remaining).sum() - strengths[orders].sum()
        gradient = np.bincount(orders.ravel(), (expected - 1).ravel(), agents)
        prior = strengths / PRIOR**2
        return value + strengths @ prior / 2, gradient + prior

    strengths = minimize(loss, np.zeros(agents), jac=True, method="BFGS").x
    return ELO * (strengths - strengths.mean())
