"""What a player reckons at a glance, as bytes behind an observation: a network need not find out by
itself what a line could deliver, and begins where the hand-made evaluation ends.

For each seat, the viewer's first and the others clockwise, COLUMNS bytes: its own features
(`agents.planner.evaluation`), then points below zero, its logit of winning and its worth in points,
each above and below the mean of the seats, and its chance to win by those logits. Absent seats are
zeros.
"""

from __future__ import annotations

import numpy as np

from busenv import Board
from busenv.agents.planner.evaluation import AT, COUNT, OWN, evaluate, find_chances, make_evaluation
from busenv.checks import check_games
from busenv.core.jit import kernel
from busenv.core.state import MAX_PLAYERS
from busenv.observation import ObservationLayout, observe_games

COLUMNS = OWN + 6
SIZE = MAX_PLAYERS * COLUMNS
STEPS = 8.0  # bytes to one of a feature
SURE = 64.0  # byte of a chance of 1
SCALE = np.float32(1 / 64)  # what brings usual bytes to 0..1
NO_PLAN = np.zeros((0, COUNT))  # of a network that is told no outlook


@kernel
def _byte(number):
    return np.uint8(min(max(number, 0.0), 255.0))


@kernel
def write_outlook(g, b, plan, evaluation, row):
    """The outlook of a game that is not over, as the seat to decide sees it, into bytes (SIZE,).

    plan: float64, (4, COUNT), weights of the evaluation.
    """
    evaluate(g, b, plan, evaluation)
    find_chances(g, evaluation)
    players, logits, values = np.int64(g.players), evaluation.win_logits, evaluation.values
    mean_logit, mean_value = 0.0, 0.0
    for seat in range(players):
        mean_logit += logits[seat] / players
        mean_value += values[seat] / players
    for slot in range(players):
        seat, at = (np.int64(g.seat) + slot) % players, slot * COLUMNS
        for k in range(OWN):
            row[at + k] = _byte(STEPS * evaluation.features[seat, k])
        logit, value = STEPS * (logits[seat] - mean_logit), STEPS * (values[seat] - mean_value)
        row[at + OWN] = _byte(-STEPS * evaluation.features[seat, AT.points])
        row[at + OWN + 1] = _byte(logit)
        row[at + OWN + 2] = _byte(-logit)
        row[at + OWN + 3] = _byte(value)
        row[at + OWN + 4] = _byte(-value)
        row[at + OWN + 5] = _byte(SURE * evaluation.chances[seat])
    for k in range(players * COLUMNS, SIZE):
        row[k] = 0


@kernel
def _write_outlooks(games, board, plan, evaluation, rows):
    for i in range(games.shape[0]):
        write_outlook(games[i], board[0], plan, evaluation, rows[i])


def see_games(games: np.ndarray, board: Board, plan: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`busenv.observation.observe_games` with the outlook behind each row, unless the plan is
    empty (0, COUNT): uint8 (N, size), bool (N, num_actions). For games that are not over."""
    rows, masks = observe_games(games, board)
    if not len(plan):
        return rows, masks
    games = check_games(games, board)
    outlooks = np.zeros((len(games), SIZE), np.uint8)
    _write_outlooks(games, board.array, plan, make_evaluation(), outlooks)
    return np.concatenate([rows, outlooks], axis=1), masks


def input_scale(board: Board, outlook: bool) -> np.ndarray:
    """Factors that bring usual bytes of such rows to 0..1: float32, (size,)."""
    scale = ObservationLayout(board).scale
    return np.concatenate([scale, np.full(SIZE, SCALE)]) if outlook else scale
