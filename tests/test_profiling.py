"""Two versions are compared fairly: who is slower is called slower, and nobody else."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import busenv
from busenv.experiments import cli
from busenv.experiments.profiling import compare_versions, source_trees, speed_worker
from busenv.experiments.profiling.compare_versions import compare_with, running_worker
from busenv.experiments.profiling.paired_ratio import (
    FASTER,
    SAME,
    SLOWER,
    UNCLEAR,
    median_interval,
    speed_ratio,
)


def paired(times: float, noise: float, pairs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Speeds of two versions, the second so many times as fast, on a machine that drifts."""
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
def test_verdicts(times: float, noise: float, verdict: str) -> None:
    found = speed_ratio(*paired(times, noise, 31), tolerance=0.03)
    assert found.verdict == verdict
    assert found.low <= found.ratio <= found.high
    assert found.low < times < found.high


def test_equal_versions_are_not_called_slower() -> None:
    verdicts = [speed_ratio(*paired(1.0, 0.1, 15, seed), 0.03).verdict for seed in range(400)]
    wrong = sum(verdict in (SLOWER, FASTER) for verdict in verdicts)
    assert wrong / 400 < 0.07


def test_a_few_pairs_allow_no_verdict() -> None:
    assert speed_ratio([100.0] * 5, [50.0] * 5, 0.03).verdict == UNCLEAR
    assert speed_ratio([100.0] * 6, [50.0] * 6, 0.03).verdict == SLOWER


def test_interval_of_the_median_holds_it_as_often_as_it_says() -> None:
    # For 15 values the sign test's 95% interval runs from the 4th to the 12th.
    assert median_interval(range(15)) == (3, 11)
    assert median_interval(range(6)) == (0, 5)
    random = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        low, high = median_interval(random.exponential(size=15).tolist())
        held += low <= np.log(2) <= high
    assert 0.94 < held / 1000 < 0.99


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


def test_unknown_measurements_and_versions_are_refused(capsys: pytest.CaptureFixture) -> None:
    for words, message in (
        (["--only", "dreams"], "no measurement 'dreams'; allowed: playouts, vector"),
        (["--against", "nowhere"], "'nowhere' is neither a folder nor a commit of "),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["bench", *words])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of trees."""
    monkeypatch.setattr(compare_versions, "trees_folder", lambda: tmp_path / "trees")
    return tmp_path / "trees"


def checkout(folder: Path, seconds: float = 1.0) -> Path:
    """A checkout of something like busenv whose play takes so long, by a clock that it sets."""
    (folder / "busenv").mkdir(parents=True)
    (folder / "agents").mkdir()
    (folder / "agents/__init__.py").write_text("")
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
    good = compare_with(
        str(revision), names, repeats=repeats, tolerance=0.03, console=console, scale=0.01
    )
    return good, console.export_text()


def test_a_slower_version_is_called_slower(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, now = checkout(tmp_path / "a", 0.01), checkout(tmp_path / "b", 0.04)
    monkeypatch.setattr(
        compare_versions, "running_tree", lambda cache: source_trees.tree_of(str(now), cache)
    )
    good, text = compared(before, ["playouts", "aec"], 6)
    assert not good
    assert "aec is left out: ModuleNotFoundError: No module named 'busenv.bus_v0'" in text
    (row,) = (line for line in text.splitlines() if line.startswith("playouts"))
    assert row.endswith(" slower")
    monkeypatch.setattr(
        compare_versions, "running_tree", lambda cache: source_trees.tree_of(str(before), cache)
    )
    good, text = compared(now, ["playouts"], 6)
    assert good
    assert " faster" in text
    with pytest.raises(ValueError, match="no measurement runs in both"):
        compared(now, ["aec"], 1)


def test_a_worker_measures_its_own_tree(cache: Path, tmp_path: Path) -> None:
    tree = source_trees.tree_of(str(checkout(tmp_path / "a")), cache)
    with running_worker(tree, 1.0) as process:
        assert compare_versions._request(process, "playouts") > 0
        with pytest.raises(compare_versions.MeasurementError, match="No module named"):
            compare_versions._request(process, "aec")
    assert process.poll() is not None


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, and a change that is not committed."""
    root = tmp_path / "repository"
    checkout(root)
    run = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*run, *words], check=True)
    (root / "busenv/later.py").write_text("")
    return root


def test_trees_are_cached_by_their_content(
    cache: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "agents")
    tree = source_trees.tree_of("HEAD", cache)
    assert tree.parent == cache
    assert (tree / "busenv/agents/__init__.py").is_file()
    assert not (tree / "busenv/later.py").exists()
    assert source_trees.tree_of("HEAD", cache) == tree
    other = source_trees.tree_of(str(repository), cache)
    assert other != tree
    assert (other / "busenv/later.py").exists()
    (repository / "busenv/later.py").unlink()
    assert source_trees.tree_of(str(repository), cache) == tree
    for number in range(source_trees.MAX_TREES + 2):
        (repository / "busenv/later.py").write_text(str(number))
        source_trees.tree_of(str(repository), cache)
    assert len([*cache.iterdir()]) == source_trees.MAX_TREES
    with pytest.raises(ValueError, match="contains no package busenv"):
        source_trees.tree_of(str(repository / "agents"), cache)


def test_the_running_package_is_a_tree_too(cache: Path) -> None:
    tree = source_trees.running_tree(cache)
    source = Path(busenv.__file__).read_bytes()
    assert (tree / "busenv/__init__.py").read_bytes() == source
    assert (tree / "busenv/agents/registry.py").is_file()
    assert not [*tree.rglob("__pycache__")]


@pytest.mark.slow
def test_a_version_against_itself(cache: Path) -> None:
    good, text = compared("HEAD", [*speed_worker.MEASUREMENTS], 2)
    assert good
    for name in speed_worker.MEASUREMENTS:
        assert f"\n{name} " in text
