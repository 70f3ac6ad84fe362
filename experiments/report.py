"""A rating as tables in the terminal, and as files in its run folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from busenv.files import write_whole
from experiments.pictures import draw_intervals
from experiments.schedule import Plan
from experiments.tables import anchor_of, pair_table, result_table, seat_rows, seat_table

ORDERS = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True)
class Sheet:
    """A table of words, ready to print. The first column is set left, all others right."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def show(self, console: Console) -> None:
        table = Table(title=self.title)
        for column, name in enumerate(self.header):
            table.add_column(name, justify="right" if column else "left", no_wrap=not column)
        for row in self.rows:
            table.add_row(*row)
        console.print(table)

    def markdown(self) -> str:
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write_report(
    games: list[dict[str, Any]], plan: Plan, folder: Path, console: Console, workers: int = 1
) -> pd.DataFrame:
    """Print a rating and write its tables, pictures and report.md; returns the table of results."""
    rows = seat_rows(games)
    results, pairs, seats = result_table(rows, plan, workers), pair_table(rows), seat_table(rows)
    sheets = [
        _results(results, plan),
        _ratings(results, plan),
        _pairs(pairs, plan),
        _orders(seats, plan),
    ]
    for sheet in sheets:
        sheet.show(console)
    for name, table in (("results", results), ("pairs", pairs), ("seats", seats)):
        write_whole(folder / f"{name}.csv", table.round(6).to_csv(lineterminator="\n"))
    _draw(folder, results, seats, plan)
    write_whole(folder / "report.md", _markdown(sheets, plan))
    console.print(f"Report: {folder / 'report.md'}")
    return results


def percent(share: float) -> str:
    return f"{share:.1%}"


def interval(row: pd.Series) -> str:
    return f"{row['low']:.1%} to {row['high']:.1%}"


def rating_interval(row: pd.Series) -> str:
    return f"{row['rating_low']:.1f} to {row['rating_high']:.1f}"


def decision_time(row: pd.Series) -> str:
    return f"{row['ms']:.3g} ms"


def _results(results: pd.DataFrame, plan: Plan) -> Sheet:
    header = ["agent", "games", "won", "95% interval", "par", "place", "points"]
    rows = [
        [
            str(agent),
            f"{row['games']:.0f}",
            percent(row["won"]),
            interval(row),
            percent(row["par"]),
            f"{row['place']:.2f}",
            f"{row['points']:.2f}",
        ]
        for agent, row in results.iterrows()
    ]
    return Sheet(_title(plan), header, rows)


def _ratings(results: pd.DataFrame, plan: Plan) -> Sheet:
    header = ["agent", "rating", "95% interval", "likeliest", "a decision", "forfeits"]
    rows = [
        [
            str(agent),
            f"{row['rating']:.1f}",
            rating_interval(row),
            f"{row['likeliest']:.1f}",
            decision_time(row),
            f"{row['forfeits']:.0f}",
        ]
        for agent, row in results.iterrows()
    ]
    return Sheet(f"ratings; {anchor_of(plan)} is 0", header, rows)


def _pairs(pairs: pd.DataFrame, plan: Plan) -> Sheet:
    def cell(agent: str, other: str) -> str:
        return percent(pairs.loc[(agent, other), "ahead"]) if (agent, other) in pairs.index else ""

    rows = [[agent, *(cell(agent, other) for other in plan.labels)] for agent in plan.labels]
    return Sheet("how often an agent is placed ahead of another", ["ahead of", *plan.labels], rows)


def _orders(seats: pd.DataFrame, plan: Plan) -> Sheet:
    rows = [
        [ORDERS[int(position) - 1], percent(row["won"]), interval(row), f"{row['points']:.2f}"]
        for position, row in seats.loc[("all", "order")].iterrows()
    ]
    title = f"turn in the first round, all agents; par {1 / plan.players:.1%}"
    return Sheet(title, ["turn", "won", "95% interval", "points"], rows)


def _title(plan: Plan) -> str:
    return f"{plan.total:,} games, {plan.players} players, {plan.rules}, seed {plan.seed}"


def _draw(folder: Path, results: pd.DataFrame, seats: pd.DataFrame, plan: Plan) -> None:
    draw_intervals(
        folder / "wins.png",
        results[["won", "low", "high", "par"]],
        "Games won",
        _title(plan),
        share=True,
    )
    ratings = results[["rating", "rating_low", "rating_high"]].assign(par=0.0)
    draw_intervals(folder / "ratings.png", ratings, f"Rating ({anchor_of(plan)} = 0)", _title(plan))
    orders = seats.loc[("all", "order")][["won", "low", "high"]].assign(par=1 / plan.players)
    orders.index = pd.Index(ORDERS[: plan.players])
    draw_intervals(
        folder / "seats.png", orders, "Games won by turn order", _title(plan), share=True
    )


def _markdown(sheets: list[Sheet], plan: Plan) -> str:
    parts = [
        "# A rating",
        f"{_title(plan)}. Agents: {', '.join(plan.labels)}.",
        "Won: games won by any of the agent's seats, with the 95% Wilson interval; par is the "
        "share of seats that were its own. Place and points: means over its seats. Rating: "
        "openskill's Plackett-Luce, with bootstrap intervals; likeliest: the same model fitted to "
        "all games at once. Ratings of different numbers of players are on different scales. An "
        "agent that fails or chooses what is illegal forfeits and is placed last.",
    ]
    for sheet in sheets:
        parts += [f"## {sheet.title[0].upper()}{sheet.title[1:]}", sheet.markdown().rstrip()]
    parts.append("![games won](wins.png) ![ratings](ratings.png) ![turn order](seats.png)")
    parts.append("In numbers: `results.csv`, `pairs.csv`, `seats.csv`. The games: `games.jsonl`.")
    return "\n\n".join(parts) + "\n"
