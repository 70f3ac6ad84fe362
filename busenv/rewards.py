"""Rewards of the seats. Each decision rewards every seat. With n players:

    name         when            to a seat                                  sum     of a game
    win          at the end      winner 1, others -1/(n-1)                  zero    -1/(n-1)..1
    rank         at the end      1 for first, linear to -1 for last         zero    -1..1
    margin       as it happens   own points less the others' mean points    zero    about -20..20
    deliveries   as it happens   passengers that the seat delivered (R17)   0 or 1  0..about 20
    shaped       as it happens   win, and the change of a potential         zero    -1/(n-1)..1

Points are deliveries minus time stones (R20), so `margin` sums to the final margin over a game, and
a time stone costs its seat at once.

`shaped` adds the change of a potential to `win`: a tenth of the margin, and 0 in a finished game.
With a discount of 1 these changes cancel over a game, which keeps the optimal policy (Ng, Harada
and Russell 1999, "Policy invariance under reward transformations").

A reward may also be a function `pay(before, after, rewards)`: it receives the states of N games
before and after a step (GAME arrays, see `busenv.core.state`, which it must not change) and writes
the rewards by seat, float32, (N, 5). Rewards of games that are reset in the step are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from busenv.core import reward_kernels as core

Reward = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

REWARDS: dict[str, int] = {
    "win": core.PAY_WIN,
    "rank": core.PAY_RANK,
    "margin": core.PAY_MARGIN,
    "deliveries": core.PAY_DELIVERIES,
    "shaped": core.PAY_SHAPED,
}


def reward_kind(reward: str | Reward) -> int:
    """Return the core's number of a reward; ValueError names the allowed rewards."""
    if callable(reward):
        return core.PAY_NOTHING
    if not isinstance(reward, str) or reward not in REWARDS:
        raise ValueError(f"unknown reward {reward!r}; allowed: a function or one of {[*REWARDS]}")
    return REWARDS[reward]


def as_reward(reward: str | Reward) -> Reward:
    """Return a reward given by name or as a function as a function; ValueError as above."""
    return reward if callable(reward) else partial(core.pay_games, reward_kind(reward))
