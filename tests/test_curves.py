"""Learning curves of several runs: groups of seeds, and the picture."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from busenv import cli
from busenv.common.runs import RunError
from busenv.evaluation.curves import read_runs
from busenv.train.learning_curve import CurvePoint, write_curve
from tests.support.commands import refusal


def write_run(folder: Path, seed: int, rate: float, bot: str = "greedy", players: int = 4) -> Path:
    """A run folder with three ratings; the share won rises by `rate`."""
    folder.mkdir()
    settings = {"seed": seed, "learning_rate": rate, "players": [players], "bots": [bot]}
    (folder / "run.json").write_text(json.dumps(settings))
    points = [CurvePoint(10.0 * k, 1000 * k + seed, 16, {bot: rate * k}) for k in range(1, 4)]
    write_curve(folder / "curve.csv", points)
    return folder


def test_runs_that_differ_in_their_seed_share_a_line(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / f"{rate}-{seed}", seed, rate)
        for rate in (0.1, 0.2)
        for seed in range(3)
    ]
    groups, players = read_runs(folders)
    assert players == 4
    assert [*groups] == ["learning_rate=0.1", "learning_rate=0.2"]
    assert [len(curves) for curves in groups.values()] == [3, 3]
    assert np.allclose(groups["learning_rate=0.2"][0].won["greedy"], [0.2, 0.4, 0.6])
    assert [*read_runs(folders[:3])[0]] == ["runs"]
    for folder, board in zip(folders[:2], ("{}", "[]"), strict=True):
        settings = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**settings, "board": "board.json"}))
        (folder / "board.json").write_text(board)
    assert [name[:17] for name in read_runs(folders[:2])[0]] == ["board=board.json "] * 2

    picture = tmp_path / "curves.png"
    cli.main(["plot", *map(str, folders), "--out", str(picture)])
    assert plt.imread(picture).shape[0] > 500


def test_runs_that_do_not_compare_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    one = write_run(tmp_path / "one", 0, 0.1)
    with pytest.raises(RunError, match="rated with \\[3, 4\\] players"):
        read_runs([one, write_run(tmp_path / "three", 0, 0.1, players=3)])
    other = write_run(tmp_path / "other", 0, 0.1, bot="planner")
    assert "a common opponent" in refusal(capsys, "plot", str(one), str(other))
    (one / "curve.csv").unlink()
    assert "has no ratings" in refusal(capsys, "plot", str(one))
