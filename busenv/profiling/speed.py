"""Speeds of this version, and their ratios to those of another one."""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import busenv
from busenv.common.console import TextTable
from busenv.profiling import measurements

CHECKOUTS = Path("runs/bench")  # commits stay here, with their machine code
ROUNDS = 5  # each starts new processes: the placement of code in memory changes speeds by a few %
TOLERANCE = 0.03  # slowdown that `compare` accepts


def show_speeds(names: Sequence[str], repeats: int, console: Console) -> None:
    """Measure this version, and print a table.

    names: of `measurements.MEASUREMENTS`. repeats: runs of each.
    """
    rows = []
    for name in names:
        try:
            speeds = measurements.measure(name, repeats)
        except ModuleNotFoundError as error:
            console.print(f"{name} is left out: {error}", markup=False)
            continue
        numbers = statistics.median(speeds), min(speeds), max(speeds)
        description = measurements.MEASUREMENTS[name][0]
        rows.append([name, description, *(f"{number:,.0f}" for number in numbers)])
    title = f"Units of work per second, 4 players, one thread by default; {repeats} runs"
    header = ["name", "measurement", "median", "slowest", "fastest"]
    TextTable(title, header, rows, names=2).show(console)


def compare(revision: str, names: Sequence[str], repeats: int, console: Console) -> bool:
    """Measure this version and another one in turns, and print the ratios of their speeds.

    revision: a commit, or a folder with a checkout. repeats: runs of each measurement in each of
    ROUNDS. Returns whether the median ratio of every measurement is at least 1 - TOLERANCE; one
    that fails in the other version is left out. Raises ValueError for an unknown revision.
    """
    trees = checkout(revision), Path(str(busenv.__file__)).parents[1]
    rounds: list[list[dict[str, Any]]] = []  # of each: results of the other version, of this one
    for k in range(ROUNDS):
        console.print(f"Round {k + 1} of {ROUNDS} (the first one compiles)")
        order = -1 if k % 2 else 1
        results = [_run(tree, names, repeats) for tree in trees[::order]]
        rounds.append(results[::order])
    rows, not_slower = [], True
    for name in names:
        old_errors, new_errors = (
            [one[name] for one in versions if isinstance(one[name], str)]
            for versions in zip(*rounds, strict=True)
        )
        if old_errors or new_errors:
            not_slower &= bool(old_errors)  # the other version may lack the measurement
            console.print(f"{name} is left out: {(old_errors + new_errors)[0]}", markup=False)
            continue
        pairs = [[statistics.median(one[name]) for one in pair] for pair in rounds]
        medians = [f"{statistics.median(speeds):,.0f}" for speeds in zip(*pairs, strict=True)]
        ratios = [new / old for old, new in pairs]
        ratio = statistics.median(ratios)
        not_slower &= ratio >= 1 - TOLERANCE
        rows.append([name, *medians, f"{ratio:.3f}", f"{min(ratios):.3f} to {max(ratios):.3f}"])
    title = f"This version compared with {revision}: units of work per second, {ROUNDS} rounds"
    header = ["measurement", "baseline", "current", "median ratio", "lowest to highest"]
    TextTable(title, header, rows).show(console)
    return not_slower


def checkout(revision: str) -> Path:
    """Return the folder of a version: the given folder, or one with a commit's package."""
    if Path(revision).is_dir():
        return Path(revision).resolve()
    try:
        commit = _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        folder = (CHECKOUTS / commit.decode().strip()).resolve()
        if not folder.exists():
            root = _git("rev-parse", "--show-toplevel").decode().strip()
            archive = _git("-C", root, "archive", "--format=zip", folder.name, "busenv")
            unfinished = folder.with_suffix(".part")
            with zipfile.ZipFile(io.BytesIO(archive)) as files:
                files.extractall(unfinished)
            unfinished.rename(folder)
    except FileNotFoundError:
        raise ValueError("git is not installed; --against also takes a folder") from None
    except subprocess.CalledProcessError as error:
        raise ValueError(
            f"{revision!r} is neither a folder nor a commit of the current folder's repository: "
            f"{error.stderr.decode(errors='replace').strip()}"
        ) from None
    return folder


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], check=True, capture_output=True).stdout


def _run(tree: Path, names: Sequence[str], repeats: int) -> dict[str, Any]:
    """Run `measurements` with the package of a tree in a new process; returns its results."""
    done = subprocess.run(
        [sys.executable, str(measurements.__file__), json.dumps([names, repeats])],
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise ValueError(f"the measurements of {tree} ended with status {done.returncode}")
    answer = json.loads(done.stdout)
    if tree not in Path(answer["package"]).parents:
        raise ValueError(f"busenv is imported from {answer['package']}, not from {tree}")
    results: dict[str, Any] = answer["results"]
    return results
