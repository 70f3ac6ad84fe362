"""What the seats are paid.

Each decision pays every seat, the losers too. With n players:

    name         when            to a seat                                  sum     of a game
    win          at the end      winner 1, others -1/(n-1)                  zero    -1/(n-1)..1
    rank         at the end      1 for first, evenly down to -1 for last    zero    -1..1
    margin       as it happens   own points less the others' mean points    zero    about -20..20
    deliveries   as it happens   passengers that the seat delivered (R17)   0 or 1  0..about 20
    shaped       as it happens   win, and the change of a potential         zero    -1/(n-1)..1

Points are deliveries minus time stones (R20), so what `margin` pays over a game is the final
margin, and a time stone costs its taker at once.

`shaped` adds to `win` the change of a tenth of the margin, and takes all of it back at the end (the
potential of a finished game is 0). Over a game these changes cancel, so with a discount of 1 it
pays what `win` pays and leaves the best policy alone (Ng, Harada and Russell 1999).

A reward may also be a function `pay(before, after, rewards)`: it is given the states of N games
before and after a step (GAME arrays, see busenv.core.state; not to be changed) and writes the
rewards, float32 of shape (N, 5), by seat. What it writes for games that begin anew is dropped.
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
    """The core's number for a reward; ValueError names the rewards that there are."""
    if callable(reward):
        return core.PAY_NOTHING
    if not isinstance(reward, str) or reward not in REWARDS:
        raise ValueError(f"unknown reward {reward!r}; allowed: a function or one of {[*REWARDS]}")
    return REWARDS[reward]


def as_reward(reward: str | Reward) -> Reward:
    """A reward given by name, as a function; or the function itself.

    ValueError names the rewards that there are.
    """
    return reward if callable(reward) else partial(core.pay_games, reward_kind(reward))
