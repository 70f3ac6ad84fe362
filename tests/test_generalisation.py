"""The study of generalisation measures every run once and writes its table and picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from busenv.experiments.studies import generalisation


def test_a_stopped_study_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generalisation, "TEACHER", "greedy")
    monkeypatch.setattr(generalisation, "TRAINING_BOARDS", {"1": 1, "2": 2})
    monkeypatch.setattr(generalisation, "OPPONENTS", {"planner": 4, "greedy": 4})
    monkeypatch.setattr(generalisation, "TEST_BOARDS", 2)
    results = generalisation.study(tmp_path, decisions=600, seeds=1)
    assert [*results] == ["1/0", "2/0"]
    for shares in results.values():
        assert [*shares] == [*generalisation.PLACES]
        assert all(0 <= won["planner"] <= 1 for won in shares.values())
    assert "2 training boards, seed 0" in capsys.readouterr().out
    monkeypatch.setattr(
        generalisation, "measure_run", lambda *_: pytest.fail("a finished run was measured again")
    )
    assert generalisation.study(tmp_path, decisions=600, seeds=1) == results
    assert generalisation.table(results).count("|\n") == 4  # two of the head, two of runs
    generalisation.draw(results, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
