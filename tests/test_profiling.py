"""Measurements of speed, and the comparison of two versions."""

import io
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from busenv.profiling import measurements, speed
from busenv.profiling.measurements import MEASUREMENTS, measure
from tests.support.commands import refusal


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_measurements_do_the_same_every_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "STEPS", 3)
    play = MEASUREMENTS[name][1]()
    count = play()
    assert count > 0
    assert play() == count or name.startswith("ppo")  # whose games go on


def test_the_first_run_is_not_counted() -> None:
    assert len(measure("playouts", 2)) == 2


def test_unknown_measurements_are_refused(capsys: pytest.CaptureFixture) -> None:
    error = refusal(capsys, "bench", "--only", "dreams")
    assert "no measurement 'dreams'; allowed: playouts, vector" in error


def checkout(folder: Path, seconds: float) -> Path:
    """A checkout of a stub of busenv whose playouts take a number of simulated seconds."""
    (folder / "busenv").mkdir(parents=True)
    (folder / "busenv/__init__.py").write_text(
        "import time\n"
        "clock = [0.0]\n"
        "time.perf_counter = lambda: clock[0]\n"
        "class Playouts:\n"
        "    decisions = 1000\n"
        "def random_playouts(games):\n"
        f"    print('noise'); clock[0] += {seconds}; return Playouts\n"
    )
    return folder


def compared(revision: Path, current: Path, names: list[str]) -> tuple[bool, list[str]]:
    """The verdict and the printed lines of a comparison with another version."""
    console = Console(record=True, width=100, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "ROUNDS", 1)
        patch.setattr(speed.busenv, "__file__", str(current / "busenv/__init__.py"))
        not_slower = speed.compare(str(revision), names, 1, console)
    return not_slower, console.export_text().splitlines()


def test_a_slower_version_is_found(tmp_path: Path) -> None:
    fast, slow = checkout(tmp_path / "a", 0.01), checkout(tmp_path / "b", 0.04)
    not_slower, lines = compared(fast, slow, ["playouts", "aec"])
    assert not not_slower
    assert any(line.startswith("aec is left out: ") for line in lines), lines
    (row,) = (line for line in lines if line.startswith("playouts"))
    assert row.split() == "playouts 100,000 25,000 0.250 0.250 to 0.250".split()
    not_slower, lines = compared(slow, fast, ["playouts"])
    assert not_slower
    assert " 4.000 " in lines[-1]


def test_a_measurement_that_fails_in_this_version_only_counts_as_slower(tmp_path: Path) -> None:
    good, bad = checkout(tmp_path / "a", 0.01), checkout(tmp_path / "b", 0.0)
    assert not compared(good, bad, ["playouts"])[0]
    assert compared(bad, good, ["playouts"])[0]


def test_a_commit_is_extracted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = checkout(tmp_path / "repository", 1.0)
    run = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*run, *words], check=True)
    (repository / "busenv/later.py").write_text("")
    monkeypatch.chdir(repository)
    folder = speed.checkout("HEAD")
    assert [path.name for path in (folder / "busenv").iterdir()] == ["__init__.py"]
    assert speed.checkout("HEAD") == folder
    assert speed.checkout(str(repository)) == repository
    with pytest.raises(ValueError, match=r"neither a folder nor a commit of .*: fatal: "):
        speed.checkout("no-such-commit")
