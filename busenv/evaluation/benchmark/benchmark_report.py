"""Tables and learning curves of result cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from busenv.common.console import TextTable
from busenv.common.intervals import format_bounds
from busenv.common.plot_style import default_style, save_png
from busenv.common.runs import RunError
from busenv.evaluation.benchmark.aggregates import bootstrap_interval, interquartile_mean
from busenv.evaluation.benchmark.protocol import CURVE_PANEL, PANELS
from busenv.evaluation.benchmark.results import BenchmarkResult, RunResult
from busenv.io import write_whole
from busenv.train.learning_curve import COLOURS

BEGIN, END = "<!-- baselines -->", "<!-- end of baselines -->"


def tables(cards: Iterable[BenchmarkResult]) -> list[TextTable]:
    """Make a table for each protocol, budget and number of players, the best learner first."""
    return [_table(group) for group in _groups(cards)]


def _groups(cards: Iterable[BenchmarkResult]) -> list[list[BenchmarkResult]]:
    """Group cards by protocol, budget and players."""
    return [[*group] for _, group in groupby(sorted(cards, key=_group_key), _group_key)]


def _group_key(card: BenchmarkResult) -> tuple[str, int, int]:
    """Sort key of a table: protocol, budget, players."""
    return card.protocol, card.decisions, card.players


def _table(cards: list[BenchmarkResult]) -> TextTable:
    protocol, panel = cards[0].protocol, [*PANELS[cards[0].protocol]]
    ranked = sorted(cards, key=lambda card: -interquartile_mean(_scores(card, panel).ravel()))
    rows = [
        [
            card.name,
            f"{len(card.runs)}",
            *(format_scores(_scores(card, [bot])) for bot in panel),
            format_scores(_scores(card, panel)),
        ]
        for card in ranked
    ]
    players = cards[0].players
    header = ["learner", "runs", *(f"against\n{players - 1} {bot}" for bot in panel), "panel"]
    title = (
        f"{protocol}, {players} players (par {1 / players:.0%}), {cards[0].decisions:,} decisions"
    )
    return TextTable(title, header, rows)


def _scores(card: BenchmarkResult, bots: Sequence[str]) -> np.ndarray:
    """Shares of games won: float64, (runs, bots)."""
    return np.array([[run.panel[bot].share for bot in bots] for run in card.runs])


def format_scores(scores: np.ndarray) -> str:
    """Format the interquartile mean in percent, with its interval if there are several runs.

    scores: (runs, tasks).
    """
    mean = f"{interquartile_mean(scores.ravel()):.1%}"
    return mean if len(scores) == 1 else f"{mean}\n{format_bounds(*bootstrap_interval(scores))}"


def markdown(cards: Iterable[BenchmarkResult]) -> str:
    """Format the tables as Markdown."""
    texts = [f"{table.title}:\n\n{table.markdown()}" for table in tables(cards)]
    return "\n".join(texts)


@default_style()
def draw_curves(path: Path, cards: Sequence[BenchmarkResult]) -> None:
    """Draw learning curves as a PNG picture; the cards have one budget and number of players.

    A row of axes by decisions, and one by processor time if all cards have it. Lines are
    interquartile means over the runs, bands their intervals. ValueError when no card has a curve.
    """
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import EngFormatter, PercentFormatter

    cards = [card for card in cards if all(run.curve for run in card.runs)]
    if not cards:
        raise ValueError("no card of these players and this budget has a learning curve")
    points = (point for card in cards for run in card.runs for point in run.curve)
    timed = all(point.core_seconds is not None for point in points)
    units = {"decisions": "decisions learned from"}
    units |= {"core_seconds": "core-seconds of training"} if timed else {}
    players = cards[0].players
    figure = Figure(figsize=(8.6, 4.2 * len(units)), layout="constrained")
    rows = figure.subplots(len(units), len(CURVE_PANEL), sharey=True, squeeze=False)
    for (unit, label), columns in zip(units.items(), rows, strict=True):
        for axes, bot in zip(columns, CURVE_PANEL, strict=True):
            for k, card in enumerate(cards):
                spent, curves = _curves(card.runs, bot, unit)
                low, high = zip(*(bootstrap_interval(c[:, None]) for c in curves.T), strict=True)
                colour, style = COLOURS[k % len(COLOURS)], "--" if k >= len(COLOURS) else "-"
                axes.fill_between(spent, low, high, color=colour, alpha=0.15, lw=0)
                middle = interquartile_mean(curves.T)
                axes.plot(spent, middle, f"o{style}", ms=3, color=colour, label=card.name)
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

    unit: "decisions" or "core_seconds". Runs are measured after whole rollouts, so at slightly
    different numbers of decisions.
    """
    spent = [np.array([getattr(point, unit) for point in run.curve], float) for run in runs]
    last, first = min(x[-1] for x in spent), max(x[0] for x in spent)
    grid = np.linspace(min(first, last), last, len(runs[0].curve))
    shares = [
        np.interp(grid, x, [point.results[bot].share for point in run.curve])
        for x, run in zip(spent, runs, strict=True)
    ]
    return grid, np.array(shares)


def put_tables(page: Path, cards: Iterable[BenchmarkResult]) -> None:
    """Write the tables between the two markers of a page; RunError when it has none."""
    before, opened, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not (opened and closed):
        raise RunError(f"{page} has no lines {BEGIN} and {END} around the table")
    write_whole(page, f"{before}{BEGIN}\n{markdown(cards)}{END}{after}")
