"""The studies behind the agents' numbers do what they say."""

from __future__ import annotations

import numpy as np

from busenv.agents.planner.evaluation import COUNT, WEIGHTS, read_weights
from busenv.agents.search.playout import PLAYOUT_WEIGHTS
from busenv.experiments.studies.tune import (
    logit,
    planner_score,
    tune_playout,
    tune_win,
    weights_text,
)


def test_weights_survive_being_written() -> None:
    assert np.allclose(read_weights(weights_text(WEIGHTS)), WEIGHTS, atol=1e-4)


def test_logit_finds_the_weights_that_winners_were_drawn_by() -> None:
    rng = np.random.default_rng(1)
    features, true = rng.normal(size=(20_000, 4, 3)), np.array([1.0, -0.5, 0.0])
    worth = features @ true + rng.gumbel(size=(20_000, 4))
    assert np.abs(logit(features, worth.argmax(1)) - true).max() < 0.06


def test_plans_are_scored() -> None:
    assert planner_score(WEIGHTS, 64, 1) > planner_score(-WEIGHTS, 64, 1) + 0.3


def test_short_studies_end() -> None:
    weights = tune_win(2.0, 1)
    assert weights.shape == (4, COUNT)
    assert np.isfinite(weights).all()
    assert (weights[0] == WEIGHTS[0]).all()
    shares = tune_playout(1.0, 1, simulations=20)
    assert shares.shape == PLAYOUT_WEIGHTS.shape
    assert 0 < shares.max() <= 1
