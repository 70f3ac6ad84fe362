"""Runs that learn from samples: self-play to files, fitting, expert iteration, resuming."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from busenv import Game, cli
from busenv.agents import make_agent
from busenv.common.runs import RunError
from busenv.networks.factory import build_network
from busenv.train.config_files import read_config
from busenv.train.expert_iteration import expert_run, selfplay_run
from busenv.train.expert_iteration.expert_config import FitConfig, SelfPlayConfig
from busenv.train.expert_iteration.expert_run import ExpertRun, FitRun, Learner
from busenv.train.expert_iteration.replay_buffer import read_samples
from busenv.train.expert_iteration.selfplay_run import run_selfplay
from busenv.train.run_training import run_training
from tests.support.commands import refusal
from tests.support.networks import CITY
from tests.support.training import SMALL_EXPERT, parameters, same_tensors

LONG = SMALL_EXPERT.changed({"decisions": 10**6})
QUIET = Console(quiet=True)
GREEDY = SelfPlayConfig(agent="greedy", samples=500, full_search_share=0.1, players=(3, 4, 5))


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.safetensors"))


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


def test_a_killed_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    straight = ExpertRun(LONG, tmp_path / "straight")
    for k in range(5):
        straight.step()
        if k == 2:
            shutil.copytree(tmp_path / "straight", tmp_path / "killed")
    # A kill during the next iteration leaves its samples, which the resumed run plays again.
    shutil.copy(
        tmp_path / "straight/replay/000003.safetensors",
        tmp_path / "killed/replay/000003.safetensors",
    )
    resumed = ExpertRun(LONG, tmp_path / "killed")
    assert resumed.iteration == 3
    for _ in range(2):
        resumed.step()
    assert same_tensors(parameters(straight), parameters(resumed))
    assert resumed.decisions == straight.decisions
    fresh = build_network(LONG.network, CITY, 8, LONG.seed)
    assert not torch.equal(straight.network.shared.weight, fresh.state_dict()["shared.weight"])


def test_self_play_is_completed_after_a_kill_and_lengthened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfplay_run, "PART_GAMES", 3)
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    count = run_selfplay(GREEDY, straight, QUIET)
    assert count == sum(map(len, read_samples([straight], CITY))) >= 500
    run_selfplay(GREEDY.changed({"samples": 100}), killed, QUIET)
    assert len(file_names(killed)) < len(file_names(straight))
    assert run_selfplay(GREEDY, killed, QUIET) == count
    for name in file_names(straight):
        assert (straight / name).read_bytes() == (killed / name).read_bytes()
    with pytest.raises(RunError, match="seed"):
        run_selfplay(GREEDY.changed({"seed": 1}), killed, QUIET)
    (killed / file_names(killed)[0]).write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is not a file of samples"):
        run_selfplay(GREEDY, killed, QUIET)


def test_a_search_plays_with_bots(tmp_path: Path) -> None:
    config = GREEDY.changed({
        "agent": "az:city-4:4", "fast_simulations": 2, "samples": 50, "full_search_share": 0.3,
        "bot_share": 1.0, "bots": ("greedy",),
    })  # fmt: skip
    run_selfplay(config, tmp_path, QUIET)
    (samples,) = read_samples([tmp_path], CITY)
    has_policy = samples["policy"].any(axis=1)
    assert 0 < has_policy.mean() < 1  # bots' decisions have none
    for changes, message in (
        ({"agent": "az:city-2:4"}, "cannot play; allowed: az with a number of simulations"),
        ({"agent": "az:city-4:0.01s"}, "cannot play; allowed: az with a number of simulations"),
        ({"board": "generated:small:1"}, "was trained on .*city.*, not on .*small"),
        ({"device": "cuda"}, "device=cuda plays without bots: set bot_share=0"),
        ({"device": "cuda", "agent": "greedy"}, "greedy plays on the CPU of one machine"),
    ):
        with pytest.raises(ValueError, match=message):
            run_selfplay(config.changed(changes), tmp_path / "other", QUIET)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("games")
    run_selfplay(GREEDY, folder, QUIET)
    return str(folder)


def fit_config(games: str) -> FitConfig:
    return FitConfig(
        data=(games, games), players=(3, 4, 5), epochs=2, width=8, batch_size=8, threads=1, seed=3,
        rated=("random",), rate_games=4, rate_every=1e6, network="seats",
    )  # fmt: skip


def test_a_fit_learns_from_each_sample_in_every_epoch(
    games: str, tmp_path: Path, updates: list[tuple[np.ndarray, float]]
) -> None:
    config, stored = fit_config(games), np.concatenate(read_samples([games], CITY))
    run = FitRun(config, tmp_path)
    while not run.is_done:
        run.step()
    assert run.decisions == 2 * len(stored)
    learned = np.concatenate([samples for samples, _ in updates])
    assert len(learned) == 2 * (2 * len(stored) // 8 * 8)
    limits = Counter(sample.tobytes() for sample in stored)
    times = Counter(sample.tobytes() for sample in learned)
    assert all(times[sample] <= 4 * limits[sample] for sample in times)
    rates = [rate for _, rate in updates]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == config.learning_rate > 10 * rates[-1]


def test_a_fit_validates_after_each_epoch(
    games: str,
    tmp_path: Path,
    updates: list[tuple[np.ndarray, float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The losses on samples with the winner as the target, without learning from them."""
    stored = np.concatenate(read_samples([games], CITY))
    batches = len(stored) // 32
    monkeypatch.setattr(expert_run, "FIT_BATCHES", batches // 2)
    changes = {"data": (games,), "batch_size": 32, "validation": (games,), "value_target_mix": 0.5}
    config = fit_config(games).changed(changes)
    run, logged = FitRun(config, tmp_path), []
    while not run.is_done:
        logged.append({k: v for k, v in run.step().items() if k.startswith("validation/")})
    assert len(updates) == 2 * batches
    assert sum(map(bool, logged)) == 2 < len(logged)
    learner = Learner(run.network, CITY, config.changed({"value_target_mix": 0.0}))
    expected = learner.step(stored, 0.0)
    for name in ("policy_loss", "value_loss", "score_loss", "winner_accuracy"):
        last = [scalars for scalars in logged if scalars][-1]
        assert last[f"validation/{name}"] == pytest.approx(expected[f"train/{name}"], rel=1e-4)


def test_a_fit_resumes_bit_for_bit(
    games: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight, _ = run_training(fit_config(games), tmp_path / "straight", QUIET)
    stopped = FitRun(fit_config(games), tmp_path / "stopped")
    for _ in range(2):
        stopped.step()
    stopped.save()
    stopped.step()  # not saved
    resumed = FitRun(fit_config(games), tmp_path / "stopped")
    assert resumed.iteration == 2 < straight.iteration
    while not resumed.is_done:
        resumed.step()
    assert same_tensors(parameters(straight), parameters(resumed))
    resumed.save()
    read = expert_run.read_samples
    monkeypatch.setattr(expert_run, "read_samples", lambda *where: 2 * read(*where))
    with pytest.raises(ValueError, match="holds a fit to other samples; choose a new folder"):
        FitRun(fit_config(games), tmp_path / "stopped")


def test_data_without_samples_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    error = refusal(capsys, "fit", str(tmp_path / "nowhere"), "--out", str(tmp_path / "run"))
    assert f"no samples in {tmp_path / 'nowhere'}; allowed: folders" in " ".join(error.split())


def test_commands_play_fit_and_continue_by_expert_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    data, fit, run = (str(tmp_path / name) for name in ("games", "fit", "run"))
    model = f"{fit}/model.safetensors"
    small = ["width=8", "rated=random", "rate_games=4", "threads=1"]
    cli.main(["selfplay", "greedy", "--set", "samples=300", "players=3,4", "--out", data])
    for setting, wrong in (("players=4", "games of 3,4 players"), ("rules=condensed", "rules")):
        with pytest.raises(SystemExit, match="2"):
            cli.main(["fit", data, "--set", *small, "players=3,4", setting, "--out", fit])
        assert wrong in capsys.readouterr().err
    assert not Path(fit).exists()
    cli.main(["fit", data, "--set", *small, "players=3,4", "--games", "4", "--out", fit])
    assert "fitting to samples of" in (tmp_path / "fit/report.md").read_text()
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({**SMALL_EXPERT.to_dict(), "init_from": model}))
    config = read_config(str(recipe))
    assert config == SMALL_EXPERT.changed({"init_from": model})
    cli.main(["train", str(recipe), "--games", "4", "--out", run])
    game = Game(seed=1)
    assert make_agent(f"az:{run}/model.safetensors:4").act(game) in game.legal_actions()
    wide = SMALL_EXPERT.changed({"init_from": model, "width": 12})
    with pytest.raises(ValueError, match=r"has network, .*\('features', 8, True\); the settings"):
        ExpertRun(wide, tmp_path / "wide")
