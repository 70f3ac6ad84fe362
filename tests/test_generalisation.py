"""Studies of generalisation and transfer measure every run once; tables and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from busenv.agents.match import Score
from busenv.train.training_run import evaluate_against
from experiments.studies import generalisation, transfer


@pytest.fixture(autouse=True)
def small_study(monkeypatch: pytest.MonkeyPatch) -> None:
    opponents = {"planner": 4, "greedy": 4}
    monkeypatch.setattr(generalisation, "TEACHER", "greedy")
    monkeypatch.setattr(generalisation, "DECISIONS", {"mlp": 600, "board": 600})
    monkeypatch.setattr(generalisation, "TRAINING_BOARDS", {"1": 1, "2": 2})
    monkeypatch.setattr(generalisation, "OPPONENTS", opponents)
    monkeypatch.setattr(generalisation, "TEST_BOARDS", 2)
    monkeypatch.setattr(transfer, "OPPONENTS", opponents)
    monkeypatch.setattr(generalisation, "UNLIMITED", 2)
    monkeypatch.setattr(transfer, "UNLIMITED", 2)
    monkeypatch.setattr(transfer, "BUDGETS", {"mlp": (400, 600), "board": (400,)})
    monkeypatch.setattr("busenv.train.expert_iteration.expert_run.TEACHER_GAMES", 5)
    quick = generalisation.PRESETS["quick"].changed({"games": 8, "batch_size": 256})
    monkeypatch.setitem(generalisation.PRESETS, "quick", quick)


def test_a_stopped_study_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boards = []

    def spy(*args: Any, board: str) -> list[Score]:
        boards.append(board)
        return evaluate_against(*args, board=board)

    monkeypatch.setattr(generalisation, "evaluate_against", spy)
    results = generalisation.study(tmp_path, ["mlp", "board"], seeds=1)
    assert [*results] == ["mlp/1/0", "mlp/2/0", "board/1/0", "board/2/0"]
    assert [*results["mlp/1/0"]] == ["training boards", "unseen boards", "the city"]
    assert [*results["mlp/2/0"]] == ["unseen boards", "the city"]
    test_boards = ["generated:city:test:2", "city"]
    assert boards[::2] == 2 * ["generated:city:train:1", *test_boards, *test_boards]
    assert "board/2/0, against planner: unseen boards " in capsys.readouterr().out
    monkeypatch.setattr(
        generalisation, "run_training", lambda *_: pytest.fail("a finished run was trained again")
    )
    assert generalisation.study(tmp_path, ["mlp", "board"], seeds=1) == results
    of_mlp = generalisation.study(tmp_path, ["mlp"], seeds=1)
    assert [*of_mlp] == ["mlp/1/0", "mlp/2/0"]
    assert "`board`" not in generalisation.table(of_mlp)
    generalisation.draw(results, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_has_a_row_for_each_number_of_training_boards() -> None:
    rates = {name: {"planner": 0.1, "greedy": 0.2} for name in generalisation.BOARD_SETS}
    rates["the city"] = {"planner": 0.3, "greedy": 0.4}
    results = {f"{network}/1/{seed}": rates for network in ("mlp", "board") for seed in range(3)}
    lines = generalisation.table(results).splitlines()
    assert lines[2].startswith("| `mlp` | 1 | 10.0% [10.0, 10.0] | 20.0% [20.0, 20.0] | 10.0%")
    assert lines[2].endswith("| 30.0% [30.0, 30.0] | 40.0% [40.0, 40.0] |")
    assert lines[3] == "| `mlp` | 2" + 6 * " | —" + " |"
    assert lines[4].startswith("| `board` | 1 | 10.0%")


def test_transfer_starts_from_the_networks_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generalisation, "TRAINING_BOARDS", {"2": 2})
    results_file = tmp_path / "results.json"
    results_file.write_text("{")
    with pytest.raises(ValueError, match=r"results\.json is not JSON text"):
        transfer.read_pretrained(tmp_path)
    results_file.unlink()
    with pytest.raises(ValueError, match="no finished run on an unlimited number of boards"):
        transfer.read_pretrained(tmp_path)
    generalisation.study(tmp_path, ["mlp", "board"], seeds=1)
    pretrained = transfer.read_pretrained(tmp_path)
    assert [*pretrained] == ["mlp/2/0", "board/2/0"]
    results = transfer.study(tmp_path, pretrained)
    assert [*results] == [
        "mlp/400/random/0", "mlp/400/pretrained/0", "mlp/600/random/0", "mlp/600/pretrained/0",
        "board/400/random/0", "board/400/pretrained/0",
    ]  # fmt: skip
    model = str(tmp_path / "board/2/0/model.safetensors")
    for initial, init_from in (("random", ""), ("pretrained", model)):
        settings = json.loads((tmp_path / f"transfer/board/400/{initial}/0/run.json").read_text())
        assert settings["init_from"] == init_from
        assert (settings["board"], settings["decisions"]) == ("city", 400)
    monkeypatch.chdir(tmp_path.parent)
    assert transfer.study(Path(tmp_path.name), pretrained) == results

    results["board/400/pretrained/0"] = {"the city": {"planner": 0.5, "greedy": 0.75}}
    lines = transfer.table(results, pretrained).splitlines()
    assert len(lines) == 10  # two of the header, two before fine-tuning, six of runs
    shown = "| 50.0% | 75.0% |"  # one seed has no interval
    assert lines[-1] == f"| `board` | pretrained | 400 {shown}"
    transfer.draw(results, pretrained, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
