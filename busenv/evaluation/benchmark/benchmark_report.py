"""Tables and learning curves of benchmark results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from busenv.common.console import TextTable
from busenv.common.runs import RunError
from busenv.evaluation.benchmark.protocol import BUDGETS, CHALLENGE, CURVE_PANEL, NAME, RUNS
from busenv.evaluation.benchmark.results import BenchmarkResult, RunResult
from busenv.evaluation.curves import Curve, draw_curves, format_mean
from busenv.io import write_whole

SHOWN = ("planner", "uct:100")  # opponents with a column; results have all


def tables(results: Iterable[BenchmarkResult]) -> list[TextTable]:
    """Make a table for each budget and number of players, the best learner first.

    ValueError when results of one table were measured against different opponents.
    """

    def setting(result: BenchmarkResult) -> tuple[int, int]:
        return result.decisions, result.players

    return [_table([*group]) for _, group in groupby(sorted(results, key=setting), setting)]


def _table(results: list[BenchmarkResult]) -> TextTable:
    first = results[0]
    columns = {bot: [bot] for bot in SHOWN} | {"panel": [*first.runs[0].panel]}
    title = (
        f"{first.players} players (par {1 / first.players:.0%}), {first.decisions:,} training "
        f"decisions, protocol {NAME}"
    )
    more = {"points": _points, "exploiters": _exploiters}
    return _ranked(title, {one.name: one for one in results}, columns, more)


def challenge_tables(results: Iterable[BenchmarkResult]) -> list[TextTable]:
    """Make the tables of the challenge, one for each class of budgets.

    ValueError as for `tables`.
    """
    classes, entries = [], [one for one in results if one.players == 4]
    for lowest, limit in pairwise((-1, *BUDGETS)):
        if rows := [one for one in entries if lowest < one.decisions <= limit]:
            classes.append(_challenge_table(rows, limit))
    return classes


def _challenge_table(results: list[BenchmarkResult], limit: int) -> TextTable:
    columns = {bot: [bot] for bot in CHALLENGE} | {"score": [*CHALLENGE]}
    title = f"Challenge: up to {limit:,} training decisions (par 25%), protocol {NAME}"
    named = {f"{one.name}, {one.decisions:,}": one for one in results}
    return _ranked(title, named, columns, {"exploiters": _exploiters})


def _ranked(
    title: str,
    results: dict[str, BenchmarkResult],
    columns: dict[str, list[str]],
    more: Mapping[str, Callable[[BenchmarkResult], str]],
) -> TextTable:
    """Make a table of results by name, the best in the last of the columns first.

    columns: opponents over whose shares a column averages. more: further columns.
    """
    first, *_ = results.values()
    *_, ranked_by = columns.values()
    rows = []
    for name, one in sorted(results.items(), key=lambda r: -shares(r[1].runs, ranked_by).mean()):
        _check_opponents(first, one)
        cells = [_cell(shares(one.runs, bots)) for bots in columns.values()]
        rows.append([name + _too_few(one), *cells, *(cell(one) for cell in more.values())])
    return TextTable(title, ["learner", *columns, *more], rows)


def _check_opponents(one: BenchmarkResult, other: BenchmarkResult) -> None:
    """Raise ValueError unless the opponents of two results have equal digests."""
    changed = [bot for bot in one.opponents if one.opponents[bot] != other.opponents[bot]]
    if changed:
        raise ValueError(
            f"the results of {one.name} and {other.name} cannot be compared: {', '.join(changed)} "
            "played otherwise in one of them; measure both again with one version of busenv"
        )


def _too_few(result: BenchmarkResult) -> str:
    """Mark a result with fewer runs than the protocol requires."""
    return f" ({len(result.runs)} runs)" if len(result.runs) < RUNS else ""


def _points(result: BenchmarkResult) -> str:
    points = [count.points for run in result.runs for count in run.panel.values()]
    return f"{np.mean([value for value in points if value is not None]):.2f}"


def _exploiters(result: BenchmarkResult) -> str:
    won = [run.exploiter.share for run in result.runs if run.exploiter]
    return _cell(np.array(won)) if len(won) == len(result.runs) else "—"


def shares(runs: Sequence[RunResult], bots: Iterable[str]) -> np.ndarray:
    """Share of games that each run wins, as the mean over bots: float64, (runs,)."""
    names = [*bots]
    return np.array([np.mean([run.panel[bot].share for bot in names]) for run in runs])


def _cell(scores: np.ndarray) -> str:
    return format_mean(scores).replace(" ", "\n", 1)


def draw_results(path: Path, results: Sequence[BenchmarkResult]) -> None:
    """Draw learning curves as a PNG picture; the results have one budget and number of players.

    Curves are by training decisions: core-seconds of different machines cannot be compared.
    ValueError when no result has a curve.
    """
    results = [one for one in results if all(run.curve for run in one.runs)]
    if not results:
        raise ValueError("no result of these players and this budget has a learning curve")
    groups = {one.name: [_curve(run) for run in one.runs] for one in results}
    draw_curves(path, groups, results[0].players, {"decisions": "training decisions"})


def _curve(run: RunResult) -> Curve:
    spent = {"decisions": np.array([point.decisions for point in run.curve], float)}
    won = {bot: np.array([point.results[bot].share for point in run.curve]) for bot in CURVE_PANEL}
    return Curve(spent, won)


def put_tables(page: Path, results: Sequence[BenchmarkResult]) -> None:
    """Write tables between the markers of a page, of baselines or the challenge or both.

    RunError when it has none.
    """
    text = page.read_text(encoding="utf-8")
    marks = {name: (f"<!-- {name} -->", f"<!-- end of {name} -->") for name in MAKERS}
    marked = [name for name in MAKERS if all(mark in text for mark in marks[name])]
    if not marked:
        raise RunError(f"{page} has no lines {marks['baselines'][0]} and {marks['baselines'][1]}")
    for name in marked:
        begin, end = marks[name]
        before, rest = text.split(begin, 1)
        shown = "\n".join(
            f"{table.title}:\n\n{table.markdown()}" for table in MAKERS[name](results)
        )
        text = f"{before}{begin}\n{shown}{end}{rest.split(end, 1)[1]}"
    write_whole(page, text)


MAKERS = {"baselines": tables, "challenge": challenge_tables}  # of tables, by the mark of a page
