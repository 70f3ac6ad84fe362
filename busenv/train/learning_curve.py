"""Learning curve of a run: CSV file and picture."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from busenv.common.intervals import wilson
from busenv.common.plot_style import default_style, save_png
from busenv.error_text import printable, truncate
from busenv.io import read_bounded, write_whole
from busenv.schema import LONGEST_SENTENCE

CURVE = "curve.csv"  # file in a run folder
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#5e3c99")
HEAD = ("seconds", "decisions", "games")
MAX_BYTES = 10_000_000  # of a curve file


@dataclass(frozen=True)
class CurvePoint:
    """A rating during training.

    games: against each opponent, whose copies hold all other seats. wins: share of games won, by
    opponent.
    """

    seconds: float
    decisions: int
    games: int
    wins: dict[str, float]


def write_curve(path: Path, curve: list[CurvePoint]) -> None:
    """Write a curve as CSV; the cell of an opponent that was not played is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = _opponents(curve)
    writer.writerow([*HEAD, *names])
    for p in curve:
        shares = [f"{p.wins[name]:.4f}" if name in p.wins else "" for name in names]
        writer.writerow([f"{p.seconds:.1f}", p.decisions, p.games, *shares])
    write_whole(path, out.getvalue())


def read_curve(path: Path) -> list[CurvePoint]:
    """Read the curve of `write_curve`; empty when there is no file.

    ValueError when the file is damaged.
    """
    if not path.exists():
        return []
    data = read_bounded(path, limit=MAX_BYTES)
    try:
        head, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
        return [_point(dict(zip(head, row, strict=True))) for row in rows]
    except (csv.Error, KeyError, ValueError) as error:
        message = printable(f"{path} is not a learning curve: {error}")
        raise ValueError(truncate(message, LONGEST_SENTENCE)) from error


def _point(texts: dict[str, str]) -> CurvePoint:
    """Parse a line; KeyError or ValueError when it is invalid."""
    seconds, decisions, games = (texts.pop(name) for name in HEAD)
    wins = {name: float(text) for name, text in texts.items() if text}
    return CurvePoint(float(seconds), int(decisions), int(games), wins)


@default_style()
def draw_curve(path: Path, curve: list[CurvePoint], title: str, *, players: int = 4) -> None:
    """Draw the learning curve as a PNG picture, with 95% intervals (Wilson 1927).

    players: per game of the ratings.
    """
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import PercentFormatter

    end = max(curve[-1].decisions, 1)
    scale, unit = (1e6, "million") if end >= 2e6 else (1e3, "thousand")
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    for k, name in enumerate(_opponents(curve)):
        colour, points = COLOURS[k % len(COLOURS)], [p for p in curve if name in p.wins]
        decisions = [p.decisions / scale for p in points]
        low, high = zip(*(wilson(p.wins[name] * p.games, p.games) for p in points), strict=True)
        axes.fill_between(decisions, low, high, color=colour, alpha=0.15, lw=0)
        wins = [p.wins[name] for p in points]
        label = f"against {players - 1} {name}"
        axes.plot(decisions, wins, "o-", ms=3.5, color=colour, label=label, clip_on=False, zorder=3)
    axes.axhline(1 / players, color="0.3", linestyle=":", label=f"par, {1 / players:.0%}")
    axes.set(xlim=(0, end / scale), ylim=(0, 1), xlabel=f"{unit} training decisions")
    axes.set_ylabel(f"games won of {curve[-1].games}, 95% intervals")
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    save_png(figure, path)


def _opponents(curve: list[CurvePoint]) -> list[str]:
    """Opponents of all ratings, in the order of their first one."""
    return list(dict.fromkeys(name for p in curve for name in p.wins))
