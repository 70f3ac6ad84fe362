"""Studies of generalisation and transfer measure every run once; tables and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from busenv.experiments.studies import generalisation, transfer


@pytest.fixture(autouse=True)
def small_study(monkeypatch: pytest.MonkeyPatch) -> None:
    opponents = {"planner": 4, "greedy": 4}
    monkeypatch.setattr(generalisation, "TEACHER", "greedy")
    monkeypatch.setattr(generalisation, "TRAINING_BOARDS", {"1": 1, "2": 2})
    monkeypatch.setattr(generalisation, "OPPONENTS", opponents)
    monkeypatch.setattr(generalisation, "TEST_BOARDS", 2)
    monkeypatch.setattr(transfer, "OPPONENTS", opponents)
    monkeypatch.setattr(transfer, "UNLIMITED", "2")
    monkeypatch.setattr(transfer, "BUDGETS", (400, 600))


def test_a_stopped_study_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = generalisation.study(tmp_path, decisions=600, seeds=1)
    assert [*results] == ["1/0", "2/0"]
    for shares in results.values():
        assert [*shares] == [*generalisation.PLACES]
        assert all(0 <= won["planner"] <= 1 for won in shares.values())
    assert "2/0, against planner: training boards " in capsys.readouterr().out
    monkeypatch.setattr(
        generalisation, "train", lambda *_: pytest.fail("a finished run was trained again")
    )
    assert generalisation.study(tmp_path, decisions=600, seeds=1) == results
    assert generalisation.table(results).count("|\n") == 4  # two of the head, two of runs
    generalisation.draw(results, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_transfer_starts_from_the_networks_of_the_study(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        transfer.read_general(tmp_path)
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(ValueError, match="no run on an unlimited number of boards"):
        transfer.read_general(tmp_path)
    generalisation.study(tmp_path, decisions=600, seeds=1)
    general = transfer.read_general(tmp_path)
    assert [*general] == ["2/0"]
    results = transfer.study(tmp_path)
    assert [*results] == ["400/random/0", "400/general/0", "600/random/0", "600/general/0"]
    settings = json.loads((tmp_path / "transfer" / "600/general/0" / "run.json").read_text())
    assert settings["init_from"] == str(tmp_path / "2/0/model.safetensors")
    assert settings["board"] == "city"
    text = transfer.table(results, general)
    assert text.count("|\n") == 7  # two of the head, one before fine-tuning, four of budgets
    transfer.draw(results, general, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
