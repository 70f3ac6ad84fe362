"""Statistics of a rating as pandas tables."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from busenv.common.intervals import bootstrap, wilson
from busenv.evaluation.deviation_ratings import deviation_ratings, margins
from busenv.evaluation.plackett_luce import plackett_luce_ratings
from busenv.evaluation.schedule import Schedule

NUMBERS = ("points", "seconds", "decisions", "timed")  # of a seat in a game


def seat_rows(games: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per seat of a game, ordered by game and seat.

    Columns: game, agent (label), seat, turn (1 for the starting player), rank (1 for the winner),
    won, points, seconds, decisions, timed, forfeit.
    """
    rows = []
    for game in sorted(games, key=lambda game: game["number"]):
        first, loser = game["record"]["first_player"], (game["forfeit"] or {}).get("seat")
        by_seat = zip(*(game[name] for name in ("agents", "ranking", *NUMBERS)), strict=True)
        for seat, (agent, rank, *numbers) in enumerate(by_seat):
            turn = (seat - first) % len(game["agents"]) + 1
            row = game["number"], agent, seat, turn, rank + 1, rank == 0, *numbers, seat == loser
            rows.append(row)
    names = ["game", "agent", "seat", "turn", "rank", "won", *NUMBERS, "forfeit"]
    return pd.DataFrame(rows, columns=names)


def different_games(games: list[dict[str, Any]]) -> int:
    """Count the games that differ in more than a rotation of the seats."""

    def rotated(game: dict[str, Any]) -> tuple[tuple[str, ...], str, tuple[int, ...]]:
        first, agents, record = game["record"]["first_player"], game["agents"], game["record"]
        board = record["board"]["fingerprint"]
        return (*agents[first:], *agents[:first]), board, tuple(record["actions"])

    return len({rotated(game) for game in games})


def repetition_warning(games: list[dict[str, Any]]) -> str:
    """Describe how many games are repetitions; "" if none is."""
    different = different_games(games)
    if different == len(games):
        return ""
    return (
        f"Only {different:,} of the {len(games):,} games are different: deterministic agents "
        "repeat them. The intervals assume independent games and are too narrow."
    )


def result_table(rows: pd.DataFrame, schedule: Schedule, workers: int | None = 1) -> pd.DataFrame:
    """Return one row per entrant, by label.

    games: with the entrant. won: share of them won by any of its seats, with low and high of the
    95% Wilson interval; par: share of the seats that it held. rank, points: means over its
    seats. forfeits: number of games. rating, deviation: see `rate_agents`, with low and high
    of the 95% bootstrap intervals. ms: mean milliseconds per decision.
    """
    seats = rows.groupby("agent")
    won = rows.groupby(["agent", "game"])["won"].any().groupby("agent")
    table = pd.DataFrame({"games": won.count(), "won": won.mean()})
    table[["low", "high"]] = _intervals(table["won"], table["games"])
    table["par"] = seats.size() / table["games"] / schedule.players
    table["rank"], table["points"] = seats["rank"].mean(), seats["points"].mean()
    table["forfeits"] = seats["forfeit"].sum()
    table = table.loc[[*schedule.labels]]

    numbers = rows["agent"].map({label: k for k, label in enumerate(schedule.labels)})
    ranked = rows.assign(number=numbers).sort_values(["game", "rank"])
    orders = ranked["number"].to_numpy().reshape(-1, schedule.players)
    anchor = schedule.labels.index(anchor_of(schedule))
    rate = partial(rate_agents, agents=len(schedule.labels), anchor=anchor)
    ratings, (low, high) = rate(orders), bootstrap(rate, orders, schedule.seed, workers)
    for k, name in enumerate(("rating", "deviation")):
        table[name], table[f"{name}_low"], table[f"{name}_high"] = ratings[k], low[k], high[k]
    table["ms"] = 1000 * seats["seconds"].sum() / seats["timed"].sum()
    return table


def rate_agents(orders: np.ndarray, agents: int, anchor: int) -> np.ndarray:
    """Return Plackett-Luce ratings minus the anchor's, and deviation ratings, float64 (2, agents).

    orders: see `plackett_luce_ratings`.
    """
    ratings = plackett_luce_ratings(orders, agents)
    return np.stack([ratings - ratings[anchor], deviation_ratings(margins(orders, agents))])


def anchor_of(schedule: Schedule) -> str:
    """Return the entrant with rating 0: `random` if it plays, otherwise the first."""
    return "random" if "random" in schedule.labels else schedule.labels[0]


def pair_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often an agent is ranked ahead of another, by (agent, other).

    games: with both. ahead: mean over the games of the share of pairs of their seats. low, high:
    its Wilson interval, with each game counted once.
    """
    both = rows.merge(rows, on="game", suffixes=("", "_other"))
    both = both[both["agent"] != both["agent_other"]]
    both = both.assign(ahead=both["rank"] < both["rank_other"])
    games = both.groupby(["agent", "agent_other", "game"])["ahead"].mean()
    table = games.groupby(["agent", "agent_other"]).agg(games="count", ahead="mean")
    table[["low", "high"]] = _intervals(table["ahead"], table["games"])
    return table.rename_axis(["agent", "other"])


def seat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return wins and points by turn order and by seat, for all agents and for each.

    Index: (agent or "all", "turn" or "seat", position). Columns: games (seats counted there), won
    with low and high, points.
    """
    columns = ["agent", "by", "position"]
    positions = pd.concat([rows.assign(agent="all"), rows]).melt(
        ["agent", "won", "points"], ["turn", "seat"], var_name="by", value_name="position"
    )
    groups = positions.groupby(columns)
    table = groups.agg(games=("won", "count"), won=("won", "mean"), points=("points", "mean"))
    table[["low", "high"]] = _intervals(table["won"], table["games"])
    return table.loc[["all", *rows["agent"].unique()]]


def _intervals(shares: Iterable[float], games: Iterable[int]) -> np.ndarray:
    """Return Wilson intervals of shares of games, float64 (n, 2)."""
    return np.array([wilson(s * n, n) for s, n in zip(shares, games, strict=True)]).reshape(-1, 2)
