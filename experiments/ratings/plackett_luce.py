"""Plackett-Luce ratings of agents from the rankings of games.

Each seat is a team of one. In a game in which an agent has several seats, its rating changes by the
mean of their changes. The scale is openskill's (beta 25/6) and depends on the number of players.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from openskill.models import PlackettLuce, PlackettLuceRating

from busenv.experiments.common.worker_pool import worker_pool

RESAMPLES = 100
LIMITS = (2.5, 97.5)  # percentiles

# Agents do not change during a rating: no noise from game to game (tau), and full weight of every
# game (gamma).
MODEL = PlackettLuce(tau=0.0, gamma=lambda *_: 1.0)


def openskill_ratings(orders: np.ndarray, agents: int) -> np.ndarray:
    """Rate agents game by game.

    orders: int (games, players), agent numbers in the order of ranks, the winner first.
    Returns the means of the ratings, float64 (agents,).
    """
    ratings = [MODEL.rating() for _ in range(agents)]
    for order in orders.tolist():
        after = MODEL.rate([[ratings[agent]] for agent in order])
        updates: dict[int, list[PlackettLuceRating]] = {}
        for agent, (seat,) in zip(order, after, strict=True):
            updates.setdefault(agent, []).append(seat)
        for agent, seats in updates.items():
            ratings[agent].mu = sum(seat.mu for seat in seats) / len(seats)
            ratings[agent].sigma = sum(seat.sigma for seat in seats) / len(seats)
    return np.array([rating.mu for rating in ratings])


def bootstrap(
    orders: np.ndarray, agents: int, anchor: int, seed: int, workers: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return 95% bootstrap intervals of openskill ratings minus the anchor's rating.

    Returns low and high, float64 (agents,), the same for any number of worker processes.
    """
    draw = partial(_resample, orders, agents, seed)
    if workers == 1:
        samples = [draw(index) for index in range(RESAMPLES)]
    else:
        with worker_pool(workers) as pool:
            samples = list(pool.map(draw, range(RESAMPLES)))
    ratings = np.array(samples)
    low, high = np.percentile(ratings - ratings[:, anchor : anchor + 1], LIMITS, axis=0)
    return low, high


def _resample(orders: np.ndarray, agents: int, seed: int, index: int) -> np.ndarray:
    drawn = np.random.default_rng((seed, index)).integers(len(orders), size=len(orders))
    return openskill_ratings(orders[drawn], agents)
