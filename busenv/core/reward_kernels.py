"""What seats are paid for what has happened between two states of a game (busenv.rewards)."""

from __future__ import annotations

import numpy as np

from busenv.core.bits import copy_record
from busenv.core.jit import kernel
from busenv.core.rules.score import points_of, rank_of
from busenv.core.state import OVER, offset

# Kinds of reward. PAY_NOTHING leaves paying to the caller.
PAY_WIN, PAY_PLACE, PAY_MARGIN, PAY_DELIVERIES, PAY_SHAPED, PAY_NOTHING = range(6)
SHAPING = 0.1  # weight of the margin in the potential of PAY_SHAPED

# Where deliveries, stones and what else makes points stand in a game's record.
POINTS_FROM, POINTS_TO = offset("deliveries"), offset("marked")


@kernel
def keep_points(g, before):
    """Note in another GAME record what `pay` has to know of the state before."""
    copy_record(before, g, POINTS_FROM, POINTS_TO - POINTS_FROM)


@kernel
def _pay_places(g, kind, out):
    """What the end of a game pays for the places (R20)."""
    last = g.players - 1.0
    for seat in range(g.players):
        rank = rank_of(g, seat)
        if kind == PAY_PLACE:
            out[seat] = 1.0 - 2.0 * rank / last
        else:
            out[seat] = 1.0 if rank == 0 else -1.0 / last


@kernel
def _margin(state, seat, players):
    """Points of a seat less the mean of the others'."""
    others = 0.0
    for other in range(players):
        if other != seat:
            others += points_of(state, other)
    return points_of(state, seat) - others / (players - 1.0)


@kernel
def pay(kind, before, after, out):
    """Write the rewards by seat for what happened between two states.

    before, after: GAME records; the first may be one that `keep_points` has written.
    """
    out[:] = 0.0
    if kind == PAY_NOTHING:
        return
    if kind == PAY_DELIVERIES:
        for seat in range(after.players):
            out[seat] = np.float64(after.deliveries[seat]) - np.float64(before.deliveries[seat])
        return
    over = after.phase == OVER
    if over and kind != PAY_MARGIN:
        _pay_places(after, kind, out)
    if kind == PAY_MARGIN or kind == PAY_SHAPED:
        weight = 1.0 if kind == PAY_MARGIN else SHAPING
        for seat in range(after.players):
            # The potential of a finished game is 0, or shaping would change what is best.
            now = 0.0 if over and kind == PAY_SHAPED else _margin(after, seat, after.players)
            out[seat] += weight * (now - _margin(before, seat, after.players))


@kernel
def pay_games(kind, before, after, rewards):
    """`pay` for each of a batch of games: GAME, (N,), and float32, (N, 5)."""
    for i in range(len(after)):
        pay(kind, before[i], after[i], rewards[i])
