"""Rewards by seat. Each step returns a reward for every seat. With n players:

    name        given             to a seat                         sum over seats  return of a game
    win         in the last step  winner 1, others -1/(n-1)         zero            -1/(n-1)..1
    rank        in the last step  linear: 1 for first, -1 for last  zero            -1..1
    margin      in every step     own points minus others' mean     zero            about -20..20
    deliveries  in every step     passengers delivered (R17)        0 or more       0..about 20
    shaped      in every step     win, and change of a potential    zero            -1/(n-1)..1

Points are deliveries minus time stones (R20), so `margin` sums to the final margin over a game, and
a time stone costs its seat at once.

`shaped` adds the change of a potential to `win`: a tenth of the margin, and 0 in a finished game.
With a discount of 1 these changes cancel over a game, which keeps the optimal policy (Ng, Harada
and Russell 1999, "Policy invariance under reward transformations").

A reward may also be a function `reward(before, after, rewards)`: it receives the states of N games
before and after a step (GAME arrays, see `busenv.core.state`, which it must not change) and writes
the rewards by seat, float32, (N, 5). It returns None. Rewards of games that are reset in the step
are ignored; all others must be finite.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from busenv.core import reward_kernels as core

Reward = Callable[[np.ndarray, np.ndarray, np.ndarray], None]

REWARDS: dict[str, int] = {
    "win": core.REWARD_WIN,
    "rank": core.REWARD_RANK,
    "margin": core.REWARD_MARGIN,
    "deliveries": core.REWARD_DELIVERIES,
    "shaped": core.REWARD_SHAPED,
}


def reward_kind(reward: str | Reward) -> int:
    """Return the core's number of a reward.

    Raises ValueError, which names the allowed rewards, or a function that takes other arguments.
    """
    if callable(reward):
        try:
            inspect.signature(reward).bind(*"123")
        except ValueError:  # a function in C may have no signature
            return core.REWARD_CUSTOM
        except TypeError as error:
            raise ValueError(
                f"the reward function {_name(reward)} has other parameters ({error}); "
                "allowed: reward(before, after, rewards)"
            ) from None
        return core.REWARD_CUSTOM
    if not isinstance(reward, str) or reward not in REWARDS:
        raise ValueError(f"unknown reward {reward!r}; allowed: a function or one of {[*REWARDS]}")
    return REWARDS[reward]


def as_reward(reward: str | Reward) -> Reward:
    """Return the function of a reward that is given by name or as a function.

    Raises ValueError as `reward_kind` does.
    """
    kind = reward_kind(reward)
    return (
        partial(_call_with_copies, reward)
        if callable(reward)
        else partial(core.write_rewards, kind)
    )


def _call_with_copies(
    reward: Reward, before: np.ndarray, after: np.ndarray, rewards: np.ndarray
) -> None:
    call_reward(reward, before.copy(), after.copy(), rewards)


def call_reward(
    reward: Reward,
    before: np.ndarray,
    after: np.ndarray,
    rewards: np.ndarray,
    was_reset: np.ndarray | bool = False,
) -> None:
    """Call a reward function.

    The states must be copies: a function that overwrites them does not affect the games. Rewards of
    games that were reset are set to 0.

    Raises ValueError, which names the function, if it returns something or writes a reward that is
    not finite.
    """
    result: Any = reward(before, after, rewards)  # type: ignore[func-returns-value]
    if result is not None:
        raise ValueError(
            f"the reward function {_name(reward)} returned a value of type "
            f"{type(result).__name__}; allowed: None, with rewards written into its third argument"
        )
    rewards[was_reset] = 0
    if not np.isfinite(rewards).all():
        game, seat = np.argwhere(~np.isfinite(rewards))[0].tolist()
        raise ValueError(
            f"the reward function {_name(reward)} wrote {rewards[game, seat]} for seat {seat}; "
            "allowed: finite numbers"
        )


def _name(reward: Reward) -> str:
    return getattr(reward, "__qualname__", "") or repr(reward)
