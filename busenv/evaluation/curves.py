"""Results of several runs: means with intervals, and learning curves.

Intervals are t intervals over the runs. Bootstrap intervals (Agarwal et al. 2021, Deep
Reinforcement Learning at the Edge of the Statistical Precipice) need more runs: for five runs with
normal scores, a 95% percentile interval covers the mean in about 83% of cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from busenv.common.intervals import format_bounds
from busenv.common.plot_style import default_style, save_png
from busenv.common.runs import SETTINGS, RunError
from busenv.io import read_json
from busenv.train.learning_curve import COLOURS, CURVE, read_curve

LINE_STYLES = ("-", "--", "-.", ":")
UNITS = {"decisions": "training decisions", "seconds": "seconds of training"}


@dataclass(frozen=True)
class Curve:
    """Ratings of a run in order: what was spent, by unit, and shares won, by opponent."""

    spent: dict[str, np.ndarray]
    won: dict[str, np.ndarray]


def mean_interval(scores: np.ndarray) -> tuple[float, float]:
    """95% t interval of the mean of the runs' scores, clipped to 0 to 1.

    scores: (runs,), from 0 to 1. Both limits of a single run are its score.
    """
    runs, mean = len(scores), float(scores.mean())
    half = stdtrit(runs - 1, 0.975) * scores.std(ddof=1) / np.sqrt(runs) if runs > 1 else 0.0
    return max(float(mean - half), 0.0), min(float(mean + half), 1.0)


def format_mean(scores: np.ndarray) -> str:
    """Format the mean of the runs' scores in percent, with its interval if there are several.

    scores: (runs,), from 0 to 1.
    """
    mean = f"{scores.mean():.1%}"
    return mean if len(scores) == 1 else f"{mean} {format_bounds(*mean_interval(scores))}"


def read_runs(folders: Sequence[Path]) -> tuple[dict[str, list[Curve]], int]:
    """Read the curves of training runs, and return them by setting, with the number of players.

    Runs that differ in `seed` only are of one setting; its name lists the settings that differ
    between the runs. RunError when a folder has no settings or curve, or the runs differ in their
    number of players.
    """
    runs = []
    for folder in folders:
        settings, points = read_json(folder / SETTINGS, RunError), read_curve(folder / CURVE)
        if not points or not isinstance(settings, dict) or not settings.get("players"):
            raise RunError(f"{folder} has no ratings; allowed: folders of busenv train")
        for name in ("board", "rules"):  # a run has copies of its own files, all of one name
            if (file := folder / str(settings.get(name))).is_file():
                settings[name] = f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()[:8]}"
        spent = {unit: np.array([getattr(p, unit) for p in points], float) for unit in UNITS}
        shared = [bot for bot in points[-1].wins if all(bot in p.wins for p in points)]
        won = {bot: np.array([p.wins[bot] for p in points]) for bot in shared}
        runs.append((settings, Curve(spent, won)))
    players = {4 if 4 in settings["players"] else settings["players"][0] for settings, _ in runs}
    if len(players) > 1:
        raise RunError(f"the runs are rated with {sorted(players)} players; plot one number")
    names = {name for settings, _ in runs for name in settings} - {"seed"}
    differ = [n for n in sorted(names) if len({repr(settings.get(n)) for settings, _ in runs}) > 1]
    groups: dict[str, list[Curve]] = {}
    for settings, curve in runs:
        name = ", ".join(f"{n}={_shown(settings.get(n))}" for n in differ) or "runs"
        groups.setdefault(name, []).append(curve)
    return groups, players.pop()


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@default_style()
def draw_curves(
    path: Path, groups: dict[str, list[Curve]], players: int, units: dict[str, str] = UNITS
) -> None:
    """Draw curves as a PNG picture: means over the runs of each group, bands their intervals.

    There is a row of axes for each unit, and a column for each opponent that all runs share.
    RunError when they share none.
    """
    from matplotlib.figure import Figure  # not pyplot, whose backend is the caller's
    from matplotlib.ticker import EngFormatter, PercentFormatter

    first, *others = [curve for curves in groups.values() for curve in curves]
    bots = [bot for bot in first.won if all(bot in curve.won for curve in others)]
    if not bots:
        raise RunError("the runs were not rated against a common opponent")
    figure = Figure(figsize=(4.3 * max(len(bots), 2), 4.2 * len(units)), layout="constrained")
    rows = figure.subplots(len(units), len(bots), sharey=True, squeeze=False)
    for (unit, label), columns in zip(units.items(), rows, strict=True):
        for axes, bot in zip(columns, bots, strict=True):
            for k, (name, curves) in enumerate(groups.items()):
                spent, won = _on_one_grid(curves, bot, unit)
                low, high = zip(*map(mean_interval, won.T), strict=True)
                colour = COLOURS[k % len(COLOURS)]
                style = LINE_STYLES[k // len(COLOURS) % len(LINE_STYLES)]
                axes.fill_between(spent, low, high, color=colour, alpha=0.15, lw=0)
                axes.plot(spent, won.mean(axis=0), f"o{style}", ms=3, color=colour, label=name)
            axes.axhline(1 / players, color="0.3", linestyle=":", label=f"par, {1 / players:.0%}")
            axes.set_title(f"against {players - 1} copies of {bot}", loc="left", fontsize="medium")
            axes.set(xlabel=label, xlim=(0, None), ylim=(0, None))
            axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            axes.yaxis.set_major_formatter(PercentFormatter(1))
            axes.grid(alpha=0.3)
        columns[0].set_ylabel("games won")
    handles, labels = rows[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1, frameon=False)
    save_png(figure, path)


def _on_one_grid(curves: Sequence[Curve], bot: str, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate the curves: what was spent, (points,), and shares won, (runs, points).

    Runs are rated after whole rollouts, so at slightly different numbers of decisions.
    """
    spent = [curve.spent[unit] for curve in curves]
    last, first = min(x[-1] for x in spent), max(x[0] for x in spent)
    grid = np.linspace(min(first, last), last, max(map(len, spent)))
    return grid, np.array(
        [np.interp(grid, x, curve.won[bot]) for x, curve in zip(spent, curves, strict=True)]
    )
