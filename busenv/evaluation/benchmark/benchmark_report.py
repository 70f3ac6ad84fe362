"""Tables and learning curves of benchmark results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from busenv.common.console import TextTable
from busenv.common.plot_style import default_style, save_png
from busenv.common.runs import RunError
from busenv.evaluation.benchmark.aggregates import bootstrap_interval, format_mean
from busenv.evaluation.benchmark.protocol import CURVE_PANEL
from busenv.evaluation.benchmark.results import BenchmarkResult, RunResult
from busenv.io import write_whole
from busenv.train.learning_curve import COLOURS

BEGIN, END = "<!-- baselines -->", "<!-- end of baselines -->"
SHOWN = ("greedy", "planner", "uct:100", "net:city-2")  # opponents with a column; results have all
UNITS = {"decisions": "training decisions", "core_seconds": "core-seconds of training"}


def tables(results: Iterable[BenchmarkResult]) -> list[TextTable]:
    """Make a table for each budget and number of players, the best learner first."""

    def setting(result: BenchmarkResult) -> tuple[int, int]:
        return result.decisions, result.players

    return [_table([*group]) for _, group in groupby(sorted(results, key=setting), setting)]


def _table(results: list[BenchmarkResult]) -> TextTable:
    players, decisions = results[0].players, results[0].decisions
    rows = []
    for one in sorted(results, key=lambda one: -shares(one.runs, one.runs[0].panel).mean()):
        cells = [_cell(shares(one.runs, [bot])) for bot in SHOWN]
        rows.append([one.name, *cells, _cell(shares(one.runs, one.runs[0].panel))])
    title = f"{players} players (par {1 / players:.0%}), {decisions:,} training decisions"
    return TextTable(title, ["learner", *SHOWN, "panel"], rows)


def shares(runs: Sequence[RunResult], bots: Iterable[str]) -> np.ndarray:
    """Share of games that each run wins, as the mean over bots: float64, (runs,)."""
    names = [*bots]
    return np.array([np.mean([run.panel[bot].share for bot in names]) for run in runs])


def _cell(scores: np.ndarray) -> str:
    return format_mean(scores).replace(" ", "\n", 1)


@default_style()
def draw_curves(path: Path, results: Sequence[BenchmarkResult]) -> None:
    """Draw learning curves as a PNG picture; the results have one budget and number of players.

    One row of axes by decisions, and one by processor time. Lines are means over the runs, bands
    their intervals. ValueError when no result has a curve.
    """
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import EngFormatter, PercentFormatter

    results = [one for one in results if all(run.curve for run in one.runs)]
    if not results:
        raise ValueError("no result of these players and this budget has a learning curve")
    players = results[0].players
    figure = Figure(figsize=(8.6, 4.2 * len(UNITS)), layout="constrained")
    rows = figure.subplots(len(UNITS), len(CURVE_PANEL), sharey=True)
    for (unit, label), columns in zip(UNITS.items(), rows, strict=True):
        for axes, bot in zip(columns, CURVE_PANEL, strict=True):
            for k, one in enumerate(results):
                spent, curves = _curves(one.runs, bot, unit)
                low, high = zip(*map(bootstrap_interval, curves.T), strict=True)
                colour = COLOURS[k % len(COLOURS)]
                axes.fill_between(spent, low, high, color=colour, alpha=0.15, lw=0)
                axes.plot(spent, curves.mean(axis=0), "o-", ms=3, color=colour, label=one.name)
            axes.axhline(1 / players, color="0.3", linestyle=":", label=f"par, {1 / players:.0%}")
            axes.set_title(f"against {players - 1} {bot}", loc="left", fontsize="medium")
            axes.set(xlabel=label, xlim=(0, None), ylim=(0, None))
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            axes.yaxis.set_major_formatter(PercentFormatter(1))
            axes.grid(alpha=0.3)
        columns[0].set_ylabel("games won")
    handles, labels = rows[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    save_png(figure, path)


def _curves(runs: Sequence[RunResult], bot: str, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate the runs' curves: what was spent, (points,), and shares won, (runs, points).

    unit: of UNITS. Runs are measured after whole rollouts, so at slightly different numbers of
    decisions.
    """
    spent = [np.array([getattr(point, unit) for point in run.curve], float) for run in runs]
    last, first = min(x[-1] for x in spent), max(x[0] for x in spent)
    grid = np.linspace(min(first, last), last, len(runs[0].curve))
    curves = [
        np.interp(grid, x, [point.results[bot].share for point in run.curve])
        for x, run in zip(spent, runs, strict=True)
    ]
    return grid, np.array(curves)


def put_tables(page: Path, results: Iterable[BenchmarkResult]) -> None:
    """Write the tables between the two markers of a page; RunError when it has none."""
    before, opened, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (opened and closed):
        raise RunError(f"{page} has no lines {BEGIN} and {END} around the table")
    text = "\n".join(f"{table.title}:\n\n{table.markdown()}" for table in tables(results))
    write_whole(page, f"{before}{BEGIN}\n{text}{END}{after}")
