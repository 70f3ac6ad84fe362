"""The study of training targets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from busenv.experiments.studies import targets
from busenv.train.expert_iteration.replay_buffer import ReplayBuffer
from tests.support.expert import CITY, teacher_samples


def test_later_targets_stay_within_a_game() -> None:
    rows = teacher_samples()[:3].repeat(3)
    rows["final_lines"] = 0
    rows["final_lines"][5:] = 1  # the second game
    rows["game"]["round"] = [1, 1, 2, 2, 4, 1, 2, 2, 3]
    rows["game"]["deliveries"][:, 0] = [0, 1, 2, 3, 5, 0, 1, 2, 4]
    rows["win_probs"][:, 0] = np.arange(9) / 10
    samples = targets.with_later_targets(rows)
    made = (samples.deliveries[:, 0] * 5).round().astype(int).tolist()
    assert made == [3, 2, 1, 0, 0, 2, 3, 2, 0]
    np.testing.assert_allclose(samples.later[:, 0] * 10, [2, 3, 4, 4, 4, 7, 8, 8, 8], atol=1e-6)


def test_values_are_ordered_from_the_seat_to_decide() -> None:
    rows = teacher_samples()[:1].copy()
    rows["game"]["players"], rows["game"]["seat"] = 3, 2
    values = targets.by_slot(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]), rows)
    assert values.tolist() == [[3, 1, 2, 0, 0]]


def test_variants_are_trained_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ReplayBuffer(tmp_path, CITY, 10**6).add(0, teacher_samples())
    monkeypatch.setattr(targets, "BATCH", 64)
    monkeypatch.setattr(targets, "GAMES", 4)
    arguments = [str(tmp_path), "--width", "8", "--seeds", "1", "--threads", "1", "--players", "5"]
    monkeypatch.setattr(sys, "argv", ["targets", *arguments])
    targets.main()
    header, *lines = capsys.readouterr().out.splitlines()
    assert re.match(r"[\d,]+ samples for training, \d+ of 5 players to measure", header)
    pattern = r"(.+?) +seed 0: winner (\d\.\d+), policy (\d\.\d+), favourite [\d.]+%, planner .*"
    results = [match.groups() for match in (re.fullmatch(pattern, line) for line in lines) if match]
    assert [name for name, _, _ in results] == [*targets.VARIANTS]
    assert len({(loss, cross) for _, loss, cross in results}) > 4
    assert all(0 < float(loss) < 3 for _, loss, _ in results)
