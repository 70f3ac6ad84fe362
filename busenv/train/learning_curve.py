"""Learning curve of a run: CSV file and picture."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from busenv.common.intervals import wilson
from busenv.common.plot_style import default_style, save_png
from busenv.error_text import truncate
from busenv.io import read_bounded, write_whole

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

    ValueError names the first invalid line.
    """
    if not path.exists():
        return []
    data = read_bounded(path, limit=MAX_BYTES)
    try:
        rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path} is not a learning curve: {error}") from error
    head = rows[0] if rows else []
    names = head[len(HEAD) :]
    is_valid = len({*names}) == len(names) and all(map(str.isprintable, names))
    if (*head[: len(HEAD)],) != HEAD or not is_valid:
        raise ValueError(f"{path} is not a learning curve: its first line is {_quote(head)}")
    curve: list[CurvePoint] = []
    for number, row in enumerate(rows[1:], 2):
        point = _point(row, names)
        if point is None or (curve and point.decisions <= curve[-1].decisions):
            raise ValueError(f"{path}, line {number}: {_quote(row)} is not a point of the curve")
        curve.append(point)
    return curve


def _point(row: list[str], names: list[str]) -> CurvePoint | None:
    """Parse a line; None when it is invalid."""
    try:
        shares = zip(names, row[len(HEAD) :], strict=True)
        wins = {name: float(text) for name, text in shares if text}
        point = CurvePoint(float(row[0]), int(row[1]), int(row[2]), wins)
    except (ValueError, IndexError):
        return None
    numbers = (point.seconds, point.decisions, point.games - 1, *wins.values())
    is_valid = all(0 <= number < math.inf for number in numbers)
    return point if is_valid and all(share <= 1 for share in wins.values()) else None


def _quote(row: list[str]) -> str:
    return repr(truncate(",".join(row), 80))


@default_style()
def draw_curve(
    path: Path,
    curve: list[CurvePoint],
    title: str,
    *,
    players: int = 4,
    imitated: int = 0,
    main_phase: str = "PPO",
) -> None:
    """Draw the learning curve as a PNG picture, with 95% intervals (Wilson 1927).

    players: per game of the ratings. imitated: number of imitated decisions, which precede the
    phase `main_phase`; the picture names the phases unless it is 0.
    """
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import PercentFormatter

    end = max(curve[-1].decisions, imitated, 1)
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
    if imitated:
        _mark_phases(axes, imitated / scale, end / scale, main_phase)
    axes.set(xlim=(0, end / scale), ylim=(0, 1), xlabel=f"{unit} decisions learned from")
    axes.set_ylabel(f"games won of {curve[-1].games}, 95% intervals")
    axes.set_title(
        title, loc="left", fontsize="medium", fontweight="bold", pad=18 if imitated else None
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    save_png(figure, path)


def _mark_phases(axes, imitated: float, end: float, main_phase: str) -> None:  # type: ignore[no-untyped-def]
    """Write the names of both phases above the axes, and shade the imitation phase."""
    above = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
    axes.axvspan(0, imitated, color="0.93", zorder=0)
    axes.text(imitated / 2, 1.01, "imitation", **above)
    if imitated < end:
        axes.axvline(imitated, color="0.5", lw=1)
        axes.text((imitated + end) / 2, 1.01, main_phase, **above)


def _opponents(curve: list[CurvePoint]) -> list[str]:
    """Opponents of all ratings, in the order of their first one."""
    return list(dict.fromkeys(name for p in curve for name in p.wins))
