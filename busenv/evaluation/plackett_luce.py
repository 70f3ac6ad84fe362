"""Plackett-Luce ratings of agents from the rankings of games.

Each seat is a team of one. In a game in which an agent has several seats, its rating changes by the
mean of their changes. The scale is openskill's (beta 25/6) and depends on the number of players.
"""

from __future__ import annotations

import numpy as np
from openskill.models import PlackettLuce, PlackettLuceRating

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
