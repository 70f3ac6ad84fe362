"""Plots of rating tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from busenv.common.plot_style import default_style, save_png

BLUE, GREY = "#0072b2", "0.45"


@default_style()
def draw_intervals(
    path: Path, table: pd.DataFrame, title: str, note: str, share: bool = False
) -> None:
    """Plot one line per row of a table: value, interval, and par as a vertical stroke.

    table: columns value, low, high and par, in this order; the index names the rows. share: show
    values as percentages.
    """
    from matplotlib.figure import Figure  # pyplot would change the caller's backend
    from matplotlib.ticker import PercentFormatter

    value, low, high, par = (table.iloc[:, k].to_numpy(float) for k in range(4))
    rows = range(len(table))
    figure = Figure(figsize=(7, 1.5 + 0.42 * len(table)), layout="constrained")
    axes = figure.subplots()
    axes.hlines(rows, low, high, color=BLUE, linewidth=2.5, alpha=0.6)
    axes.plot(value, rows, "o", color=BLUE, markersize=7)
    axes.plot(par, rows, "|", color=GREY, markersize=18, markeredgewidth=2, label="par")
    for row in rows:
        label = f"{value[row]:.1%}" if share else f"{value[row]:.1f}"
        axes.annotate(label, (high[row], row), (9, 0), textcoords="offset points", va="center")
    axes.set_yticks(rows, [short_name(str(name)) for name in table.index])
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(f"{note}; bars: 95% intervals", color=GREY)
    axes.margins(x=0.12)
    if share:
        axes.xaxis.set_major_formatter(PercentFormatter(1))
        axes.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1),
            frameon=False,
            markerscale=0.7,
            borderaxespad=0,
        )
    axes.grid(axis="x", alpha=0.3)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    save_png(figure, path)


def short_name(name: str, longest: int = 28) -> str:
    """Shorten a name to its end, which is the distinctive part of a path."""
    return name if len(name) <= longest else f"…{name[1 - longest :]}"
