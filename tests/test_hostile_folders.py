"""Untrusted folders: no write follows a link in them, and no settings in them are read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from busenv import io
from busenv.common.plot_style import default_style
from busenv.evaluation import ladder
from busenv.evaluation.rating import run_rating
from busenv.io import open_plain, write_whole
from tests.support.commands import refusal
from tests.support.ratings import TWO_AGENTS

RUN_FILES = (
    *("run.json", "games.jsonl", "lock", "report.md", "results.csv", "pairs.csv", "seats.csv"),
    *("wins.png", "ratings.png", "seats.png", "anything"),
)


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_run_folder_with_a_link_is_refused(tmp_path: Path, name: str) -> None:
    """Links to an existing file and to a missing one."""
    folder, target = tmp_path / "run", tmp_path / "target"
    for content in (b"precious", None):
        folder.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
        if content is None:
            target.unlink()
        else:
            target.write_bytes(content)
        with pytest.raises(OSError, match=f"{name} is a symbolic link to .*target'; allowed"):
            run_rating(TWO_AGENTS, folder)
        assert (target.read_bytes() if target.exists() else None) == content
        assert [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("name", ["run.json", "model.json", "curve.csv", "past", "past/1.json"])
def test_a_training_folder_with_a_link_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture
) -> None:
    """Training would write through these links."""
    folder, target = tmp_path / "run", tmp_path / "target"
    target.write_text("precious")
    (folder / name).parent.mkdir(parents=True)
    (folder / name).symlink_to(target)
    error = refusal(capsys, "train", "quick", "--out", str(folder))
    assert f"{name} is a symbolic link to '{target}'; allowed" in error
    assert target.read_text() == "precious"


def test_no_way_to_open_a_file_follows_a_link(tmp_path: Path) -> None:
    """Links and pipes, opened in each mode and replaced."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"precious")
    link.symlink_to(target)
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="link is a symbolic link"):
        write_whole(link, "new", follow_links=False)
    for mode in ("rb", "ab", "r+b"):
        with pytest.raises(OSError, match="link is a symbolic link"):
            open_plain(link, mode)
        with pytest.raises(OSError, match="pipe is no file"):
            open_plain(pipe, mode)
    assert target.read_bytes() == b"precious"
    write_whole(target, "old", follow_links=False, mode=0o600)
    assert target.stat().st_mode & 0o777 == 0o600
    write_whole(target, "new", follow_links=False)
    assert target.stat().st_mode & 0o777 == 0o600
    with open_plain(target, "ab") as file:
        file.write(b"er")
    assert target.read_bytes() == b"newer"


def test_a_link_created_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"precious")
    link.symlink_to(target)
    monkeypatch.setattr(io, "check_plain", lambda path: None)
    for mode in ("rb", "ab", "r+b"):
        with pytest.raises(OSError, match="link"):
            open_plain(link, mode)
    write_whole(link, "new", follow_links=False)
    assert not link.is_symlink()
    assert (link.read_bytes(), target.read_bytes()) == (b"new", b"precious")


@pytest.mark.usefixtures("small_ladder")
def test_a_ladder_in_a_linked_folder_is_refused(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "run"
    elsewhere.mkdir()
    for name in ("3-players", "3-players/greedy-against-random"):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / name).parent.mkdir(parents=True)
        (folder / name).symlink_to(elsewhere)
        with pytest.raises(OSError, match=f"{name} is a symbolic link"):
            ladder.run_ladder(folder, 1, 0, 1, Console(quiet=True))
        assert not [*elsewhere.iterdir()]


DRAW = """
import sys
from pathlib import Path
import pandas as pd
from busenv.evaluation.plots import draw_intervals
from busenv.train.learning_curve import CurvePoint, draw_curve
table = pd.DataFrame({"won": [0.5], "low": [0.4], "high": [0.6], "par": [0.5]}, index=["a"])
out = Path(sys.argv[1])
draw_intervals(out / "wins.png", table, "title", "note")
draw_curve(out / "curve.png", [CurvePoint(1, 1000, 10, {"random": 0.5})], "title")
"""


def test_a_matplotlibrc_in_the_current_folder_is_not_applied(tmp_path: Path) -> None:
    """Two plots with a settings file in the folder that would run LaTeX, and without it."""
    drawn = []
    for name in ("clean", "hostile"):
        folder = tmp_path / name
        folder.mkdir()
        if name == "hostile":
            (folder / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 99\n")
        command = [sys.executable, "-c", DRAW, str(folder)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        drawn.append([(folder / picture).read_bytes() for picture in ("wins.png", "curve.png")])
    assert drawn[0] == drawn[1]


def test_pictures_use_default_settings_and_restore_those_of_the_caller() -> None:
    import matplotlib

    with matplotlib.rc_context({"lines.linewidth": 99}):
        with default_style():
            assert matplotlib.rcParams["lines.linewidth"] < 5
        assert matplotlib.rcParams["lines.linewidth"] == 99
