"""The study of training targets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from busenv.agents.networks.inputs import Inputs
from busenv.experiments.studies import targets
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer
from busenv.train.expert_iteration.samples import make_batch
from tests.support.networks import CITY, small_network
from tests.support.training import teacher_samples


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
