"""Programs that fit the parameters of agents."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from busenv.heuristics.evaluation import COUNT, WEIGHTS, parse_weights
from experiments.studies import (
    generalisation,
    generated_boards,
    imitation,
    tune,
)
from experiments.studies.tune import logit, planner_score, tune_win, weights_text


def test_weights_round_trip() -> None:
    assert np.allclose(parse_weights(weights_text(WEIGHTS)), WEIGHTS, atol=1e-4)


def test_logit_recovers_the_weights_of_simulated_winners() -> None:
    rng = np.random.default_rng(1)
    features, weights = rng.normal(size=(20_000, 4, 3)), np.array([1.0, -0.5, 0.0])
    utility = features @ weights + rng.gumbel(size=(20_000, 4))
    assert np.abs(logit(features, utility.argmax(1)) - weights).max() < 0.06


def test_tuned_evaluation_weights_score_higher() -> None:
    assert planner_score(WEIGHTS, 64, 1) > planner_score(-WEIGHTS, 64, 1) + 0.3


def test_a_short_study_writes_weights(tmp_path: Path) -> None:
    tune_win(2.0, 1, tmp_path / "weights.json")
    weights = parse_weights((tmp_path / "weights.json").read_text())
    assert weights.shape == (4, COUNT)
    assert np.isfinite(weights).all()
    assert (weights[0] == WEIGHTS[0]).all()


def test_a_study_without_positions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "SAMPLE_SHARE", 0)
    with pytest.raises(SystemExit, match=r"no positions of stage .*; allowed: more --seconds"):
        tune_win(0.1, 1, tmp_path / "weights.json")


@pytest.mark.parametrize(
    ("study", "arguments", "message"),
    [
        (tune, "win --seconds 0", "'0' is not a number greater than 0"),
        (imitation, "dataset.npz --out out --seed -1", "'-1' is not a whole number from 0"),
        (tune, "win --out /", "--out is /, a folder; allowed: a file"),
        (generalisation, "folder --seeds 0", "'0' is not a whole number greater than 0"),
        (generated_boards, "--boards 0", "'0' is not a whole number greater than 0"),
    ],
)
def test_wrong_arguments_of_studies_are_refused(
    study: ModuleType,
    arguments: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["study", *arguments.split()])
    with pytest.raises(SystemExit):
        study.main()
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_stopped_study_has_the_weights_of_the_last_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(weights: np.ndarray, games: int, seed: int) -> float:
        if seed == 2:  # the second generation
            raise KeyboardInterrupt
        return 0.0

    mean = np.full(COUNT, 0.5)
    search = SimpleNamespace(mean=mean, ask=lambda: [mean], tell=lambda *_: None)
    cma = SimpleNamespace(CMAEvolutionStrategy=lambda *_: search)
    monkeypatch.setitem(sys.modules, "cma", cma)
    monkeypatch.setattr(tune, "planner_score", score)
    with pytest.raises(KeyboardInterrupt):
        tune.tune_value(900.0, 1, tmp_path / "weights.json")
    weights = parse_weights((tmp_path / "weights.json").read_text())
    assert (weights != WEIGHTS).any()
