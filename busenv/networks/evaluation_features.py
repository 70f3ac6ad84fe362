"""Handcrafted features that a network receives as bytes behind an observation.

For each seat, the viewer's first and then clockwise, COLUMNS bytes:

- evaluation features: the seat's features of `heuristics.evaluation`; the amount of negative
  points; its logit of winning and its value in points, each minus the mean of the seats, as two
  bytes (positive part, negative part); its chance to win by those logits.
- playout features, from FEATURE_PLAYOUTS playouts of PLAYOUT_ROUNDS rounds
  (`heuristics.playout`): the mean of its chances to win, minus the logarithm of that, and its
  points minus the mean of the seats, as two bytes.

Absent seats are zeros. The playouts' random stream is a hash of the position, so that equal
positions have equal features.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.score import points_of
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.heuristics.evaluation import (
    AT,
    COUNT,
    OWN,
    Evaluation,
    evaluate,
    find_chances,
    make_evaluation,
)
from busenv.heuristics.playout import playout

FEATURE_PLAYOUTS, PLAYOUT_ROUNDS = 4, 2
EVALUATION_COLUMNS = OWN + 6
COLUMNS = EVALUATION_COLUMNS + 4
FEATURES_SIZE = MAX_PLAYERS * COLUMNS
# Bytes per unit. Values below 0 and above 255 are clipped.
FEATURE_SCALE = 8.0
CHANCE_SCALE = 64.0
PLAYOUT_CHANCE_SCALE = 255.0
LOG_CHANCE_SCALE, MIN_CHANCE = 48.0, 0.01  # -log(chance), of chances from MIN_CHANCE up
POINTS_SCALE = 16.0
INPUT_SCALE = np.float32(1 / 64)  # brings usual bytes to 0..1
NO_EVAL_WEIGHTS = np.zeros((0, COUNT))  # of networks without these features


class FeatureWorkspace(NamedTuple):
    """Arrays of one thread.

    ahead: GAME, (1,), the end of a playout. chances, points: float64, (5,), by seat, sums over
    playouts.
    """

    evaluation: Evaluation
    ahead: np.ndarray
    chances: np.ndarray
    points: np.ndarray


def make_feature_workspace() -> FeatureWorkspace:
    """Return arrays for any board."""
    return FeatureWorkspace(
        make_evaluation(), np.zeros(1, GAME), np.zeros(MAX_PLAYERS), np.zeros(MAX_PLAYERS)
    )


@kernel
def _byte(number):
    return np.uint8(min(number, 255.0)) if number > 0.0 else np.uint8(0)  # 0 for nan


@kernel
def _seed_of(g):
    """Return a seed that depends on the position alone."""
    seed = mix(g.free_sites) ^ g.occupied ^ np.uint64(g.round)
    for seat in range(g.players):
        seed = mix(seed ^ g.reach[seat]) + np.uint64(g.markers[seat])
    for kind in range(3):
        seed = mix(seed ^ g.type_sites[kind])
    return seed + np.uint64(g.seat)


@kernel
def _run_playouts(g, b, eval_weights, work):
    """Sum up chances and points at the ends of playouts."""
    seed, ahead = _seed_of(g), work.ahead[0]
    work.chances[:] = 0.0
    work.points[:] = 0.0
    for _ in range(FEATURE_PLAYOUTS):
        seed += GOLDEN
        work.ahead[0] = g
        playout(ahead, b, np.int64(PLAYOUT_ROUNDS), mix(seed))
        evaluate(ahead, b, eval_weights, work.evaluation)
        find_chances(ahead, work.evaluation)
        for seat in range(g.players):
            work.chances[seat] += work.evaluation.chances[seat]
            work.points[seat] += points_of(ahead, seat)


@kernel
def _write_playout_features(g, work, row):
    players, mean = np.int64(g.players), 0.0
    for seat in range(players):
        mean += work.points[seat] / players
    for slot in range(players):
        seat, at = (np.int64(g.seat) + slot) % players, slot * COLUMNS + EVALUATION_COLUMNS
        chance = work.chances[seat] / FEATURE_PLAYOUTS
        points = POINTS_SCALE * (work.points[seat] - mean) / FEATURE_PLAYOUTS
        row[at] = _byte(PLAYOUT_CHANCE_SCALE * chance)
        row[at + 1] = _byte(-LOG_CHANCE_SCALE * math.log(max(chance, MIN_CHANCE)))
        row[at + 2] = _byte(points)
        row[at + 3] = _byte(-points)


@kernel
def _write_evaluation_features(g, b, eval_weights, evaluation, row):
    evaluate(g, b, eval_weights, evaluation)
    find_chances(g, evaluation)
    players, logits, values = np.int64(g.players), evaluation.win_logits, evaluation.values
    mean_logit, mean_value = 0.0, 0.0
    for seat in range(players):
        mean_logit += logits[seat] / players
        mean_value += values[seat] / players
    for slot in range(players):
        seat, at = (np.int64(g.seat) + slot) % players, slot * COLUMNS
        for k in range(OWN):
            row[at + k] = _byte(FEATURE_SCALE * evaluation.features[seat, k])
        logit = FEATURE_SCALE * (logits[seat] - mean_logit)
        value = FEATURE_SCALE * (values[seat] - mean_value)
        row[at + OWN] = _byte(-FEATURE_SCALE * evaluation.features[seat, AT.points])
        row[at + OWN + 1] = _byte(logit)
        row[at + OWN + 2] = _byte(-logit)
        row[at + OWN + 3] = _byte(value)
        row[at + OWN + 4] = _byte(-value)
        row[at + OWN + 5] = _byte(CHANCE_SCALE * evaluation.chances[seat])


@kernel
def write_features(g, b, eval_weights, work, row):
    """Write the features of a game that is not over into bytes (FEATURES_SIZE,).

    eval_weights: float64, (4, COUNT), of `heuristics.evaluation`.
    """
    _write_evaluation_features(g, b, eval_weights, work.evaluation, row)
    _run_playouts(g, b, eval_weights, work)
    _write_playout_features(g, work, row)
    for k in range(np.int64(g.players) * COLUMNS, FEATURES_SIZE):
        row[k] = 0
