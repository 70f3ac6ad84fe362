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
    monkeypatch.setattr(generalisation, "DECISIONS", {"mlp": 600, "board": 600})
    monkeypatch.setattr(generalisation, "TRAINING_BOARDS", {"1": 1, "2": 2})
    monkeypatch.setattr(generalisation, "OPPONENTS", opponents)
    monkeypatch.setattr(generalisation, "TEST_BOARDS", 2)
    monkeypatch.setattr(transfer, "OPPONENTS", opponents)
    monkeypatch.setattr(transfer, "UNLIMITED", "2")
    monkeypatch.setattr(transfer, "BUDGETS", {"mlp": (400, 600), "board": (400,)})


def test_a_stopped_study_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = generalisation.study(tmp_path, seeds=1)
    assert [*results] == ["mlp/1/0", "mlp/2/0", "board/1/0", "board/2/0"]
    for shares in results.values():
        assert [*shares] == [*generalisation.PLACES]
        assert all(0 <= won["planner"] <= 1 for won in shares.values())
    assert "board/2/0, against planner: training boards " in capsys.readouterr().out
    monkeypatch.setattr(
        generalisation, "run_training", lambda *_: pytest.fail("a finished run was trained again")
    )
    assert generalisation.study(tmp_path, seeds=1) == results
    assert generalisation.table(results).count("|\n") == 6  # two of the head, four of runs
    generalisation.draw(results, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_transfer_starts_from_the_networks_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(ValueError, match="no run on an unlimited number of boards"):
        transfer.read_general(tmp_path)
    generalisation.study(tmp_path, seeds=1)
    general = transfer.read_general(tmp_path)
    assert [*general] == ["mlp/2/0", "board/2/0"]
    results = transfer.study(tmp_path, general)
    assert [*results] == [
        "mlp/400/random/0", "mlp/400/general/0", "mlp/600/random/0", "mlp/600/general/0",
        "board/400/random/0", "board/400/general/0",
    ]  # fmt: skip
    settings = json.loads((tmp_path / "transfer" / "board/400/general/0" / "run.json").read_text())
    assert settings["init_from"] == str(tmp_path / "board/2/0/model.safetensors")
    assert (settings["board"], settings["decisions"]) == ("city", 400)
    text = transfer.table(results, general)
    assert text.count("|\n") == 10  # two of the head, two without fine-tuning, six of runs
    transfer.draw(results, general, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
