"""Ratings of agents from whole rankings of games, after Plackett and Luce.

Each seat is a team of one. In a game where an agent sits several times, its rating moves by the
mean of what its seats gain and lose: it stands still where their sum is zero, as for an agent that
sits once. The scale is openskill's (beta 25/6) and depends on the number of players.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from openskill.models import PlackettLuce, PlackettLuceRating

from busenv.experiments.common.worker_pool import worker_pool

RESAMPLES = 100
LIMITS = (2.5, 97.5)  # percentiles

# Agents do not change while they are rated: no noise from game to game (tau), and every game
# counts for what it tells (gamma).
MODEL = PlackettLuce(tau=0.0, gamma=lambda *_: 1.0)


def openskill_ratings(orders: np.ndarray, agents: int) -> np.ndarray:
    """Rate agents game by game.

    orders: (games, players) agents by number, the winner of a game first.
    Returns float64, (agents,): the means of the ratings.
    """
    ratings = [MODEL.rating() for _ in range(agents)]
    for order in orders.tolist():
        after = MODEL.rate([[ratings[agent]] for agent in order])
        moved: dict[int, list[PlackettLuceRating]] = {}
        for agent, (seat,) in zip(order, after, strict=True):
            moved.setdefault(agent, []).append(seat)
        for agent, seats in moved.items():
            ratings[agent].mu = sum(seat.mu for seat in seats) / len(seats)
            ratings[agent].sigma = sum(seat.sigma for seat in seats) / len(seats)
    return np.array([rating.mu for rating in ratings])


def max_likelihood_ratings(orders: np.ndarray, agents: int, rounds: int = 200) -> np.ndarray:
    """The Plackett-Luce strengths that make the rankings most likely (Hunter 2004), on the same
    scale: a check on `openskill_ratings` that does not depend on the order of the games.

    Half a win and half a loss against an agent of mean strength keep them finite.
    """
    games, players = orders.shape
    chosen = np.bincount(orders[:, :-1].ravel(), minlength=agents) + 0.5
    # A game is a row of choices, each of one seat among those not placed yet; how often each agent
    # is among them.
    placed = np.zeros((games, players, agents))
    placed[np.arange(games)[:, None], np.arange(players), orders] = 1
    present = placed[:, ::-1].cumsum(axis=1)[:, ::-1][:, :-1].reshape(-1, agents)
    stages, times = np.unique(present, axis=0, return_counts=True)
    strengths = np.ones(agents)
    for _ in range(rounds):
        expected = (times / (stages @ strengths)) @ stages + 1 / (strengths + 1)
        strengths = chosen / expected
        strengths /= np.exp(np.log(strengths).mean())
    return MODEL.beta * np.sqrt(players) * np.log(strengths)


def bootstrap(
    orders: np.ndarray, agents: int, anchor: int, seed: int, workers: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """95% limits of openskill ratings less the anchor's, from games drawn with replacement.

    Returns low and high, float64, (agents,); the same for any number of worker processes.
    """
    draw = partial(_resample, orders, agents, seed)
    if workers == 1:
        found = [draw(index) for index in range(RESAMPLES)]
    else:
        with worker_pool(workers) as pool:
            found = list(pool.map(draw, range(RESAMPLES)))
    ratings = np.array(found)
    low, high = np.percentile(ratings - ratings[:, anchor : anchor + 1], LIMITS, axis=0)
    return low, high


def _resample(orders: np.ndarray, agents: int, seed: int, index: int) -> np.ndarray:
    drawn = np.random.default_rng((seed, index)).integers(len(orders), size=len(orders))
    return openskill_ratings(orders[drawn], agents)
