"""Speeds of this version on this machine, as `busenv bench` prints them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.console import Console

from busenv.common.console import TextTable
from busenv.profiling.speed_worker import MEASUREMENTS, measure_speeds


def show_speeds(console: Console, repeats: int, names: Sequence[str]) -> None:
    """Run measurements (`speed_worker.MEASUREMENTS`) and print their speeds.

    Measurements that need a package that is not installed are left out.
    """
    workloads = {}
    for name in names:
        try:
            workloads[name] = MEASUREMENTS[name][1](1.0)
        except ModuleNotFoundError as error:
            console.print(f"{name} is left out: {error}", markup=False)
    rows = []
    for name, speeds in zip(workloads, measure_speeds([*workloads.values()], repeats), strict=True):
        numbers = statistics.median(speeds), min(speeds), max(speeds)
        rows.append([name, MEASUREMENTS[name][0], *(f"{number:,.0f}" for number in numbers)])
    title = f"Units of work per second, 4 players, one thread by default; {repeats} runs"
    header = ["name", "measurement", "median", "slowest", "fastest"]
    TextTable(title, header, rows, names=2).show(console)
