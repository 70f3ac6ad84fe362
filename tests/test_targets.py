"""The study of training targets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from busenv.agents import make_agent
from busenv.agents.networks.inputs import Inputs
from busenv.agents.networks.mlp import build_network
from busenv.experiments.studies import targets
from busenv.experiments.studies.auxiliary_heads import (
    HEADS,
    SHORT_TERM_DECAY,
    HeadLearner,
    by_slot,
    future_of,
)
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer
from busenv.train.expert_iteration.samples import make_batch
from busenv.train.expert_iteration.teacher_data import play_teacher_games
from tests.support.networks import CITY, small_network
from tests.support.training import RULES, teacher_samples


def test_losses_of_a_uniform_network_are_log_counts() -> None:
    """Uniform outputs: the logarithms of the numbers of players and of legal actions."""
    network, samples = small_network(), teacher_samples()
    with torch.no_grad():
        for head in (network.policy, network.value):
            head[2].weight.zero_()
    loss, cross, _ = targets.measure(network, samples)
    assert loss == pytest.approx(np.log(samples["game"]["players"]).mean(), rel=1e-5)
    masks = make_batch(samples, CITY, 0.0, Inputs()).masks
    assert cross == pytest.approx(np.log(masks.sum(axis=1)).mean(), rel=1e-5)
    # Opponents' decisions have no policy: all of the first part, some of the second.
    samples = np.resize(samples, 9000)
    samples["policy"][:6000] = 0
    masks = make_batch(samples[6000:], CITY, 0.0, Inputs()).masks
    assert targets.measure(network, samples)[1] == pytest.approx(
        np.log(masks.sum(axis=1)).mean(), rel=1e-5
    )


def test_variants_are_trained_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ReplayBuffer(tmp_path, CITY, 10**6).add(0, teacher_samples())
    monkeypatch.setattr(targets, "BATCH", 16)
    monkeypatch.setattr(targets, "LEARNING_RATE", 1e-2)
    for name, value in (("GAMES", 4), ("WIDTH", 8), ("SEEDS", 1), ("THREADS", 1), ("PLAYERS", 5)):
        monkeypatch.setattr(targets, name, value)
    monkeypatch.setattr(sys, "argv", ["targets", str(tmp_path)])
    targets.main()
    header, *lines = capsys.readouterr().out.splitlines()
    samples = teacher_samples()["game"]["players"]
    held_out = samples[len(samples) * 9 // 10 :]
    assert re.match(r"[\d,]+ samples for training, \d+ of 5 players to measure", header)
    assert f"{(held_out == 5).sum()} of 5 players" in header
    pattern = r"(.+?) +seed 0: winner (\d\.\d+), policy (\d\.\d+), accuracy [\d.]+%, planner .*"
    results = [match.groups() for match in (re.fullmatch(pattern, line) for line in lines) if match]
    assert [name for name, _, _ in results] == [*targets.VARIANTS]
    assert len({(loss, cross) for _, loss, cross in results}) == len(targets.VARIANTS)


def whole_games() -> list[np.ndarray]:
    """Every decision of two games, with random win probabilities; a third are an opponent's."""
    games, rng = [], np.random.default_rng(3)
    for players in (3, 5):
        samples = play_teacher_games(
            make_agent("greedy"), CITY, RULES,
            num_players=np.array([players]), sample_share=1.0, rng=rng,
        )  # fmt: skip
        samples["win_probs"][:, :players] = rng.dirichlet(np.ones(players), len(samples))
        samples["policy"][rng.random(len(samples)) < 1 / 3] = 0
        games.append(samples)
    return games


def test_futures_stay_in_their_games() -> None:
    games = whole_games()
    future = future_of(np.concatenate(games))
    start = 0
    for samples in games:
        decisions = samples["game"]
        for i in range(len(samples)):
            expected, weight = np.zeros(5), 1.0
            reply, next_round = -1, -1
            for j in range(len(samples) - 1, i, -1):
                reply = j if decisions["seat"][j] != decisions["seat"][i] else reply
                next_round = j if decisions["round"][j] > decisions["round"][i] else next_round
            for later in samples[i + 1 :]:
                if later["policy"].any():
                    expected += weight * (1 - SHORT_TERM_DECAY) * later["win_probs"]
                    weight *= SHORT_TERM_DECAY
            expected[samples["winner"][i]] += weight
            assert future.reply[start + i] == (start + reply if reply >= 0 else -1)
            assert future.next_round[start + i] == (start + next_round if next_round >= 0 else -1)
            np.testing.assert_allclose(future.win_probs[start + i], expected, atol=1e-5)
        start += len(samples)


@pytest.mark.parametrize("head", HEADS)
def test_auxiliary_losses_fall_on_a_fixed_batch(head: str) -> None:
    samples = np.concatenate(whole_games())[::2].copy()
    config = ExpertConfig(network="seats", width=16, auxiliary_weight=1.0, relative_types=True)
    network = build_network("seats", CITY, 16, **config.network_options)
    learner = HeadLearner(network, CITY, config, weights={head: 1.0}, samples=samples)
    batch = np.arange(len(samples))
    losses = [learner.step_at(batch, 1e-2)["train/auxiliary_loss"] for _ in range(60)]
    assert losses[-1] < losses[0] - 0.1


def test_targets_by_slot_begin_with_the_player_who_decides() -> None:
    samples = np.concatenate(whole_games())
    values = np.arange(5 * len(samples)).reshape(-1, 5)
    for i, row in enumerate(by_slot(values, samples).numpy()):
        players, seat = int(samples["game"]["players"][i]), int(samples["game"]["seat"][i])
        turned = [values[i, (seat + slot) % players] for slot in range(players)]
        assert row.tolist() == turned + [0] * (5 - players)


def test_unusable_samples_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ReplayBuffer(tmp_path / "replay", CITY, 10**6).add(0, teacher_samples()[:9])
    players = int(teacher_samples()["game"]["players"][8])
    other = next(n for n in (3, 4, 5) if n != players)
    monkeypatch.setattr(targets, "PLAYERS", other)
    monkeypatch.setattr(targets, "THREADS", 1)
    for words, message in (
        (["none"], "no samples in none"),
        ([str(tmp_path / "replay")], f"games with {other} players"),
    ):
        monkeypatch.setattr(sys, "argv", ["targets", *words])
        with pytest.raises(SystemExit):
            targets.main()
        assert message in " ".join(capsys.readouterr().err.split())
