"""The learning curve of a run: in numbers, as CSV, and as a picture."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from busenv.agents.schema import read_limited
from busenv.error_text import truncate
from busenv.experiments.common.intervals import wilson
from busenv.experiments.common.plot_style import default_style
from busenv.io import write_whole

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#5e3c99")
HEAD = ("seconds", "decisions", "games")
LARGEST = 10_000_000  # bytes of a curve


@dataclass(frozen=True)
class CurvePoint:
    """How good the agent was after some training.

    games: played against each opponent. wins: share of them that were won, by opponent, which held
    all other seats.
    """

    seconds: float
    decisions: int
    games: int
    wins: dict[str, float]


def write_curve(path: Path, curve: list[CurvePoint]) -> None:
    """Write a curve as CSV; a cell is empty where an opponent was not played."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = _opponents(curve)
    writer.writerow([*HEAD, *names])
    for p in curve:
        shares = [f"{p.wins[name]:.4f}" if name in p.wins else "" for name in names]
        writer.writerow([f"{p.seconds:.1f}", p.decisions, p.games, *shares])
    write_whole(path, out.getvalue(), follow_links=False)


def read_curve(path: Path) -> list[CurvePoint]:
    """The curve of `write_curve`; empty when there is no file.

    ValueError names the line that is wrong.
    """
    if not path.exists():
        return []
    data = read_limited(path, LARGEST)
    try:
        rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path} is no learning curve: {error}") from error
    head = rows[0] if rows else []
    names = head[len(HEAD) :]
    sound = len({*names}) == len(names) and all(map(str.isprintable, names))
    if (*head[: len(HEAD)],) != HEAD or not sound:
        raise ValueError(f"{path} is no learning curve: its first line is {_cut(head)}")
    curve: list[CurvePoint] = []
    for number, row in enumerate(rows[1:], 2):
        point = _point(row, names)
        if point is None or (curve and point.decisions <= curve[-1].decisions):
            raise ValueError(f"{path}, line {number}: {_cut(row)} is no point of the curve")
        curve.append(point)
    return curve


def _point(row: list[str], names: list[str]) -> CurvePoint | None:
    """A point of a curve from its line; None when it is none."""
    try:
        shares = zip(names, row[len(HEAD) :], strict=True)
        wins = {name: float(text) for name, text in shares if text}
        point = CurvePoint(float(row[0]), int(row[1]), int(row[2]), wins)
    except (ValueError, IndexError):
        return None
    numbers = (point.seconds, point.decisions, point.games - 1, *wins.values())
    sound = all(0 <= number < math.inf for number in numbers)
    return point if sound and all(share <= 1 for share in wins.values()) else None


def _cut(row: list[str]) -> str:
    """A line for an error."""
    return repr(truncate(",".join(row), 80))


@default_style()
def draw_curve(
    path: Path,
    curve: list[CurvePoint],
    title: str,
    players: int = 4,
    imitated: int = 0,
    after: str = "PPO",
) -> None:
    """The learning curve as a picture (PNG), with 95% intervals (Wilson 1927).

    players: in a game of the rating. imitated: how many decisions were learned from by imitation;
    after: what came then.
    """
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    for k, name in enumerate(_opponents(curve)):
        colour, points = COLOURS[k % len(COLOURS)], [p for p in curve if name in p.wins]
        decisions = [p.decisions / 1000 for p in points]
        low, high = zip(*(wilson(p.wins[name] * p.games, p.games) for p in points), strict=True)
        axes.fill_between(decisions, low, high, color=colour, alpha=0.15, lw=0)
        wins = [p.wins[name] for p in points]
        label = f"against {players - 1} {name}"
        axes.plot(decisions, wins, "o-", ms=3.5, color=colour, label=label, clip_on=False, zorder=3)
    axes.axhline(1 / players, color="0.3", linestyle=":", label=f"par, {1 / players:.0%}")
    end = max(curve[-1].decisions, imitated, 1) / 1000
    _mark_phases(axes, imitated / 1000, end, after)
    axes.set(xlim=(0, end), ylim=(0, 1), xlabel="thousand decisions learned from")
    axes.set_ylabel(f"games won of {curve[-1].games}, 95% intervals")
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold", pad=18)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    write_whole(path, buffer.getvalue(), follow_links=False)


def _mark_phases(axes, imitated: float, end: float, after: str) -> None:  # type: ignore[no-untyped-def]
    """Name the two phases above the axes, and shade that of imitation."""
    above = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
    if imitated:
        axes.axvspan(0, imitated, color="0.93", zorder=0)
        axes.text(imitated / 2, 1.01, "imitation", **above)
    if imitated < end:
        axes.axvline(imitated, color="0.5", lw=1)
        axes.text((imitated + end) / 2, 1.01, after, **above)


def _opponents(curve: list[CurvePoint]) -> list[str]:
    """All that the agent was rated against, in the order of their first rating."""
    return list(dict.fromkeys(name for p in curve for name in p.wins))
