"""What the seats are paid.

Each decision pays every seat, the losers too. With n players:

    name         when            to a seat                                  sum     of a game
    win          at the end      winner 1, others -1/(n-1)                  zero    -1/(n-1)..1
    place        at the end      1 for first, evenly down to -1 for last    zero    -1..1
    margin       as it happens   own points less the others' mean points    zero    about -20..20
    deliveries   as it happens   passengers that the seat delivered (R17)   0 or 1  0..about 20

Points are deliveries minus time stones (R20), so what `margin` pays over a game is the final
margin, and a time stone costs its taker at once.
"""

from __future__ import annotations

from busenv.core import batch

REWARDS: dict[str, int] = {
    "win": batch.PAY_WIN,
    "place": batch.PAY_PLACE,
    "margin": batch.PAY_MARGIN,
    "deliveries": batch.PAY_DELIVERIES,
}


def check_reward(reward: str) -> str:
    """The name of a reward, if it is one."""
    if reward not in REWARDS:
        raise ValueError(f"unknown reward {reward!r}; allowed: {[*REWARDS]}")
    return reward
