"""The study of generalisation measures every run once, and writes a table and a picture."""

from pathlib import Path

import pytest

from experiments import generalisation


def test_a_stopped_study_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generalisation, "TEACHER", "greedy")
    monkeypatch.setattr(generalisation, "DECISIONS", {"mlp": 600, "board": 600})
    monkeypatch.setattr(generalisation, "TRAINING_BOARDS", {"1": 1, "2": 2})
    monkeypatch.setattr(generalisation, "UNLIMITED", 2)
    monkeypatch.setattr(generalisation, "OPPONENTS", {"planner": 4, "greedy": 4})
    monkeypatch.setattr(generalisation, "TEST_BOARDS", 2)
    monkeypatch.setattr("busenv.train.expert_iteration.selfplay_run.PART_GAMES", 5)
    quick = generalisation.PRESETS["quick"].changed({"games": 8, "batch_size": 256})
    monkeypatch.setitem(generalisation.PRESETS, "quick", quick)
    monkeypatch.setattr("sys.argv", ["generalisation", str(tmp_path), "--seeds", "1"])
    for _ in range(2):
        generalisation.main()
        header, _, *lines = capsys.readouterr().out.splitlines()
        assert header == "| network | boards | training boards | unseen boards | the city |"
        assert [line[: line.index("%") - 3].rstrip(" 0123456789.") for line in lines] == [
            "| `mlp` | 1 |", "| `mlp` | 2 | — |", "| `board` | 1 |", "| `board` | 2 | — |",
        ]  # fmt: skip
        monkeypatch.setattr(generalisation, "run_training", None)  # nothing is trained again
    table = (tmp_path / "table.csv").read_text().splitlines()
    assert len(table) == 1 + 2 * (6 + 4)
    assert (tmp_path / "generalisation.png").read_bytes().startswith(b"\x89PNG")
