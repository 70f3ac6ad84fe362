"""Comparing the speed of two versions: verdicts, turns, source trees."""

import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import busenv
from busenv.profiling import compare_versions, speed_worker
from busenv.profiling.compare_versions import (
    FASTER,
    SAME,
    SLOWER,
    UNCLEAR,
    compare_with,
    speed_ratio,
)
from busenv.profiling.source_trees import write_tree
from busenv.profiling.speed_worker import measure_speeds
from tests.support.commands import refusal


def paired(
    times: float, noise: float, *, pairs: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Speeds of two versions with a ratio `times`, on a machine whose speed varies."""
    random = np.random.default_rng(seed)
    machine = 1000 * np.exp(random.normal(0, 0.3, pairs))  # the same for both of a pair
    runs = np.exp(random.normal(0, noise, (2, pairs)))
    return machine * runs[0], times * machine * runs[1]


@pytest.mark.parametrize(
    ("times", "noise", "verdict"),
    [
        (0.9, 0.01, SLOWER),
        (1.1, 0.01, FASTER),
        (1.0, 0.005, SAME),
        (0.98, 0.002, SAME),
        (0.98, 0.08, UNCLEAR),
    ],
)
def test_speed_ratio_returns_a_verdict(times: float, noise: float, verdict: str) -> None:
    ratio = speed_ratio(*paired(times, noise, pairs=31), tolerance=0.03)
    assert ratio.verdict == verdict
    assert ratio.low <= ratio.ratio <= ratio.high
    assert ratio.low < times < ratio.high


def test_a_few_pairs_allow_no_verdict() -> None:
    assert speed_ratio([100.0] * 5, [50.0] * 5, 0.03).verdict == UNCLEAR
    assert speed_ratio([100.0] * 6, [50.0] * 6, 0.03).verdict == SLOWER
    # For 15 pairs the sign test's 95% interval runs from the 4th to the 12th ratio.
    ratio = speed_ratio([1.0] * 15, range(15), 0.03)
    assert (ratio.low, ratio.high) == (3, 11)


def test_workers_take_turns_and_the_first_pair_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = []
    monkeypatch.setattr(
        compare_versions, "_request", lambda worker, name: requests.append(worker) or len(requests)
    )
    speeds: compare_versions.Speeds = ([], [])
    compare_versions.run_pairs("AB", "playouts", 4, speeds)  # type: ignore[arg-type]
    assert "".join(requests) == "AB" + "BA" + "AB" + "BA" + "AB"
    assert speeds == ([4, 5, 8, 9], [3, 6, 7, 10])


@pytest.mark.parametrize("name", [*speed_worker.MEASUREMENTS])
def test_measurements_do_the_same_every_time(name: str) -> None:
    play = speed_worker.MEASUREMENTS[name][1](0.01)
    count = play()
    assert count > 0
    assert play() == count


def test_unknown_measurements_are_refused(capsys: pytest.CaptureFixture) -> None:
    error = refusal(capsys, "bench", "--only", "dreams")
    assert "no measurement 'dreams'; allowed: playouts, vector" in error


@pytest.fixture(autouse=True)
def versions_in_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_versions, "versions_folder", lambda: tmp_path / "versions")


def checkout(folder: Path, seconds: float = 1.0) -> Path:
    """A checkout of a stub of busenv whose playouts take a number of simulated seconds."""
    (folder / "busenv").mkdir(parents=True)
    (folder / "agents").mkdir()
    (folder / "busenv/agents/__init__.py").write_text("")
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


def compared(revision: Path | str, names: list[str], repeats: int) -> tuple[bool, str]:
    console = Console(record=True, width=80, file=io.StringIO())
    not_slower = compare_with(
        str(revision), names, repeats=repeats, tolerance=0.03, console=console, scale=0.01
    )
    return not_slower, console.export_text()


def test_a_slower_version_is_called_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = checkout(tmp_path / "a", 0.01), checkout(tmp_path / "b", 0.04)
    current = [slow]
    monkeypatch.setattr(
        compare_versions,
        "write_tree",
        lambda tree, of=None: write_tree(tree, of or str(current[0])),
    )
    not_slower, text = compared(fast, ["playouts", "aec"], 6)
    assert not not_slower
    assert "aec is left out: ModuleNotFoundError: No module named 'busenv.bus_v0'" in text
    (row,) = (line for line in text.splitlines() if line.startswith("playouts"))
    assert row.endswith(" slower")
    current[0] = fast
    not_slower, text = compared(slow, ["playouts"], 6)
    assert not_slower
    assert " faster" in text
    with pytest.raises(ValueError, match="no measurement runs in both"):
        compared(slow, ["aec"], 1)


def test_trees_hold_the_packages_of_a_commit_a_folder_or_the_running_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, tree = checkout(tmp_path / "repository"), tmp_path / "tree"
    run = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*run, *words], check=True)
    (repository / "busenv/later.py").write_text("")
    write_tree(tree, str(repository))
    assert (tree / "busenv/later.py").exists()
    monkeypatch.chdir(repository / "agents")
    write_tree(tree, "HEAD")
    assert (tree / "busenv/agents/__init__.py").is_file()
    assert not (tree / "busenv/later.py").exists()
    with pytest.raises(ValueError, match="contains no package busenv"):
        write_tree(tree, str(repository / "agents"))
    write_tree(tree)
    source = Path(busenv.__file__).read_bytes()
    assert (tree / "busenv/__init__.py").read_bytes() == source
    assert (tree / "busenv/agents/specs.py").is_file()
    assert not [*tree.rglob("__pycache__")]


@pytest.mark.slow
def test_a_version_against_itself() -> None:
    not_slower, text = compared("HEAD", [*speed_worker.MEASUREMENTS], 2)
    assert not_slower
    for name in speed_worker.MEASUREMENTS:
        assert f"\n{name} " in text


def test_speeds_skip_the_warm_up_and_take_turns() -> None:
    calls = []
    speeds = measure_speeds(
        [lambda: calls.append(0) or 1000, lambda: calls.append(1) or 10], repeats=4
    )
    assert calls == 5 * [0, 1]
    assert [len(runs) for runs in speeds] == [4, 4]
    assert all(speed > 0 for runs in speeds for speed in runs)
