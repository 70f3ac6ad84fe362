"""The learning curve of a run: in numbers, as CSV, and as a picture."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from busenv.files import write_whole

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


@dataclass(frozen=True)
class CurvePoint:
    """How good the agent was after some training: share of wins against three of each bot."""

    seconds: float
    decisions: int
    wins: dict[str, float]


def write_curve(path: Path, curve: list[CurvePoint]) -> None:
    """Write a curve of one point or more as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["seconds", "decisions", *curve[0].wins])
    for p in curve:
        shares = [f"{value:.4f}" for value in p.wins.values()]
        writer.writerow([f"{p.seconds:.1f}", p.decisions, *shares])
    write_whole(path, out.getvalue())


def read_curve(path: Path) -> list[CurvePoint]:
    """The curve of `write_curve`; empty when there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return [
        CurvePoint(
            float(row[0]), int(row[1]), dict(zip(head[2:], map(float, row[2:]), strict=True))
        )
        for row in rows
    ]


def draw_curve(path: Path, curve: list[CurvePoint], title: str, note: str) -> None:
    """The learning curve as a picture (PNG)."""
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    decisions = [p.decisions / 1000 for p in curve]
    for k, name in enumerate(curve[0].wins):
        wins = [p.wins[name] for p in curve]
        axes.plot(decisions, wins, "o-", ms=4, color=COLOURS[k % 5], label=f"against 3 {name}")
    axes.axhline(0.25, color="0.5", linestyle=":", label="par")
    axes.set(
        title=title, xlabel="thousand decisions learned from", ylabel=f"games won {note}",
        ylim=(0, 1),
    )  # fmt: skip
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=len(curve[0].wins) + 1, fontsize="small")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    write_whole(path, buffer.getvalue())
