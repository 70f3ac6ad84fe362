"""Decisions of games, and estimates of positions, as pandas tables."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, closing

import numpy as np
import pandas as pd

from busenv import Game, GameDataset, Phase, make_agent
from busenv.agents import Agent
from busenv.agents.search_agent import SearchAgent
from busenv.core import kernels

COLUMNS = ("game", "ply", "round", "phase", "seat", "action", "points", "won")
PHASES = np.array([phase.name.lower() for phase in Phase])


def decision_table(games: GameDataset | Iterable[Game]) -> pd.DataFrame:
    """Return one row for each decision of games, in order.

    games: a dataset, or games whose history is read.

    Columns: `game` (number, from 0), `ply` (number of the decision in its game, from 0), `round`,
    `phase` (such as "select_actions"), `seat`, `action` (id), and `points` and `won` of this seat
    at the end of the game, or at present if it runs. Of a dataset, `agent` is the spec of the agent
    that decided. `pd.DataFrame([busenv.decode(board, id) for id in range(board.num_actions)])`,
    joined on `action`, names the actions. Raises ValueError for a damaged dataset.
    """
    if not isinstance(games, GameDataset):
        rows = [row for k, game in enumerate(games) for row in _rows(k, game)]
        return pd.DataFrame(rows, columns=[*COLUMNS])
    replay = games.replay(range(len(games)))
    states, owner = replay.states, replay.owner
    seats = states["seat"].astype(np.int64)
    starts = np.searchsorted(owner, owner)
    points = replay.final["deliveries"].astype(np.int64) - replay.final["stones"]
    columns = (
        owner,
        np.arange(len(owner)) - starts,
        states["round"].astype(np.int64),
        PHASES[states["phase"]],
        seats,
        replay.actions,
        points[owner, seats],
        kernels.rankings(replay.final, games.num_players)[owner, seats] == 0,
    )
    table = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    return table.assign(agent=np.array(games.agent_specs)[games.agents[owner, seats]])


def _rows(number: int, game: Game) -> Iterable[dict[str, object]]:
    points, ranking = game.points, game.ranking()
    for ply, (at, action) in enumerate(Game.replay(game.record(), game.board)):
        seat, phase = at.current_player, at.phase.name.lower()
        values = number, ply, at.round, phase, seat, action, points[seat], ranking[seat] == 0
        yield dict(zip(COLUMNS, values, strict=True))


def estimate_table(agent: str | Agent, games: Iterable[Game]) -> pd.DataFrame:
    """Return an agent's estimates of positions, one row for each action that it considers.

    agent: a spec or an agent with estimates: `uct:N`, `net:MODEL` or `az:MODEL:N`. games: none of
    them over.

    Columns: `game` (number, from 0), `seat` (to move), `chance` (of this seat to win), `action`
    (id), its `share` of the visits of `uct`, or its probability for `az` or a policy, and `value`,
    the mean return of a search after the action (`SearchAgent.action_values`). `chance` and `value`
    are not numbers for a policy without search, nor is `value` for an action without a visit. The
    best action of a position comes first. Raises ValueError for an agent without estimates and for
    a game that is over.
    """
    rows, missing = [], float("nan")
    with ExitStack() as stack:
        if isinstance(agent, str):
            agent = stack.enter_context(closing(make_agent(agent)))
        for number, game in enumerate(games):
            chances, actions = agent.estimate(game)
            seat = game.current_player
            chance = chances[seat] if chances else missing
            values = agent.action_values() if isinstance(agent, SearchAgent) else {}
            rows += [
                (number, seat, chance, action, share, values.get(action, missing))
                for action, share in actions
            ]
    return pd.DataFrame(rows, columns=["game", "seat", "chance", "action", "share", "value"])
