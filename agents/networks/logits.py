"""What a network's outputs mean, for those who have no torch."""

from __future__ import annotations

import numpy as np

HIGHEST_TEMPERATURE = 100.0
POINTS = 10.0  # game points to one output of a network that tells of every seat


def action_probabilities(logits: np.ndarray, masks: np.ndarray, temperature: float) -> np.ndarray:
    """The probability of each action, float32 (N, num_actions), at a temperature above 0.

    logits: float32, masks: bool, both (N, num_actions). Illegal actions have 0 exactly. ValueError
    when logits are not finite, or no action of a row is legal.
    """
    check_playable(bool(np.isfinite(logits).all()), bool(masks.any(axis=1).all()))
    legal = np.where(masks, logits, np.float32(-np.inf))
    with np.errstate(over="ignore"):  # however far behind the best one, its probability is 0
        legal = (legal - legal.max(axis=1, keepdims=True)) / np.float32(temperature)
    weights = np.exp(legal)
    return weights / weights.sum(axis=1, keepdims=True)


def check_playable(finite: bool, legal: bool) -> None:
    """ValueError unless all logits are finite, and some action of each game is legal."""
    if not legal:
        raise ValueError("no action is legal: a game is over")
    if not finite:
        raise ValueError(
            "the network's logits are not finite: its weights are too large or damaged"
        )
