"""Runs of expert iteration: that they learn, are settled, and go on as they would have."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from busenv.agents import make_agent
from busenv.agents.networks.inference import make_policy
from busenv.agents.networks.mlp import build_network
from busenv.agents.networks.model_files import save_model
from busenv.experiments.training.training_run import run_training
from busenv.train.config_files import read_config
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.expert_iteration.learner import Learner
from tests.support.expert import CITY, SMALL, teachers_rows


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return teachers_rows()


def test_a_run_that_is_killed_ends_as_it_would_have(tmp_path: Path) -> None:
    config = SMALL.changed({"teacher": "greedy", "teacher_games": 1, "decisions": 10**6})
    straight = ExpertRun(config, tmp_path / "straight")
    for k in range(5):
        straight.step()
        if k == 2:
            shutil.copytree(tmp_path / "straight", tmp_path / "killed")
    # What a kill in the middle of the next iteration leaves: its rows, which are made anew.
    shutil.copy(tmp_path / "straight/replay/000003.npy", tmp_path / "killed/replay/000003.npy")
    resumed = ExpertRun(config, tmp_path / "killed")
    assert resumed.iteration == 3
    found = [resumed.step() for _ in range(2)]
    one, other = straight.network.state_dict(), resumed.network.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert found[-1].decisions == straight.decisions
    assert straight.imitated > 0
    assert straight.decisions > straight.imitated
    fresh = build_network("seats", CITY, 8, config.seed)
    assert not torch.equal(one["shared.weight"], fresh.state_dict()["shared.weight"])


def test_a_teachers_games_are_learned_from_when_all_are_there_and_then_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []
    learn = Learner.step

    def note(self: Learner, rows: np.ndarray, rate: float) -> dict[str, float]:
        rates.append(rate)
        return learn(self, rows, rate)

    monkeypatch.setattr(Learner, "step", note)
    monkeypatch.setattr("busenv.train.expert_iteration.expert_run.TEACHER_GAMES", 2)
    config = SMALL.changed({"teacher": "greedy", "teacher_games": 6, "replay_size": 10**6})
    run = ExpertRun(config, tmp_path / "straight")
    for _ in range(3):
        run.step()
    assert not rates
    assert not run.decisions
    shutil.copytree(tmp_path / "straight", tmp_path / "killed")
    run.step()
    assert len(rates) == round(config.teacher_reuse * run.imitated / config.batch_size)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == config.learning_rate
    assert rates[-1] < 0.5 * rates[0]
    assert run.imitated == run.decisions
    assert not [*(tmp_path / "straight/teacher").iterdir()]
    # What a kill leaves between the checkpoint and the lessons' end.
    shutil.copytree(tmp_path / "straight", tmp_path / "late")
    shutil.copytree(tmp_path / "killed/teacher", tmp_path / "late/teacher", dirs_exist_ok=True)
    run.step()
    assert [path.name for path in (tmp_path / "straight/replay").iterdir()] == ["000004.npy"]
    assert run.imitated < run.decisions
    for folder, steps in (("killed", 2), ("late", 1)):
        again = ExpertRun(config, tmp_path / folder)
        for _ in range(steps):
            again.step()
        one, other = run.network.state_dict(), again.network.state_dict()
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_each_row_of_earlier_runs_is_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: list[np.ndarray] = []
    rates: list[float] = []
    learn = Learner.step

    def note(self: Learner, rows: np.ndarray, rate: float) -> dict[str, float]:
        learned.append(rows)
        rates.append(rate)
        return learn(self, rows, rate)

    earlier = ExpertRun(SMALL.changed({"decisions": 10**6}), tmp_path / "earlier")
    for _ in range(2):
        earlier.step()
    window = tmp_path / "earlier/replay"
    kept = np.concatenate([np.load(path) for path in sorted(window.iterdir())])
    monkeypatch.setattr(Learner, "step", note)
    lessons = {"offline_data": (str(window), str(window)), "offline_epochs": 2}
    config = SMALL.changed({"decisions": 10**6, **lessons})
    run = ExpertRun(config, tmp_path / "run")
    run.step()
    assert run.imitated == run.decisions == 2 * len(kept)
    found = np.concatenate(learned)
    size = config.batch_size
    assert len(found) == 2 * (2 * len(kept) // size * size)
    times = Counter(row.tobytes() for row in kept)
    seen = Counter(row.tobytes() for row in found)
    assert all(seen[row] <= 4 * times[row] for row in seen)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == config.learning_rate
    assert not [*(tmp_path / "run/replay").iterdir()]
    again = ExpertRun(config, tmp_path / "run")
    assert again.iteration == 1
    again.step()
    assert [path.name for path in (tmp_path / "run/replay").iterdir()] == ["000001.npy"]


def test_folders_without_rows_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match=rf"no rows in {folder}; allowed: a run's folder"):
            ExpertRun(SMALL.changed({"offline_data": (str(folder),)}), tmp_path / "run")


def test_a_teacher_plays_no_more_games_than_there_is_room_for(tmp_path: Path) -> None:
    changes = {"teacher": "greedy", "teacher_games": 10**6, "replay_size": 50, "decisions": 10**6}
    run = ExpertRun(SMALL.changed(changes), tmp_path)
    run.step()
    assert not run.imitated
    run.step()
    assert run.imitated >= 50


@pytest.mark.parametrize("limit", [{"decisions": 400, "seconds": None}, {"seconds": 1e-3}])
def test_a_teacher_has_a_share_of_the_run(limit: dict[str, Any], tmp_path: Path) -> None:
    changes = {"teacher": "greedy", "teacher_games": 10**6, "decisions": None, **limit}
    run = ExpertRun(SMALL.changed(changes), tmp_path)
    while not run.is_done:
        run.step()
    assert run.iteration <= 4
    assert run.imitated > 0


@pytest.mark.parametrize(
    ("past", "heir"), [("mlp", "seats"), ("mlp", "features"), ("seats", "features")]
)
def test_a_run_begins_as_a_model_that_is_told_less(
    past: str, heir: str, tmp_path: Path, rows: np.ndarray
) -> None:
    network = build_network(past, CITY, 8, seed=5)
    network.get_parameter("policy.2.weight").data *= 300
    save_model(network, CITY, tmp_path / "past.safetensors", {"network": past, "width": 8})
    config = SMALL.changed({"network": heir, "init_from": str(tmp_path / "past.safetensors")})
    run, games = ExpertRun(config, tmp_path / "run"), rows["game"][:50].copy()
    expected = make_policy(network, CITY)(games, 1.0)
    np.testing.assert_allclose(make_policy(run.network, CITY)(games, 1.0), expected, atol=1e-6)
    told = network.get_parameter("shared.weight").shape[1]
    new = run.network.get_parameter("shared.weight")[:, told:]
    assert not new.any()
    run.step()
    assert new.any() == (heir == "features")  # it learns from what is new


def test_a_run_begins_as_the_mean_of_models(tmp_path: Path) -> None:
    networks = [build_network("features", CITY, 8, seed) for seed in (5, 6, 7)]
    paths = [str(tmp_path / f"{k}.safetensors") for k in range(3)]
    for network, path in zip(networks, paths, strict=True):
        save_model(network, CITY, Path(path), {"network": "features", "width": 8})
    config = SMALL.changed({"init_from": paths[0], "average_checkpoints": paths[1:]})
    found = ExpertRun(config, tmp_path / "run").network.state_dict()
    one, *others = (network.state_dict() for network in networks)
    assert not one["shared.weight"].equal(others[0]["shared.weight"])
    for name, tensor in found.items():
        torch.testing.assert_close(
            tensor, (one[name] + others[0][name] + others[1][name]) / 3, rtol=1e-5, atol=1e-7
        )
    with pytest.raises(ValueError, match="average_checkpoints names models, but init_from is ''"):
        SMALL.changed({"average_checkpoints": paths[1:]})


def test_an_interrupted_update_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, step, calls = ExpertRun(SMALL, tmp_path), Learner.step, []
    before = {name: value.clone() for name, value in run.network.state_dict().items()}

    def interrupted(self: Learner, *arguments: Any) -> dict[str, float]:
        found = step(self, *arguments)
        calls.append(found)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(Learner, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.step()
    run.save()
    assert all(torch.equal(value, before[name]) for name, value in run.network.state_dict().items())
    assert ExpertRun(SMALL, tmp_path).iteration == 0
    assert not [*(tmp_path / "replay").iterdir()]


def test_a_recipe_is_run_rated_and_can_be_played(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(SMALL.to_dict()))
    config = read_config(str(recipe))
    assert config == SMALL
    console = Console(record=True, width=70, file=io.StringIO())
    run, curve = run_training(config, tmp_path / "run", console)
    assert run.decisions >= 500
    assert curve[-1].wins.keys() == {"random"}
    assert "expert iteration" in console.export_text()
    assert [*(tmp_path / "run/tensorboard").iterdir()]
    model = tmp_path / "run/model.safetensors"
    assert make_agent(f"az:{model}:4") is not None
    longer = read_config(str(tmp_path / "run/run.json")).changed({"decisions": run.decisions + 1})
    assert run_training(longer, tmp_path / "run", Console(quiet=True))[0].iteration == (
        run.iteration + 1
    )


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    for content, words in (
        ({"method": "guess"}, "method is 'guess'; allowed: ppo, expert"),
        (
            {"method": "expert", "num_simulations": 0},
            "num_simulations is 0; allowed: a whole number 1 to 100,000",
        ),
        ({"method": "expert", "gamma": 0.5}, "no setting 'gamma'"),
        ({"method": "expert", "device": "cuda"}, "device is 'cuda'; allowed: auto, cpu"),
        ({"method": "expert", "teacher": "exec:true"}, "a file may not name a program"),
        ({"num_simulations": 5}, "no setting 'num_simulations'"),
    ):
        recipe.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=words):
            read_config(str(recipe))
    model = tmp_path / "wide.safetensors"
    network = build_network("features", CITY, 12)
    save_model(network, CITY, model, {"network": "features", "width": 12})
    with pytest.raises(ValueError, match="of width 8; allowed with it: features, of width 12"):
        ExpertRun(SMALL.changed({"init_from": str(model)}), tmp_path / "run")
