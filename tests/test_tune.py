"""Programs that fit the parameters of agents."""

import numpy as np

from busenv.agents.planner.evaluation import COUNT, WEIGHTS, parse_weights
from busenv.experiments.studies.tune import logit, planner_score, tune_win, weights_text


def test_weights_round_trip() -> None:
    assert np.allclose(parse_weights(weights_text(WEIGHTS)), WEIGHTS, atol=1e-4)


def test_logit_recovers_the_weights_of_simulated_winners() -> None:
    rng = np.random.default_rng(1)
    features, weights = rng.normal(size=(20_000, 4, 3)), np.array([1.0, -0.5, 0.0])
    utility = features @ weights + rng.gumbel(size=(20_000, 4))
    assert np.abs(logit(features, utility.argmax(1)) - weights).max() < 0.06


def test_good_plan_weights_score_higher() -> None:
    assert planner_score(WEIGHTS, 64, 1) > planner_score(-WEIGHTS, 64, 1) + 0.3


def test_a_short_study_returns_weights() -> None:
    weights = tune_win(2.0, 1)
    assert weights.shape == (4, COUNT)
    assert np.isfinite(weights).all()
    assert (weights[0] == WEIGHTS[0]).all()
