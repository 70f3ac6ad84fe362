"""Rows of expert iteration: what they tell, how they are learned from and kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from busenv.agents import make_agent
from busenv.agents.networks.evaluation_features import NO_EVAL_WEIGHTS
from busenv.agents.networks.logits import POINTS
from busenv.agents.networks.mlp import build_network
from busenv.observation import observe_games
from busenv.train.expert_iteration.learner import CLIP, ENTROPY, Learner
from busenv.train.expert_iteration.policy_selfplay import TEMPERATURE
from busenv.train.expert_iteration.replay_window import ReplayWindow
from busenv.train.expert_iteration.training_rows import unpack
from tests.support.expert import CITY, teachers_rows


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return teachers_rows()


def test_rows_tell_the_decision_and_how_the_game_ended(rows: np.ndarray) -> None:
    assert len(rows) > 200
    found = unpack(rows, CITY, 0.0, NO_EVAL_WEIGHTS)
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
        unpack(thought, CITY, 0.25, NO_EVAL_WEIGHTS).chances,
        unpack(rows, CITY, 0.0, NO_EVAL_WEIGHTS).chances,
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
    for name in ("train/policy_loss", "train/value_loss", "train/score_loss"):
        assert losses[-1][name] < 0.8 * losses[0][name]
    assert losses[-1]["train/winner_accuracy"] > 0.8
    assert all(loss["train/policy_divergence"] > -1e-3 for loss in losses)


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
    assert beside["train/value_loss"] != alone["train/value_loss"]
    none = Learner(build_network("seats", CITY, 16, seed=1), CITY, 0.5, 1.5, 0.3)  # type: ignore[arg-type]
    weights = none.network.policy[2].weight.clone()
    assert none.step(silent, 1e-3)["train/policy_loss"] == 0
    torch.testing.assert_close(none.network.policy[2].weight, weights, atol=1e-6, rtol=1e-3)


def test_a_policy_that_plays_alone_learns_by_ppo(rows: np.ndarray) -> None:
    """The loss is the clipped one of Schulman et al. 2017 (7), written plainly; rows that do not
    tell how their game ended teach no values, and are measured by what is usual among them."""
    torch.set_num_threads(1)
    some, rng = rows[:48].copy(), np.random.default_rng(3)
    network = build_network("seats", CITY, 16, seed=1)
    found = unpack(some, CITY, 0.5, NO_EVAL_WEIGHTS)
    with torch.no_grad():
        logits = network(torch.from_numpy(found.inputs))[0].double().numpy()
    likely = np.where(found.masks, np.exp(logits / TEMPERATURE), 0)
    likely /= likely.sum(axis=1, keepdims=True)
    now = likely[np.arange(48), some["actions"][:, 0]]
    some["chance"] = now * rng.uniform(0.6, 1.4, 48)
    some["telling"] = np.arange(48) % 2
    some["advantage"] = rng.normal(size=48) + 3 * some["telling"]
    gain = some["advantage"].astype(float)
    for told in (False, True):
        gain[some["telling"] == told] -= gain[some["telling"] == told].mean()
    gain /= gain.std()
    ratio = now / some["chance"]
    kept = np.minimum(ratio * gain, np.clip(ratio, 1 - CLIP, 1 + CLIP) * gain)
    entropy = -(likely * np.log(np.where(likely > 0, likely, 1))).sum(axis=1)
    loss = -(kept + ENTROPY * entropy).mean()
    learner = Learner(network, CITY, 0.5, 1.5, 0.3, alone=True)  # type: ignore[arg-type]
    scalars = learner.step(some, 1e-3)
    assert scalars["train/policy_loss"] == pytest.approx(loss, rel=1e-4, abs=1e-5)
    other = Learner(build_network("seats", CITY, 16, seed=1), CITY, 0.5, 1.5, 0.3, alone=True)  # type: ignore[arg-type]
    some["winner"][::2] = (some["winner"][::2] + 1) % 3
    some["points"][::2] = 3
    assert other.step(some, 1e-3) == scalars
    for mine, same in zip(network.parameters(), other.network.parameters(), strict=True):
        assert mine.equal(same)


def test_the_window_keeps_the_last_rows(tmp_path: Path, rows: np.ndarray) -> None:
    window, rng = ReplayWindow(tmp_path, CITY, 250), np.random.default_rng(1)
    for k in range(5):
        window.add(k, rows[100 * k : 100 * k + 100])
    window.tidy()
    assert len(window) == 300
    assert len([*tmp_path.iterdir()]) == 3
    drawn = window.draw(2000, rng)
    kept = {row.tobytes() for row in rows[200:500]}
    assert {row.tobytes() for row in drawn} <= kept
    assert len({row.tobytes() for row in drawn}) > 280
    again = ReplayWindow(tmp_path, CITY, 250)
    again.restore(4)
    assert len(again) == 200
    assert {row.tobytes() for row in again.draw(500, rng)} <= {r.tobytes() for r in rows[200:400]}


def test_windows_of_strangers_are_refused(tmp_path: Path, rows: np.ndarray) -> None:
    for name, change in (
        ("game", lambda r: r["game"]["seat"].fill(255)),
        ("actions", lambda r: r["actions"].fill(375)),
        ("chances", lambda r: r["chances"].fill(np.nan)),
        ("telling", lambda r: r["telling"].view(np.uint8).fill(2)),
    ):
        bad = rows[:20].copy()
        change(bad)
        path = tmp_path / name / "000000.npy"
        path.parent.mkdir(parents=True)
        np.save(path, bad)
        with pytest.raises(ValueError, match=r"000000\.npy is no part of a replay window: "):
            ReplayWindow(tmp_path / name, CITY, 100).restore(1)
    for content in (b"", b"\x93NUMPY", b"cos\nsystem\n(S'touch sprung'\ntR."):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"000000\.npy is no part of a replay window: "):
            ReplayWindow(path.parent, CITY, 100).restore(1)
