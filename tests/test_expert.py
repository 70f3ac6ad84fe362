"""Expert iteration: what is learned from, that it learns, that a run goes on as it would have."""

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

from busenv import load_board
from busenv.agents import make_agent
from busenv.agents.mcts.guided import Settings
from busenv.agents.neural.compiled import read_weights
from busenv.agents.neural.files import save_model
from busenv.agents.neural.inference import make_policy
from busenv.agents.neural.logits import POINTS
from busenv.agents.neural.networks import SeatsMlp, build_network
from busenv.agents.neural.outlook import NO_PLAN
from busenv.experiments.training.runs import run_training
from busenv.observation import observe_games
from busenv.rules import as_rules
from busenv.train.expert.config import ExpertConfig
from busenv.train.expert.learner import Learner
from busenv.train.expert.rows import ROW, unpack
from busenv.train.expert.run import ExpertRun
from busenv.train.expert.selfplay import (
    BOT,
    LEARNER,
    PAST,
    Plan,
    SelfPlay,
    _draw_owners,
    statistics,
)
from busenv.train.expert.teacher import taught_rows
from busenv.train.expert.window import Window
from busenv.train.settings import read_config

CITY = load_board("city")
RULES = as_rules("capstone-2024")
SMALL = ExpertConfig(
    width=8, games=2, batch_size=32, full=4, fast=2, full_share=0.5, past_share=0.5, bot_share=0.25,
    bot_simulations=4, window=400, reuse=2.0, keep_every=2, seconds=None, decisions=500,
    rated=("random",), rate_games=4, rate_every=1e6,
)  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(1)
    return taught_rows(make_agent("net@1:city-2"), CITY, RULES, (3, 4, 5), 12, 0.2, rng)


def test_rows_tell_the_decision_and_how_the_game_ended(rows: np.ndarray) -> None:
    assert len(rows) > 200
    found = unpack(rows, CITY, 0.0, NO_PLAN)
    seen, masks = observe_games(np.ascontiguousarray(rows["game"]), CITY)
    assert (found.inputs == seen).all()
    assert (found.masks == masks).all()
    assert not found.policy[~masks].any()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1, rtol=1e-5)
    teacher = make_agent("net@1:city-2").action_probabilities(rows["game"].copy(), CITY)
    np.testing.assert_allclose(found.policy, teacher, atol=0.01)
    players, seats = rows["game"]["players"], rows["game"]["seat"].astype(int)
    for i in range(0, len(rows), 7):
        count = players[i]
        order = (seats[i] + np.arange(count)) % count
        assert found.present[i].tolist() == [slot < count for slot in range(5)]
        np.testing.assert_allclose(found.points[i, :count] * POINTS, rows[i]["points"][order])
        assert order[found.chances[i].argmax()] == rows[i]["winner"]
        assert rows[i]["points"][rows[i]["winner"]] == rows[i]["points"][:count].max()
    assert set(players.tolist()) == {3, 4, 5}


def test_what_was_thought_is_mixed_with_who_won(rows: np.ndarray) -> None:
    thought = rows.copy()
    thought["chances"] = 0
    thought["chances"][:, 0] = 1
    mixed, won = (
        unpack(thought, CITY, 0.25, NO_PLAN).chances,
        unpack(rows, CITY, 0.0, NO_PLAN).chances,
    )
    slot = -rows["game"]["seat"].astype(int) % rows["game"]["players"]
    expected = 0.75 * won
    expected[np.arange(len(rows)), slot] += 0.25
    np.testing.assert_allclose(mixed, expected, atol=1e-6)


def test_a_learner_approaches_its_targets(rows: np.ndarray) -> None:
    torch.set_num_threads(1)
    network = build_network("seats", CITY, 32, seed=1)
    learner = Learner(network, CITY, 0.5, 1.5, 0.3)
    losses = [learner.step(rows[:256], 3e-3) for _ in range(40)]
    for name in ("train/policy_loss", "train/win_loss", "train/points_loss"):
        assert losses[-1][name] < 0.8 * losses[0][name]
    assert losses[-1]["train/winner_found"] > 0.8
    assert all(loss["train/policy_divergence"] > -1e-3 for loss in losses)


def small_weights(seed: int):  # type: ignore[no-untyped-def]
    network = build_network("seats", CITY, 8, seed)
    assert isinstance(network, SeatsMlp)
    return read_weights(network)


def test_games_do_not_depend_on_threads_and_only_the_learner_is_imitated() -> None:
    found = []
    for threads in (1, 2):
        play = SelfPlay(CITY, RULES, (3, 4, 5), Plan(4, 2, 0.5, 10, 3), Settings(), threads)
        drawn = play.draw(12, 0.3, 0.3, np.random.default_rng(5))
        found.append(play.play(drawn, small_weights(1), small_weights(2)))
    assert [rows.tobytes() for rows in found[0]] == [rows.tobytes() for rows in found[1]]
    one, told = np.concatenate(found[0]), statistics(found[0], drawn)
    assert one.dtype == ROW
    assert (one["chances"].sum(axis=1) > 0.99).all()
    assert told["games/rows"] * 12 == pytest.approx(len(one))
    assert told["games/rounds"] > 2
    unpacked = unpack(one, CITY, 0.5, NO_PLAN)
    assert (unpacked.masks.sum(axis=1) > 1).all()
    numbers = np.repeat(np.arange(12), [len(rows) for rows in found[0]])
    own = drawn.owners[numbers, one["game"]["seat"]] == LEARNER
    assert 0.2 < own.mean() < 0.9
    np.testing.assert_allclose(unpacked.policy.sum(axis=1), own, rtol=1e-5)
    others = one[~own]
    assert (others["chances"].argmax(axis=1) == others["winner"]).all()
    assert (others["chances"].max(axis=1) == 1).all()


def test_what_has_no_policy_teaches_who_wins_alone(rows: np.ndarray) -> None:
    """An opponent's decision is no example; beside others it changes what they teach in nothing
    but how positions end."""
    one, silent = rows[:64].copy(), rows[64:128].copy()
    silent["shares"] = 0
    before = Learner(build_network("seats", CITY, 16, seed=1), CITY, 0.5, 1.5, 0.3)  # type: ignore[arg-type]
    alone = before.step(one, 1e-3)
    again = Learner(build_network("seats", CITY, 16, seed=1), CITY, 0.5, 1.5, 0.3)  # type: ignore[arg-type]
    beside = again.step(np.concatenate([one, silent]), 1e-3)
    for name in ("train/policy_loss", "train/policy_divergence"):
        assert beside[name] == pytest.approx(alone[name], rel=1e-4)
    assert beside["train/win_loss"] != alone["train/win_loss"]
    none = Learner(build_network("seats", CITY, 16, seed=1), CITY, 0.5, 1.5, 0.3)  # type: ignore[arg-type]
    weights = none.network.policy[2].weight.clone()
    assert none.step(silent, 1e-3)["train/policy_loss"] == 0
    torch.testing.assert_close(none.network.policy[2].weight, weights, atol=1e-6, rtol=1e-3)


def test_owners_of_seats_leave_one_to_the_learner() -> None:
    counts = np.resize((3, 4, 5), 3000)
    owners = _draw_owners(counts, 0.2, 0.1, np.random.default_rng(2))
    there = np.arange(5) < counts[:, None]
    assert ((owners == LEARNER) & there).any(axis=1).all()
    for kind, share in ((PAST, 0.2), (BOT, 0.1)):
        assert ((owners == kind) & there).any(axis=1).mean() == pytest.approx(share, abs=0.03)


def test_the_window_keeps_the_last_rows(tmp_path: Path, rows: np.ndarray) -> None:
    window, rng = Window(tmp_path, CITY, 250), np.random.default_rng(1)
    for k in range(5):
        window.add(k, rows[100 * k : 100 * k + 100])
    window.tidy()
    assert len(window) == 300
    assert len([*tmp_path.iterdir()]) == 3
    drawn = window.draw(2000, rng)
    kept = {row.tobytes() for row in rows[200:500]}
    assert {row.tobytes() for row in drawn} <= kept
    assert len({row.tobytes() for row in drawn}) > 280
    again = Window(tmp_path, CITY, 250)
    again.restore(4)
    assert len(again) == 200
    assert {row.tobytes() for row in again.draw(500, rng)} <= {r.tobytes() for r in rows[200:400]}


def test_windows_of_strangers_are_refused(tmp_path: Path, rows: np.ndarray) -> None:
    for name, change in (
        ("game", lambda r: r["game"]["seat"].fill(255)),
        ("actions", lambda r: r["actions"].fill(375)),
        ("chances", lambda r: r["chances"].fill(np.nan)),
    ):
        bad = rows[:20].copy()
        change(bad)
        path = tmp_path / name / "000000.npy"
        path.parent.mkdir(parents=True)
        np.save(path, bad)
        with pytest.raises(ValueError, match=r"000000\.npy is no part of a replay window: "):
            Window(tmp_path / name, CITY, 100).restore(1)
    for content in (b"", b"\x93NUMPY", b"cos\nsystem\n(S'touch sprung'\ntR."):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"000000\.npy is no part of a replay window: "):
            Window(path.parent, CITY, 100).restore(1)


def test_a_run_that_is_killed_ends_as_it_would_have(tmp_path: Path) -> None:
    config = SMALL.changed({"teacher": "greedy", "teacher_games": 1, "decisions": 10**6})
    straight = ExpertRun(config, tmp_path / "straight")
    for k in range(5):
        straight.step()
        if k == 2:
            shutil.copytree(tmp_path / "straight", tmp_path / "killed")
    # What a kill in the middle of the next iteration leaves: its rows, which are made anew.
    shutil.copy(tmp_path / "straight/window/000003.npy", tmp_path / "killed/window/000003.npy")
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
    monkeypatch.setattr("busenv.train.expert.run.TEACHER_GAMES", 2)
    config = SMALL.changed({"teacher": "greedy", "teacher_games": 6, "window": 10**6})
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
    assert not [*(tmp_path / "straight/lessons").iterdir()]
    # What a kill leaves between the checkpoint and the lessons' end.
    shutil.copytree(tmp_path / "straight", tmp_path / "late")
    shutil.copytree(tmp_path / "killed/lessons", tmp_path / "late/lessons", dirs_exist_ok=True)
    run.step()
    assert [path.name for path in (tmp_path / "straight/window").iterdir()] == ["000004.npy"]
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
    window = tmp_path / "earlier/window"
    kept = np.concatenate([np.load(path) for path in sorted(window.iterdir())])
    monkeypatch.setattr(Learner, "step", note)
    lessons = {"lessons": (str(window), str(window)), "lessons_reuse": 2}
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
    assert not [*(tmp_path / "run/window").iterdir()]
    again = ExpertRun(config, tmp_path / "run")
    assert again.iteration == 1
    again.step()
    assert [path.name for path in (tmp_path / "run/window").iterdir()] == ["000001.npy"]


def test_folders_without_rows_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        run = ExpertRun(SMALL.changed({"lessons": (str(folder),)}), tmp_path / "run")
        with pytest.raises(ValueError, match=rf"no rows in {folder}; allowed: a run's folder"):
            run.step()


def test_a_teacher_plays_no_more_games_than_there_is_room_for(tmp_path: Path) -> None:
    changes = {"teacher": "greedy", "teacher_games": 10**6, "window": 50, "decisions": 10**6}
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
    ("past", "heir"), [("mlp", "seats"), ("mlp", "outlook"), ("seats", "outlook")]
)
def test_a_run_begins_as_a_model_that_is_told_less(
    past: str, heir: str, tmp_path: Path, rows: np.ndarray
) -> None:
    network = build_network(past, CITY, 8, seed=5)
    network.get_parameter("policy.2.weight").data *= 300
    save_model(network, CITY, tmp_path / "past.safetensors", {"network": past, "width": 8})
    config = SMALL.changed({"network": heir, "start": str(tmp_path / "past.safetensors")})
    run, games = ExpertRun(config, tmp_path / "run"), rows["game"][:50].copy()
    expected = make_policy(network, CITY)(games, 1.0)
    np.testing.assert_allclose(make_policy(run.network, CITY)(games, 1.0), expected, atol=1e-6)
    told = network.get_parameter("shared.weight").shape[1]
    new = run.network.get_parameter("shared.weight")[:, told:]
    assert not new.any()
    run.step()
    assert new.any() == (heir == "outlook")  # it learns from what is new


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
    assert not [*(tmp_path / "window").iterdir()]


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
        ({"method": "expert", "full": 0}, "full is 0; allowed: a whole number 1 to 100,000"),
        ({"method": "expert", "gamma": 0.5}, "no setting 'gamma'"),
        ({"method": "expert", "device": "cuda"}, "device is 'cuda'; allowed: auto, cpu"),
        ({"method": "expert", "teacher": "exec:true"}, "a file may not name a program"),
        ({"full": 5}, "no setting 'full'"),
    ):
        recipe.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=words):
            read_config(str(recipe))
    model = tmp_path / "wide.safetensors"
    network = build_network("outlook", CITY, 12)
    save_model(network, CITY, model, {"network": "outlook", "width": 12})
    with pytest.raises(ValueError, match="of width 8; allowed with it: outlook, of width 12"):
        ExpertRun(SMALL.changed({"start": str(model)}), tmp_path / "run")
