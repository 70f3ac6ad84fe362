"""What a player reckons at a glance and foresees, as bytes behind an observation: a network need
not find out by itself what a line could deliver, and begins where the hand-made evaluation ends.

For each seat, the viewer's first and the others clockwise, COLUMNS bytes. First its own features
(`agents.planner.evaluation`), then points below zero, its logit of winning and its worth in points,
each above and below the mean of the seats, and its chance to win by those logits. Then what
PLAYOUTS playouts of ROUNDS rounds lead to (`agents.search.playout`): the mean of its chances to win
there, how far that is from certain, and its points above and below the mean of the seats. Absent
seats are zeros. The playouts are drawn from the position itself, so that it always looks the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv import Board
from busenv.agents.planner.evaluation import (
    AT,
    COUNT,
    OWN,
    Evaluation,
    evaluate,
    find_chances,
    make_evaluation,
)
from busenv.agents.search.playout import playout
from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.score import points_of
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.observation import ObservationLayout, observe_games
from busenv.validation import check_games

PLAYOUTS, ROUNDS = 4, 2
GLANCE = OWN + 6  # columns before those of playouts
COLUMNS = GLANCE + 4
SIZE = MAX_PLAYERS * COLUMNS
STEPS = 8.0  # bytes to one of a feature
SURE = 64.0  # byte of a chance of 1
FORESEEN = 255.0  # ... of one that playouts lead to
UNSURE, HARDLY = 48.0, 0.01  # bytes to one of -log(chance), and the least chance there
AHEAD = 16.0  # bytes to a point ahead
SCALE = np.float32(1 / 64)  # what brings usual bytes to 0..1
NO_PLAN = np.zeros((0, COUNT))  # of a network that is told no outlook


class Foresight(NamedTuple):
    """Arrays that an outlook is worked out in.

    ahead: GAME, (1,), where a playout leads. chances, points: float64, (5,), by seat, the sums of
    what playouts lead to.
    """

    evaluation: Evaluation
    ahead: np.ndarray
    chances: np.ndarray
    points: np.ndarray


def make_foresight() -> Foresight:
    """Arrays for one thread, for any board."""
    return Foresight(
        make_evaluation(), np.zeros(1, GAME), np.zeros(MAX_PLAYERS), np.zeros(MAX_PLAYERS)
    )


@kernel
def _byte(number):
    return np.uint8(min(max(number, 0.0), 255.0))


@kernel
def _noise_of(g):
    """A random stream of a position."""
    noise = mix(g.free_sites) ^ g.peopled ^ np.uint64(g.round)
    for seat in range(g.players):
        noise = mix(noise ^ g.reach[seat]) + np.uint64(g.markers[seat])
    for kind in range(3):
        noise = mix(noise ^ g.type_sites[kind])
    return noise + np.uint64(g.seat)


@kernel
def _foresee(g, b, plan, work):
    """Chances and points at the ends of playouts, summed up."""
    noise, ahead = _noise_of(g), work.ahead[0]
    work.chances[:] = 0.0
    work.points[:] = 0.0
    for _ in range(PLAYOUTS):
        noise += GOLDEN
        work.ahead[0] = g
        playout(ahead, b, ROUNDS, mix(noise))
        evaluate(ahead, b, plan, work.evaluation)
        find_chances(ahead, work.evaluation)
        for seat in range(g.players):
            work.chances[seat] += work.evaluation.chances[seat]
            work.points[seat] += points_of(ahead, seat)


@kernel
def _write_foresight(g, work, row):
    players, mean = np.int64(g.players), 0.0
    for seat in range(players):
        mean += work.points[seat] / players
    for slot in range(players):
        seat, at = (np.int64(g.seat) + slot) % players, slot * COLUMNS + GLANCE
        chance = work.chances[seat] / PLAYOUTS
        points = AHEAD * (work.points[seat] - mean) / PLAYOUTS
        row[at] = _byte(FORESEEN * chance)
        row[at + 1] = _byte(-UNSURE * np.log(max(chance, HARDLY)))
        row[at + 2] = _byte(points)
        row[at + 3] = _byte(-points)


@kernel
def _write_glance(g, b, plan, evaluation, row):
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


@kernel
def write_outlook(g, b, plan, work, row):
    """The outlook of a game that is not over, as the seat to decide sees it, into bytes (SIZE,).

    plan: float64, (4, COUNT), weights of the evaluation.
    """
    _write_glance(g, b, plan, work.evaluation, row)
    _foresee(g, b, plan, work)
    _write_foresight(g, work, row)
    for k in range(np.int64(g.players) * COLUMNS, SIZE):
        row[k] = 0


@kernel
def _write_outlooks(games, board, plan, work, rows):
    for i in range(games.shape[0]):
        write_outlook(games[i], board[0], plan, work, rows[i])


def see_games(games: np.ndarray, board: Board, plan: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`busenv.observation.observe_games` with the outlook behind each row, unless the plan is
    empty (0, COUNT): uint8 (N, size), bool (N, num_actions). For games that are not over."""
    rows, masks = observe_games(games, board)
    if not len(plan):
        return rows, masks
    games = check_games(games, board)
    outlooks = np.zeros((len(games), SIZE), np.uint8)
    _write_outlooks(games, board.array, plan, make_foresight(), outlooks)
    return np.concatenate([rows, outlooks], axis=1), masks


def input_scale(board: Board, outlook: bool) -> np.ndarray:
    """Factors that bring usual bytes of such rows to 0..1: float32, (size,)."""
    scale = ObservationLayout(board).scale
    return np.concatenate([scale, np.full(SIZE, SCALE)]) if outlook else scale
