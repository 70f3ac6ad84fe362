"""What expert iteration learns from: decisions of finished games, a record each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv import Board
from busenv.agents.networks.evaluation_features import observe_with_features
from busenv.agents.networks.logits import POINTS
from busenv.core.jit import kernel
from busenv.core.rules.score import points_of, rank_of
from busenv.core.state import GAME, MAX_PLAYERS

MOST_ACTIONS = 64  # of a row; the likeliest, where more are legal
WHOLE = 65535  # shares are counted in parts of it

ROW = np.dtype(
    [
        ("game", GAME),  # before the decision
        ("actions", np.uint16, MOST_ACTIONS),
        ("shares", np.uint16, MOST_ACTIONS),  # of the policy to be learned, 0 behind the last; none
        # where it was another's decision, or without a search (`expert.alone`)
        ("chance", np.float32),  # without a search: to draw the first action, which was taken
        ("advantage", np.float32),  # ... and how much better it was than expected
        ("chances", np.float32, MAX_PLAYERS),  # to win, as was thought then, by seat
        ("points", np.int8, MAX_PLAYERS),  # at the end of the game, by seat
        ("winner", np.uint8),  # seat
        ("rounds", np.uint8),  # of the whole game
        ("telling", np.bool_),  # whether how the game ended is to be learned
    ]
)


@kernel
def write_row(row, game, policy):
    """Begin a row of zeros: a decision, and the policy to be learned (float32, (num_actions,); it
    is spoilt). The chances are left to whoever calls."""
    row.game = game
    for k in range(MOST_ACTIONS):
        best = policy.argmax()
        if policy[best] <= 0.0:
            break
        row.actions[k] = best
        row.shares[k] = np.uint16(round(WHOLE * np.float64(policy[best])))
        policy[best] = 0.0


@kernel
def finish_rows(rows, game, telling):
    """Write how a game ended into its rows; where nobody thought of chances, who wins has all.
    telling: whether that is to be learned."""
    for i in range(rows.shape[0]):
        for seat in range(game.players):
            rows[i].points[seat] = points_of(game, seat)
            if rank_of(game, seat) == 0:
                rows[i].winner = seat
        if rows[i].chances.sum() == 0.0:
            rows[i].chances[rows[i].winner] = 1.0
        rows[i].rounds = game.round
        rows[i].telling = telling


class Examples(NamedTuple):
    """Rows as a network learns them, seats as who decides sees them (the first is its own).

    inputs: uint8, (N, size). masks: bool, (N, num_actions). policy: float32, (N, num_actions), a
    row of zeros where there is none to be learned.
    chances: float32, (N, 5), adding up to 1. points: float32, (N, 5), in units of POINTS. present:
    bool, (N, 5).
    """

    inputs: np.ndarray
    masks: np.ndarray
    policy: np.ndarray
    chances: np.ndarray
    points: np.ndarray
    present: np.ndarray


@kernel
def _unpack(rows, share, policy, chances, points, present):
    for i in range(rows.shape[0]):
        row = rows[i]
        game, players = row.game, np.int64(row.game.players)
        total = 0.0
        for k in range(MOST_ACTIONS):
            total += row.shares[k]
        for k in range(MOST_ACTIONS):
            if row.shares[k] > 0:
                policy[i, row.actions[k]] = row.shares[k] / total
        for slot in range(players):
            seat = (np.int64(game.seat) + slot) % players
            present[i, slot] = True
            points[i, slot] = row.points[seat] / POINTS
            chances[i, slot] = share * row.chances[seat] + (1.0 - share) * (row.winner == seat)


def unpack(rows: np.ndarray, board: Board, share: float, plan: np.ndarray) -> Examples:
    """Examples from rows (ROW, (N,)). share: of what the search thought in the chances to win; the
    rest is who won. plan: of the network, see `agents.networks.evaluation_features`."""
    count = len(rows)
    games = np.zeros(count, GAME)
    games[:] = rows["game"]
    inputs, masks = observe_with_features(games, board, plan)
    policy = np.zeros(masks.shape, np.float32)
    chances, points = (np.zeros((count, MAX_PLAYERS), np.float32) for _ in range(2))
    present = np.zeros((count, MAX_PLAYERS), np.bool_)
    _unpack(rows, share, policy, chances, points, present)
    return Examples(inputs, masks, policy, chances, points, present)
