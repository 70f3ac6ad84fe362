"""Compare the speeds of two versions of busenv, run by run."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba.misc.appdirs import AppDirs
from rich.console import Console
from scipy.stats import quantile_test

from busenv.common.console import TextTable, progress_bar
from busenv.common.runs import lock_folder
from busenv.profiling import speed_worker
from busenv.profiling.source_trees import write_tree

ROUNDS = 3  # each starts new processes: the placement of code in memory changes speeds by a few %
FASTER, SLOWER, SAME, UNCLEAR = "faster", "slower", "no difference", "unclear"
Worker = subprocess.Popen[str]
Speeds = tuple[list[float], list[float]]  # of the baseline and of the current version, in pairs


class MeasurementError(RuntimeError):
    """A measurement that a version cannot run; the message names the reason."""


def compare_with(
    revision: str,
    names: Sequence[str],
    *,
    repeats: int,
    tolerance: float,
    console: Console,
    scale: float = 1.0,
) -> bool:
    """Compare the running package with another version, and print the table.

    revision: a commit, or a folder with a checkout. names: of `speed_worker.MEASUREMENTS`.
    tolerance: a share, such as 0.03. scale: factor of all sizes.
    Returns whether no measurement is slower by more than the tolerance. ValueError when there is
    no such version, no measurement runs in both, or another comparison is running.
    """
    folder = versions_folder()
    measured: dict[str, Speeds] = {name: ([], []) for name in names}
    rounds = [len(part) for part in np.array_split(range(repeats), min(ROUNDS, repeats))]
    with lock_folder(folder, "wait until it ends"), progress_bar(console, "pairs") as bar:
        trees = write_tree(folder / "baseline", revision), write_tree(folder / "current")
        console.print("Compiling (up to a few minutes the first time) ...")
        task = bar.add_task("", total=len(names) * repeats, note="")
        for pairs in rounds:
            with ExitStack() as stack:
                workers = [stack.enter_context(running_worker(tree, scale)) for tree in trees]
                for name in list(measured):
                    bar.update(task, note=name)
                    try:
                        run_pairs(workers, name, pairs, measured[name])
                    except MeasurementError as error:
                        console.print(f"{name} is left out: {error}", markup=False)
                        del measured[name]
                    bar.advance(task, pairs)
    if not measured:
        raise ValueError("no measurement runs in both versions")
    ratios = {name: speed_ratio(*speeds, tolerance) for name, speeds in measured.items()}
    title = f"This version compared with {revision}: {repeats} pairs, tolerance {tolerance:.1%}"
    rows = [_row(name, speeds, ratios[name]) for name, speeds in measured.items()]
    header = ["measurement", "baseline", "current", "ratio\n[95%]", "verdict"]
    TextTable(title, header, rows).show(console)
    if any(ratio.verdict == UNCLEAR for ratio in ratios.values()):
        console.print("Unclear: the interval is too wide for a verdict; increase --repeats.")
    return all(ratio.verdict != SLOWER for ratio in ratios.values())


def versions_folder() -> Path:
    """Return the folder of both versions and their machine code, in the user's cache."""
    return Path(AppDirs("busenv", appauthor=False).user_cache_dir) / "bench"


def run_pairs(workers: Sequence[Worker], name: str, pairs: int, speeds: Speeds) -> None:
    """Run a measurement in two workers in turns, and append their speeds.

    Each worker is first in every other pair. An additional first pair compiles and warms up and is
    not counted.
    """
    for pair in range(-1, pairs):
        for version in (0, 1) if pair % 2 else (1, 0):
            speed = _request(workers[version], name)
            if pair >= 0:
                speeds[version].append(speed)


@contextmanager
def running_worker(tree: Path, scale: float) -> Iterator[Worker]:
    """Run `speed_worker` with the package of a tree in a separate process."""
    # -S skips the site module, and with it an editable installation of busenv. Other packages are
    # found by the same paths as here.
    paths = [str(tree), *(str(Path(path).resolve()) for path in sys.path)]
    script = str(Path(speed_worker.__file__).resolve())
    process = subprocess.Popen(
        [sys.executable, "-S", script, "--scale", str(scale)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONHASHSEED": "0",
            "NUMBA_CACHE_DIR": str(tree.parent / "kernels"),  # trees are replaced
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C in a terminal is for this process, which ends the worker
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def _request(worker: Worker, name: str) -> float:
    """Run a measurement once in a worker, and return its speed per second."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(f"{name}\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
    except BrokenPipeError:
        line = ""
    if not line:
        raise MeasurementError("its process died")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise MeasurementError(answer["error"])
    return float(answer["count"] / answer["seconds"])


def _row(name: str, speeds: Speeds, ratio: SpeedRatio) -> list[str]:
    medians = (f"{statistics.median(version):,.0f}" for version in speeds)
    few = math.isnan(ratio.high)
    interval = "[too few]" if few else f"[{ratio.low:.3f}, {ratio.high:.3f}]"
    return [name, *medians, f"{ratio.ratio:.3f}\n{interval}", ratio.verdict]


@dataclass(frozen=True)
class SpeedRatio:
    """The second version's speed divided by the first's.

    ratio: median over the pairs. low, high: its 95% interval by the sign test, for any
    distribution; NaN for fewer than 6 pairs. verdict: FASTER, SLOWER, SAME or UNCLEAR.
    """

    ratio: float
    low: float
    high: float
    verdict: str


def speed_ratio(
    baseline: Sequence[float], current: Sequence[float], tolerance: float
) -> SpeedRatio:
    """Compare the speeds of two versions, measured pair by pair.

    tolerance: a share, such as 0.03. FASTER or SLOWER: the median ratio differs from 1 by more than
    the tolerance, and the interval excludes 1. SAME: the whole interval is within the tolerance.
    Otherwise UNCLEAR: more pairs are needed.
    """
    ratios = [new / old for old, new in zip(baseline, current, strict=True)]
    ratio = statistics.median(ratios)
    low, high = quantile_test(ratios).confidence_interval()
    if ratio < 1 - tolerance and high < 1:
        verdict = SLOWER
    elif ratio > 1 + tolerance and low > 1:
        verdict = FASTER
    elif 1 - tolerance <= low and high <= 1 + tolerance:
        verdict = SAME
    else:
        verdict = UNCLEAR
    return SpeedRatio(ratio, low, high, verdict)
