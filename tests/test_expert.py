"""Runs of expert iteration: learning, settings, resuming."""

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

from busenv import Game
from busenv.agents import make_agent
from busenv.networks.factory import build_network
from busenv.networks.inference import make_policy
from busenv.networks.model_files import save_model
from busenv.train import training_run
from busenv.train.config_files import read_config
from busenv.train.expert_iteration import expert_run
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.expert_iteration.learner import Learner
from busenv.train.expert_iteration.replay_buffer import read_samples
from busenv.train.expert_iteration.selfplay_players import BOTS
from busenv.train.training_run import run_training
from tests.support.networks import CITY
from tests.support.training import SMALL_EXPERT, parameters, same_tensors, teacher_samples

LONG = SMALL_EXPERT.changed({"decisions": 10**6})


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[tuple[np.ndarray, float]]:
    """Samples and learning rate of each update."""
    calls: list[tuple[np.ndarray, float]] = []
    step = Learner.step

    def recorded(self: Learner, samples: np.ndarray, rate: float) -> dict[str, float]:
        calls.append((samples, rate))
        return step(self, samples, rate)

    monkeypatch.setattr(Learner, "step", recorded)
    return calls


def assert_falling(updates: list[tuple[np.ndarray, float]]) -> None:
    rates = [rate for _, rate in updates]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == SMALL_EXPERT.learning_rate
    assert rates[-1] < 0.5 * rates[0]


def test_a_killed_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    config = LONG.changed({"teacher": "greedy", "teacher_games": 1})
    straight = ExpertRun(config, tmp_path / "straight")
    for k in range(5):
        straight.step()
        if k == 2:
            shutil.copytree(tmp_path / "straight", tmp_path / "killed")
    # A kill during the next iteration leaves its samples, which the resumed run plays again.
    shutil.copy(
        tmp_path / "straight/replay/000003.safetensors",
        tmp_path / "killed/replay/000003.safetensors",
    )
    resumed = ExpertRun(config, tmp_path / "killed")
    assert resumed.iteration == 3
    for _ in range(2):
        resumed.step()
    assert same_tensors(parameters(straight), parameters(resumed))
    assert resumed.decisions == straight.decisions
    assert straight.decisions > straight.imitated > 0
    fresh = build_network(config.network, CITY, 8, config.seed)
    assert not torch.equal(straight.network.shared.weight, fresh.state_dict()["shared.weight"])


def test_teacher_samples_are_learned_from_after_all_games_and_then_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: list[tuple[np.ndarray, float]]
) -> None:
    monkeypatch.setattr("busenv.train.expert_iteration.expert_run.TEACHER_GAMES", 2)
    changes = {"teacher_games": 6, "replay_size": 10**6, "snapshot_every": 1}
    config = SMALL_EXPERT.changed({"teacher": "greedy", **changes})
    run = ExpertRun(config, tmp_path / "straight")
    for _ in range(3):
        run.step()
    assert not updates
    assert not file_names(tmp_path / "straight/past")  # the network is untrained
    assert not run.decisions
    shutil.copytree(tmp_path / "straight", tmp_path / "killed")
    run.step()
    assert len(updates) == round(config.teacher_reuse * run.imitated / config.batch_size)
    assert_falling(updates)
    assert run.imitated == run.decisions
    assert not file_names(tmp_path / "straight/teacher")
    # A kill between the checkpoint and the deletion leaves the teacher's samples.
    shutil.copytree(tmp_path / "straight", tmp_path / "late")
    shutil.copytree(tmp_path / "killed/teacher", tmp_path / "late/teacher", dirs_exist_ok=True)
    run.step()
    assert file_names(tmp_path / "straight/replay") == ["000004.safetensors"]
    assert run.imitated < run.decisions
    for folder, steps in (("killed", 2), ("late", 1)):
        again = ExpertRun(config, tmp_path / folder)
        for _ in range(steps):
            again.step()
        assert same_tensors(parameters(run), parameters(again))


def test_an_untrained_network_is_rated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rated = []

    def rate(run: ExpertRun, *arguments: Any) -> None:
        rated.append(run.decisions)
        rate_run(run, *arguments)

    rate_run = training_run._rate
    monkeypatch.setattr(training_run, "_rate", rate)
    monkeypatch.setattr("busenv.train.expert_iteration.expert_run.TEACHER_GAMES", 2)
    changes = {"teacher": "greedy", "teacher_games": 6, "rate_every": 1e-3}
    run, _ = run_training(SMALL_EXPERT.changed(changes), tmp_path, Console(quiet=True))
    assert run.iteration > 3
    assert rated == sorted({*rated})


def test_each_offline_sample_is_learned_from_in_every_epoch(
    tmp_path: Path, updates: list[tuple[np.ndarray, float]]
) -> None:
    earlier = ExpertRun(LONG, tmp_path / "earlier")
    for _ in range(2):
        earlier.step()
    replay = tmp_path / "earlier/replay"
    stored = np.concatenate(read_samples((str(replay),), CITY))
    config = LONG.changed({"offline_data": (str(replay), str(replay)), "offline_epochs": 2})
    run = ExpertRun(config, tmp_path / "run")
    updates.clear()
    run.step()
    assert run.imitated == run.decisions == 2 * len(stored)
    learned, size = np.concatenate([samples for samples, _ in updates]), config.batch_size
    assert len(learned) == 2 * (2 * len(stored) // size * size)
    limits = Counter(sample.tobytes() for sample in stored)
    times = Counter(sample.tobytes() for sample in learned)
    assert all(times[sample] <= 4 * limits[sample] for sample in times)
    assert_falling(updates)
    assert not file_names(tmp_path / "run/replay")
    again = ExpertRun(config, tmp_path / "run")
    assert again.iteration == 1
    again.step()
    assert file_names(tmp_path / "run/replay") == ["000001.safetensors"]


def test_offline_data_without_samples_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(
            ValueError,
            match=rf"no samples in {folder}; allowed: .* which holds files such as 000000\.safet",
        ):
            ExpertRun(SMALL_EXPERT.changed({"offline_data": (str(folder),)}), tmp_path / "run")


def test_agents_that_cannot_play_on_the_board_are_refused_before_files_are_written(
    tmp_path: Path,
) -> None:
    board = "generated:small:7"
    for changes in ({"rated": ["net:city-2"]}, {"teacher": "net:city-2", "teacher_games": 1}):
        config = SMALL_EXPERT.changed({"board": board, **changes})
        with pytest.raises(ValueError, match=r"net:city-2 was trained on .*city.*, not on .*small"):
            run_training(config, tmp_path, Console(quiet=True))
        assert not [
            path for path in tmp_path.rglob("*.*") if path.suffix in (".json", ".safetensors")
        ]


def test_self_play_is_compiled_before_the_clock_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def record(name: str) -> None:
        call = getattr(expert_run, name)

        def recorded(*arguments: Any) -> Any:
            calls.append(name)
            return call(*arguments)

        monkeypatch.setattr(expert_run, name, recorded)

    for name in ("play_on_threads", "make_batch"):
        record(name)
    monkeypatch.setattr(ExpertRun, "_start_clock", lambda _: calls.append("clock"))
    ExpertRun(SMALL_EXPERT, tmp_path)
    assert calls == ["play_on_threads", "make_batch", "clock"]


def test_an_iteration_without_samples_does_not_end_the_run(
    tmp_path: Path, updates: list[tuple[np.ndarray, float]]
) -> None:
    config = LONG.changed({"full_search_share": 1e-9})
    run = ExpertRun(config, tmp_path)
    for _ in range(2):
        assert run.step().scalars["games/samples"] == 0
    assert not updates
    assert ExpertRun(config, tmp_path).iteration == 2


def test_a_teacher_stops_when_the_replay_buffer_is_full(tmp_path: Path) -> None:
    changes = {"teacher": "greedy", "teacher_games": 10**6, "replay_size": 50}
    run = ExpertRun(LONG.changed(changes), tmp_path)
    run.step()
    assert not run.imitated
    run.step()
    assert run.imitated >= 50


@pytest.mark.parametrize("limit", [{"decisions": 400, "seconds": None}, {"seconds": 1e-3}])
def test_a_teacher_stops_at_its_share_of_the_run(limit: dict[str, Any], tmp_path: Path) -> None:
    changes = {"teacher": "greedy", "teacher_games": 10**6, "decisions": None, **limit}
    run = ExpertRun(SMALL_EXPERT.changed(changes), tmp_path)
    while not run.is_done:
        run.step()
    assert run.iteration <= 4
    assert run.imitated > 0


@pytest.mark.parametrize(
    ("source", "network"), [("mlp", "seats"), ("mlp", "features"), ("seats", "features")]
)
def test_a_run_starts_from_a_model_with_fewer_inputs(
    source: str, network: str, tmp_path: Path
) -> None:
    model = build_network(source, CITY, 8, seed=5, relative_types=True)
    model.get_parameter("policy.2.weight").data *= 300
    path = tmp_path / "model.safetensors"
    save_model(model, CITY, path, {"network": source, "width": 8})
    config = SMALL_EXPERT.changed({"network": network, "init_from": str(path)})
    run, games = ExpertRun(config, tmp_path / "run"), teacher_samples()["game"][:50].copy()
    expected = make_policy(model)(games, CITY, 1.0)
    np.testing.assert_allclose(make_policy(run.network)(games, CITY, 1.0), expected, atol=1e-6)
    inputs = model.get_parameter("shared.weight").shape[1]
    new_weights = run.network.get_parameter("shared.weight")[:, inputs:]
    assert not new_weights.any()
    run.step()
    assert new_weights.any() == (network == "features")
    with pytest.raises(ValueError, match="relative_types is False; allowed"):
        ExpertRun(config.changed({"relative_types": False}), tmp_path / "other")


def test_an_interrupted_update_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, step, calls = ExpertRun(SMALL_EXPERT, tmp_path), Learner.step, []
    before = parameters(run)

    def interrupted(self: Learner, *arguments: Any) -> dict[str, float]:
        losses = step(self, *arguments)
        calls.append(losses)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return losses

    monkeypatch.setattr(Learner, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.step()
    run.save()
    assert same_tensors(before, parameters(run))
    assert ExpertRun(SMALL_EXPERT, tmp_path).iteration == 0
    assert not file_names(tmp_path / "replay")


def test_an_interrupted_iteration_is_repeated_with_its_own_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, start_games = [], ExpertRun._start_games

    def recorded(self: ExpertRun, number: int) -> Any:
        started.append(number)
        return start_games(self, number)

    monkeypatch.setattr(ExpertRun, "_start_games", recorded)
    run = ExpertRun(LONG.changed({"staleness": 1}), tmp_path)
    run.step()
    with monkeypatch.context() as patched:
        patched.setattr(Learner, "step", press)
        with pytest.raises(KeyboardInterrupt):
            run.step()
    run.step()
    assert started == [0, 1, 2, 1, 2]


def press(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_recipe_is_trained_rated_and_playable(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(SMALL_EXPERT.to_dict()))
    config = read_config(str(recipe))
    assert config == SMALL_EXPERT
    console = Console(record=True, width=70, file=io.StringIO())
    run, curve = run_training(config, str(tmp_path / "run"), console)
    assert run.decisions >= 500
    assert curve[-1].wins.keys() == {"random"}
    assert "expert iteration" in console.export_text()
    assert [*(tmp_path / "run/tensorboard").iterdir()]
    model = tmp_path / "run/model.safetensors"
    game = Game(seed=1)
    assert make_agent(f"az:{model}:4").act(game) in game.legal_actions()
    longer = read_config(str(tmp_path / "run/run.json")).changed({"decisions": run.decisions + 1})
    assert run_training(longer, tmp_path / "run", Console(quiet=True))[0].iteration == (
        run.iteration + 1
    )


def test_invalid_settings_are_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.json"
    for content, words in (
        ({"method": "guess"}, "method is 'guess'; allowed: ppo, expert"),
        ({"method": "expert", "full_search_share": 0}, "is 0; allowed: a number above 0 to 1"),
        ({"method": "expert", "teacher_reuse": None}, "is None; allowed: a number above 0"),
        ({"method": "expert", "relative_types": 3}, "relative_types is 3; allowed: true or false"),
        (
            {"method": "expert", "num_simulations": 0},
            "num_simulations is 0; allowed: a whole number 1 to 100,000",
        ),
        ({"method": "expert", "gamma": 0.5}, "no setting 'gamma'"),
        ({"method": "expert", "device": "cuda"}, "device is 'cuda'; allowed: auto, cpu"),
        ({"method": "expert", "bots": ["x"]}, f"bots has 'x'; allowed: {', '.join(BOTS)}$"),
        ({"method": "expert", "bot_share": 0.95}, "add up to 1.05; allowed: at most 1"),
        ({"method": "expert", "teacher": "exec:true"}, "allowed: an agent that plays batches"),
        ({"method": "expert", "rated": ["llm:m"]}, "a settings file cannot start programs"),
        ({"method": "expert", "teacher": "greedy"}, "'greedy', but teacher_games is 0; allowed: 1"),
        (
            {"method": "expert", "teacher": "greedy", "teacher_games": 1, "offline_data": ["x"]},
            "teacher and offline_data are both set; allowed: one of them",
        ),
        ({"num_simulations": 5}, "no setting 'num_simulations'"),
    ):
        recipe.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=words):
            read_config(str(recipe))
    model = tmp_path / "wide.safetensors"
    network = build_network("features", CITY, 12)
    save_model(network, CITY, model, {"network": "features", "width": 12})
    with pytest.raises(ValueError, match="of width 8; allowed: network features, width 12"):
        ExpertRun(SMALL_EXPERT.changed({"init_from": str(model)}), tmp_path / "run")
