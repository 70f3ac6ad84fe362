"""The report of a rating: tables for the terminal, and files in the run folder."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from busenv.common import intervals
from busenv.common.console import TextTable
from busenv.common.jsonl import read_lines
from busenv.common.plot_style import default_style, save_png
from busenv.error_text import truncate
from busenv.evaluation.schedule import Schedule, source_name
from busenv.evaluation.tables import (
    anchor_of,
    pair_table,
    repetition_warning,
    result_table,
    seat_rows,
    seat_table,
)
from busenv.io import write_whole

MAX_REASONS = 10  # of forfeits
REPLIES = "replies"  # folder of language models' answers in a run folder, with a file for each game
TOKENS = ["agent", "requests", "retries", "input tokens", "output tokens"]
BLUE, GREY = "#0072b2", "0.45"
LONGEST_NAME = 28  # characters in plots
TURNS = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True)
class Report:
    """The report of a rating.

    results: see `tables.result_table`. tables: to print. warning: reason to distrust the intervals,
    "" for none.
    """

    results: pd.DataFrame
    tables: list[TextTable]
    warning: str


def write_report(
    games: list[dict[str, Any]], schedule: Schedule, folder: Path, workers: int | None = 1
) -> Report:
    """Write the tables, the plots and report.md of a rating into its folder."""
    rows = seat_rows(games)
    results = result_table(rows, schedule, workers)
    pairs, seats = pair_table(rows), seat_table(rows)
    turns = seats.xs("all").xs("turn").set_axis(TURNS[: schedule.players])
    tables = [
        _results(results, schedule),
        _ratings(results, schedule),
        _pairs(pairs, schedule),
        _turns(turns, schedule),
    ]
    tables += [*forfeit_tables(games), *language_tables(folder)]
    for name, table in (("results", results), ("pairs", pairs), ("seats", seats)):
        text = table.round(6).to_csv(lineterminator="\n")
        write_whole(folder / f"{name}.csv", text)
    _draw(folder, results, turns, schedule)
    warning = repetition_warning(games)
    write_whole(folder / "report.md", _markdown(tables, schedule, warning))
    return Report(results, tables, warning)


def percent(share: float) -> str:
    return f"{share:.1%}"


def interval(row: pd.Series, prefix: str = "") -> str:
    """Format the interval of a share, in percent; prefix: of its columns `low` and `high`."""
    return intervals.format_bounds(row[f"{prefix}low"], row[f"{prefix}high"])


def rating_interval(row: pd.Series) -> str:
    return f"[{row['rating_low']:.0f}, {row['rating_high']:.0f}]"


Columns = list[tuple[str, Callable[[pd.Series], str]]]  # header, and cell of a row


def _table(title: str, index: str, table: pd.DataFrame, columns: Columns) -> TextTable:
    """Make a table of the formatted columns, with the index in the first one."""
    headers, cells = zip(*columns, strict=True)
    rows = [[str(name), *(cell(row) for cell in cells)] for name, row in table.iterrows()]
    return TextTable(title, [index, *headers], rows)


def _results(results: pd.DataFrame, schedule: Schedule) -> TextTable:
    columns: Columns = [
        ("games", lambda row: f"{row['games']:.0f}"),
        ("won", lambda row: percent(row["won"])),
        ("95% interval", interval),
        ("par", lambda row: percent(row["par"])),
        ("rank", lambda row: f"{row['rank']:.2f}"),
        ("points", lambda row: f"{row['points']:.2f}"),
    ]
    return _table(_title(schedule), "agent", results, columns)


def _ratings(results: pd.DataFrame, schedule: Schedule) -> TextTable:
    columns: Columns = [
        ("rating", lambda row: f"{row['rating']:.0f}"),
        ("95% interval", rating_interval),
        ("deviation", lambda row: percent(row["deviation"])),
        ("95% interval", lambda row: interval(row, "deviation_")),
        ("ms/decision", lambda row: f"{row['ms']:.3g}"),
        ("forfeits", lambda row: f"{row['forfeits']:.0f}"),
    ]
    return _table(f"ratings; {anchor_of(schedule)} is 0", "agent", results, columns)


def _pairs(pairs: pd.DataFrame, schedule: Schedule) -> TextTable:
    def cell(agent: str, other: str) -> str:
        return percent(pairs.loc[(agent, other), "ahead"]) if (agent, other) in pairs.index else ""

    rows = [
        [agent, *(cell(agent, other) for other in schedule.labels)] for agent in schedule.labels
    ]
    return TextTable(
        "how often an agent is ranked ahead of another", ["ahead of", *schedule.labels], rows
    )


def _turns(turns: pd.DataFrame, schedule: Schedule) -> TextTable:
    columns: Columns = [
        ("won", lambda row: percent(row["won"])),
        ("95% interval", interval),
        ("points", lambda row: f"{row['points']:.2f}"),
    ]
    title = f"all agents by turn in the first round; par {1 / schedule.players:.1%}"
    return _table(title, "turn", turns, columns)


def forfeit_tables(games: list[dict[str, Any]]) -> list[TextTable]:
    """Make the table of the reasons of forfeits, if there are any."""
    reasons = Counter(
        (game["agents"][game["forfeit"]["seat"]], truncate(game["forfeit"]["why"]))
        for game in games
        if game["forfeit"]
    )
    rows = [[agent, why, str(count)] for (agent, why), count in reasons.most_common(MAX_REASONS)]
    return [TextTable("forfeits", ["agent", "reason", "games"], rows, names=2)] if rows else []


def language_tables(folder: Path) -> list[TextTable]:
    """Return the table of the language models of a rating, if it has one.

    Counts all logged answers, of unfinished games too. retries: requests after an invalid answer.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for file in sorted((folder / REPLIES).glob("*.jsonl")):
        rows: Iterable[dict[str, Any]] = read_lines(file)
        for row in rows:
            numbers = {"retries": row["attempt"] > 0, "input tokens": row["input_tokens"]}
            numbers |= {"requests": 1, "output tokens": row["output_tokens"]}
            counts[row["agent"]].update(numbers)
    table = [
        [name, *(f"{count[column]:,}" for column in TOKENS[1:])] for name, count in counts.items()
    ]
    return [TextTable("requests to language models", TOKENS, table)] if table else []


def _title(schedule: Schedule) -> str:
    count = schedule.num_boards
    boards = "board" if count == 1 else f"{count:,} boards of"
    name = source_name(schedule.board)
    board = "" if name == "city" else f", {boards} {name}"
    games = f"{schedule.total:,} games, {schedule.players} players"
    return f"{games}, {source_name(schedule.rules)}{board}, seed {schedule.seed}"


def _draw(folder: Path, results: pd.DataFrame, turns: pd.DataFrame, schedule: Schedule) -> None:
    ratings = results[["rating", "rating_low", "rating_high"]].assign(par=0.0)
    wins = results[["won", "low", "high", "par"]]
    by_turn = turns[["won", "low", "high"]].assign(par=1 / schedule.players)
    for name, table, title in (
        ("wins", wins, "Games won"),
        ("ratings", ratings, f"Rating ({short_name(anchor_of(schedule))} = 0)"),
        ("seats", by_turn, "Games won by turn in the first round, all agents"),
    ):
        share = name != "ratings"
        draw_intervals(folder / f"{name}.png", table, title, _title(schedule), share)


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


def short_name(name: str) -> str:
    """Shorten a name to its end, which is the distinctive part of a path."""
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"


def _markdown(tables: list[TextTable], schedule: Schedule, warning: str) -> str:
    parts = [
        "# A rating",
        f"{_title(schedule)}. Agents: {', '.join(schedule.labels)}. {schedule.balance}",
        "Won: games won by any of the agent's seats, with the 95% Wilson interval; par is the "
        "share of seats that were its own. Rank and points: means over its seats. Rating: "
        "Plackett-Luce, by maximum likelihood, with 95% bootstrap intervals "
        f"({intervals.RESAMPLES} resamples of the games); 400 points mean odds of 10 to 1 of being "
        "ranked ahead. Deviation: share of games ranked ahead of the maximal lottery "
        "(the mixture of the agents that none of them beats) minus the share behind it; 0 for "
        "agents of the mixture. An agent that fails or takes an illegal action forfeits and is "
        "ranked last.",
    ]
    if warning:
        parts.append(f"**{warning}**")
    for table in tables:
        parts += [f"## {table.title[0].upper()}{table.title[1:]}", table.markdown().rstrip()]
    parts.append("![games won](wins.png) ![ratings](ratings.png) ![turn order](seats.png)")
    parts.append("Data: `results.csv`, `pairs.csv`, `seats.csv`. Games: `games.jsonl`.")
    return "\n\n".join(parts) + "\n"
