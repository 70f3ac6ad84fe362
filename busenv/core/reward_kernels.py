"""Rewards of the seats for the change between two states of a game (`busenv.rewards`)."""

from __future__ import annotations

import numpy as np

from busenv.core.jit import kernel
from busenv.core.rules.score import points_of, rank_of
from busenv.core.state import Phase

# Kinds of reward. REWARD_CUSTOM leaves the rewards to the caller.
REWARD_WIN, REWARD_RANK, REWARD_MARGIN, REWARD_DELIVERIES, REWARD_SHAPED, REWARD_CUSTOM = range(6)
SHAPING = 0.1  # weight of the margin in the potential of REWARD_SHAPED


@kernel
def _reward_ranks(g, kind, out):
    """Write the rewards by rank at the end of a game (R20)."""
    last = g.players - 1.0
    for seat in range(g.players):
        rank = rank_of(g, seat)
        if kind == REWARD_RANK:
            out[seat] = 1.0 - 2.0 * rank / last
        else:
            out[seat] = 1.0 if rank == 0 else -1.0 / last


@kernel
def _margin(state, seat, players):
    """Points of a seat minus the mean of the others'."""
    others = 0.0
    for other in range(players):
        if other != seat:
            others += points_of(state, other)
    return points_of(state, seat) - others / (players - 1.0)


@kernel
def write_reward(kind, before, after, out):
    """Write the rewards by seat for the change between two states.

    before, after: GAME records. out: floats, (5,).
    """
    out[:] = 0.0
    if kind == REWARD_CUSTOM:
        return
    if kind == REWARD_DELIVERIES:
        for seat in range(after.players):
            out[seat] = np.float64(after.deliveries[seat]) - np.float64(before.deliveries[seat])
        return
    over = after.phase == Phase.OVER
    if over and kind != REWARD_MARGIN:
        _reward_ranks(after, kind, out)
    if kind == REWARD_MARGIN or kind == REWARD_SHAPED:
        weight = 1.0 if kind == REWARD_MARGIN else SHAPING
        for seat in range(after.players):
            # The potential of a finished game is 0, so that shaping keeps the optimal policy.
            now = 0.0 if over and kind == REWARD_SHAPED else _margin(after, seat, after.players)
            out[seat] += weight * (now - _margin(before, seat, after.players))


@kernel
def write_rewards(kind, before, after, rewards):
    """Write the rewards of a batch of games: GAME, (N,), to float32, (N, 5)."""
    for i in range(len(after)):
        write_reward(kind, before[i], after[i], rewards[i])
