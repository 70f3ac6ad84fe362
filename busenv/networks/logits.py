"""A network's outputs: action probabilities and values. Needs no torch."""

from __future__ import annotations

import numpy as np

LOWEST_TEMPERATURE = 0.01  # lower ones practically give the most likely action
HIGHEST_TEMPERATURE = 100.0
SEAT_VALUES = 10  # values of a network for every seat: five logits of winning, five points
POINTS = 10.0  # game points per unit of a network's points output
# Error messages
GAME_OVER = "no action is legal: a game is over"
LOGITS_NOT_FINITE = "the network's logits are not finite: its weights are too large or damaged"
VALUES_NOT_FINITE = "the network's values are not finite: its weights are too large or damaged"


def action_probabilities(logits: np.ndarray, masks: np.ndarray, temperature: float) -> np.ndarray:
    """Return the probability of each action, float32 (N, num_actions); illegal ones have exactly 0.

    logits: float32, masks: bool, both (N, num_actions). temperature: above 0. Raises ValueError
    when the logits of legal actions are not finite, or when a row has no legal action.
    """
    if not masks.any(axis=1).all():
        raise ValueError(GAME_OVER)
    if not np.isfinite(logits[masks]).all():
        raise ValueError("the logits of legal actions are not finite")
    legal = np.where(masks, logits, np.float32(-np.inf))
    with np.errstate(over="ignore"):  # to -inf: a probability of 0
        legal = (legal - legal.max(axis=1, keepdims=True)) / np.float32(temperature)
    weights = np.exp(legal)
    return weights / weights.sum(axis=1, keepdims=True)
