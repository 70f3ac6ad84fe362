"""Samples of expert iteration: content, losses, replay buffer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busenv.agents import make_agent
from busenv.networks.inputs import Inputs
from busenv.networks.logits import POINTS
from busenv.observation import observe_games
from busenv.train.expert_iteration.expert_run import Learner
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer
from busenv.train.expert_iteration.samples import make_batch
from tests.support.networks import CITY, small_network
from tests.support.training import SMALL_EXPERT, network_samples


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    torch.set_num_threads(1)
    return network_samples()


def test_batches_hold_the_decision_and_the_outcome(samples: np.ndarray) -> None:
    assert len(samples) > 200
    batch = make_batch(samples, CITY, 0.0, Inputs())
    observations, masks = observe_games(np.ascontiguousarray(samples["game"]), CITY)
    assert (batch.rows == observations).all()
    assert (batch.masks == masks).all()
    assert not batch.policy[~masks].any()
    np.testing.assert_allclose(batch.policy.sum(axis=1), 1, rtol=1e-5)
    teacher = make_agent("net@1:city-2").action_probabilities(samples["game"].copy(), CITY)
    np.testing.assert_allclose(batch.policy, teacher, atol=0.01)
    players, seats = samples["game"]["players"], samples["game"]["seat"].astype(int)
    for i in range(0, len(samples), 7):
        count = players[i]
        order = (seats[i] + np.arange(count)) % count
        points = samples[i]["points"]
        assert batch.present[i].tolist() == [slot < count for slot in range(5)]
        np.testing.assert_allclose(batch.points[i, :count] * POINTS, points[order])
        assert order[batch.win_probs[i].argmax()] == samples[i]["winner"]
        assert points[samples[i]["winner"]] == points[:count].max()
    assert set(players.tolist()) == {3, 4, 5}


def test_the_value_target_mixes_estimate_and_winner(samples: np.ndarray) -> None:
    estimated = samples.copy()
    estimated["win_probs"] = np.eye(5)[0]
    mixed = make_batch(estimated, CITY, 0.25, Inputs()).win_probs
    expected = 0.75 * make_batch(samples, CITY, 0.0, Inputs()).win_probs
    slot = -samples["game"]["seat"].astype(int) % samples["game"]["players"]
    expected[np.arange(len(samples)), slot] += 0.25
    np.testing.assert_allclose(mixed, expected, atol=1e-6)


def test_losses_fall_on_a_fixed_batch(samples: np.ndarray) -> None:
    learner = Learner(small_network(32), CITY, SMALL_EXPERT)
    losses = [learner.step(samples[:256], 3e-3) for _ in range(40)]
    for name in ("train/policy_loss", "train/value_loss", "train/score_loss"):
        assert losses[-1][name] < 0.8 * losses[0][name]
    assert losses[-1]["train/winner_accuracy"] > 0.8
    assert all(loss["train/policy_divergence"] > -1e-3 for loss in losses)


def test_samples_without_a_policy_target_train_the_value_heads_only(samples: np.ndarray) -> None:
    with_policy, without = samples[:64].copy(), samples[64:128].copy()
    without["policy"] = 0
    only_with_policy = Learner(small_network(16), CITY, SMALL_EXPERT).step(with_policy, 1e-3)
    both = np.concatenate([with_policy, without])
    mixed = Learner(small_network(16), CITY, SMALL_EXPERT).step(both, 1e-3)
    for name in ("train/policy_loss", "train/policy_divergence"):
        assert mixed[name] == pytest.approx(only_with_policy[name], rel=1e-4)
    assert mixed["train/value_loss"] != only_with_policy["train/value_loss"]
    learner = Learner(small_network(16), CITY, SMALL_EXPERT)
    validated = [
        learner.validate(parts)["validation/policy_loss"]
        for parts in ([with_policy], [with_policy, without])
    ]
    assert validated[1] == pytest.approx(validated[0]) != 0
    weights = learner.network.policy[2].weight.clone()
    assert learner.step(without, 1e-3)["train/policy_loss"] == 0
    torch.testing.assert_close(learner.network.policy[2].weight, weights, atol=1e-6, rtol=1e-3)


def test_the_replay_buffer_keeps_the_last_samples(tmp_path: Path, samples: np.ndarray) -> None:
    replay, rng = ReplayBuffer(tmp_path, CITY, 250), np.random.default_rng(1)
    for k in range(5):
        replay.add(k, samples[100 * k : 100 * k + 100])
    replay.delete_dropped()
    assert len(replay) == 300
    assert len([*tmp_path.iterdir()]) == 3
    drawn = {sample.tobytes() for sample in replay.sample(2000, rng)}
    assert drawn <= {sample.tobytes() for sample in samples[200:500]}
    assert len(drawn) > 280
    again = ReplayBuffer(tmp_path, CITY, 250)
    again.restore(4)
    assert len(again) == 200
    drawn = {sample.tobytes() for sample in again.sample(500, rng)}
    assert drawn <= {sample.tobytes() for sample in samples[200:400]}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("game", (), "game 0 cannot be played on: seat is"),
        ("phase", 255, "game 0 cannot be played on: phase is"),
        ("actions", 375, "it has actions beyond the 375 of"),
        ("winner", 9, "it has games that are over, or winners that are not a seat"),
        ("win_probs", np.nan, "its win_probs has values outside of 0 to 1"),
    ],
)
def test_invalid_fields_of_samples_are_refused(
    field: str, value: Any, message: str, tmp_path: Path, samples: np.ndarray
) -> None:
    bad = samples[:20].copy()
    if field == "game":
        bad["game"]["seat"] = 255
    elif field == "phase":
        bad["game"]["phase"] = value
    else:
        bad[field] = value
    ReplayBuffer(tmp_path, CITY, 100).add(0, bad)
    with pytest.raises(ValueError, match=rf"000000\.safetensors is not a file .*: .*{message}"):
        ReplayBuffer(tmp_path, CITY, 100).restore(1)
