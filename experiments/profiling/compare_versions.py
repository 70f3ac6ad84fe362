"""Two versions of busenv timed beside each other, run by run."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from busenv.experiments.common.console import TextTable, progress_bar
from busenv.experiments.common.keyboard_interrupt import sigint_blocked
from busenv.experiments.profiling import speed_worker
from busenv.experiments.profiling.paired_ratio import SLOWER, UNCLEAR, Comparison, compare
from busenv.experiments.profiling.source_trees import running_tree, tree_of, trees_folder

NAMES = tuple(speed_worker.MEASUREMENTS)
ROUNDS = 3  # in each both versions run in new processes: where code lies in memory makes a few %
Worker = subprocess.Popen  # of text


class MeasurementError(RuntimeError):
    """What a version cannot do; the message says why."""


@dataclass
class Measured:
    """The speeds of two versions at one measurement, pair by pair."""

    name: str
    before: list[float] = field(default_factory=list)
    now: list[float] = field(default_factory=list)


def run_against(
    revision: str,
    names: Sequence[str],
    repeats: int,
    tolerance: float,
    console: Console,
    scale: float = 1.0,
) -> bool:
    """Compare a commit, or a folder with a checkout, with the package that runs; print the table.

    names: of NAMES. tolerance: a share, such as 0.03. scale: of the sizes of all measurements.
    Returns whether nothing is slower by more than the tolerance. ValueError when there is no such
    commit, or nothing could be measured.
    """
    kept = trees_folder()
    trees = tree_of(revision, kept), running_tree(kept)
    if trees[0] == trees[1]:
        console.print(f"{revision} is the same as what runs here.", markup=False)
    console.print("Compiling what is not compiled yet (up to a few minutes) ...")
    found = {name: Measured(name) for name in names}
    rounds = [len(part) for part in np.array_split(range(repeats), min(ROUNDS, repeats))]
    with progress_bar(console, "pairs") as bar:
        task = bar.add_task("", total=len(names) * repeats, note="")
        for pairs in rounds:
            with ExitStack() as stack:
                sides = [stack.enter_context(running_worker(tree, scale)) for tree in trees]
                for name in list(found):
                    bar.update(task, note=name)
                    try:
                        measure(sides, found[name], pairs)
                    except MeasurementError as error:
                        console.print(f"{name} is left out: {error}", markup=False)
                        del found[name]
                    bar.advance(task, pairs)
    if not found:
        raise ValueError("nothing could be measured in both versions")
    measured = [*found.values()]
    compared = [compare(row.before, row.now, tolerance) for row in measured]
    table(measured, compared, revision, tolerance).show(console)
    if any(row.verdict == UNCLEAR for row in compared):
        console.print("Unclear: the interval is too wide for a verdict; more --repeats narrow it.")
    return all(row.verdict != SLOWER for row in compared)


def measure(sides: Sequence[Worker], found: Measured, pairs: int) -> None:
    """Run a measurement in two workers in turns, each first in every other pair, and add what is
    found. Only one works at a time.

    A pair before the first is not counted: it compiles and warms up.
    """
    for pair in range(-1, pairs):
        for side in (0, 1) if pair % 2 else (1, 0):
            speed = _ask(sides[side], found.name)
            if pair >= 0:
                (found.before, found.now)[side].append(speed)


@contextmanager
def running_worker(tree: Path, scale: float) -> Iterator[Worker]:
    """A process that measures the package of a tree (`bench.worker`)."""
    # Without the site module (-S) nothing of this Python's own installation of busenv is found, as
    # an editable one would be: other packages are, by the same paths as here.
    paths = [str(tree), *(str(Path(path).resolve()) for path in sys.path)]
    with sigint_blocked():
        process = subprocess.Popen(
            [
                sys.executable,
                "-S",
                str(Path(speed_worker.__file__).resolve()),
                "--scale",
                str(scale),
            ],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def _ask(process: Worker, name: str) -> float:
    """Run a measurement once; how much it did a second."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
    except BrokenPipeError:
        raise MeasurementError("its process has died") from None
    line = process.stdout.readline()
    if not line:
        raise MeasurementError("its process has died")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise MeasurementError(answer["error"])
    return answer["count"] / answer["seconds"]


def table(
    found: Sequence[Measured], compared: Sequence[Comparison], revision: str, tolerance: float
) -> TextTable:
    """Every measurement with its ratio, interval and verdict."""
    rows = []
    for row, result in zip(found, compared, strict=True):
        ratio = f"{result.ratio:.3f}\n{interval(result)}"
        speeds = (f"{statistics.median(speeds):,.0f}" for speeds in (row.before, row.now))
        rows.append([row.name, *speeds, ratio, result.verdict])
    pairs = len(found[0].before)
    title = f"This version against {revision}: {pairs} pairs, tolerance {tolerance:.1%}"
    return TextTable(title, ["what", "before", "now", "times as fast\n[95%]", "verdict"], rows)


def interval(result: Comparison) -> str:
    if math.isinf(result.high):
        return "[too few]"
    return f"[{result.low:.3f}, {result.high:.3f}]"
