"""Ratings of agents, and tables of decisions and estimates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from busenv import Board, Game
from busenv.agents import Agent, make_agent
from busenv.agents.base import call_agent
from busenv.agents.custom_agent import as_agent

if TYPE_CHECKING:
    import pandas as pd

    from busenv.evaluation.decision_tables import decision_table, estimate_table

__all__ = ["decision_table", "estimate_table", "rate"]


def __getattr__(name: str) -> Any:
    """Import the tables when they are used, because pandas is part of an extra."""
    if name in ("decision_table", "estimate_table"):
        from busenv.evaluation import decision_tables

        return getattr(decision_tables, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Open(Agent):
    """An agent of the caller, which games do not close."""

    def __init__(self, agent: Agent, name: str) -> None:
        self.name, self._agent = name, agent

    def reset(self, seed: int) -> None:
        call_agent(self._agent, "reset", seed)

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self._agent.choose(games, board)

    def _act(self, game: Game) -> int:
        return int(call_agent(self._agent, "act", game))


def rate(
    agents: Sequence[Any], games: int = 1000, *, against: Any = None, players: int = 4, **more: Any
) -> pd.DataFrame:
    """Rate agents by games in this process; return a table with a row for each.

    agents, against: specs, or objects with `act(game)` or `choose(games, board)`. An object plays
    all its seats; `rate` does not close it. For equal time per decision, give searches a budget in
    seconds, such as `uct:0.1s`. games, players and more (`seed`, `rules`, `board`): of
    `busenv.evaluation.schedule.Schedule`, which balances seats. The columns are those of
    `busenv.evaluation.tables.result_table`: share of games won with its interval, rank, points,
    rating, milliseconds per decision and others. Warns (UserWarning) of forfeits and of repeated
    games. Raises ValueError for an unknown spec, TypeError if `agents` is a single spec, and
    `busenv.common.runs.RunError` for fewer than two agents.
    """
    from busenv.evaluation.schedule import Schedule
    from busenv.evaluation.tables import repetition_warning, result_table, seat_rows
    from busenv.evaluation.tournament import play_games

    if isinstance(agents, str):
        raise TypeError(f"agents is {agents!r}; allowed: a sequence of specs and objects")
    entrants = [*agents] if against is None else [*agents, against]
    taken = {entrant for entrant in entrants if isinstance(entrant, str)}
    specs, objects = [], {}
    for entrant in entrants:
        spec = entrant
        if isinstance(entrant, str):
            make_agent(entrant).close()
        else:
            player = as_agent(entrant)
            spec, number = player.name, 0
            while spec in taken:
                number += 1
                spec = f"{player.name} ({number})"
            taken.add(spec)
            objects[spec] = _Open(player, spec)
        specs.append(spec)
    last = None if against is None else specs.pop()
    schedule = Schedule(tuple(specs), players, games, against=last, **more)

    def build(spec: str) -> Any:
        return objects[spec] if spec in objects else make_agent(spec)

    parts = play_games(schedule, range(schedule.total), build=build)
    played = [game for part in parts for game in part]
    if forfeits := [game["forfeit"]["why"] for game in played if game["forfeit"]]:
        warnings.warn(
            f"{len(forfeits)} of {len(played)} games are forfeits; the first: {forfeits[0]}",
            stacklevel=2,
        )
    elif repetition := repetition_warning(played):
        warnings.warn(repetition, stacklevel=2)
    return result_table(seat_rows(played), schedule)
