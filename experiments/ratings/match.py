"""Matches of agents, all games side by side, seats and starting player rotated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from busenv.agents import Agent
from busenv.experiments.ratings.intervals import wilson

from busenv import IllegalActionError, Rules
from busenv.board import as_board
from busenv.checks import illegal_action
from busenv.core import kernels
from busenv.core.state import GAME, OVER
from busenv.rules import as_rules, check_players


@dataclass(frozen=True)
class Score:
    """How an agent of a line-up did: wins of games, and its mean place (0 is first) and points.

    seats: how many seats of each game are taken together here; each counts as a game.
    """

    name: str
    games: int
    wins: int
    place: float
    points: float
    seats: int = 1

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """Share of wins with 95% confidence (Wilson 1927), for a single seat."""
        return wilson(self.wins, self.games, z)


def play_match(
    agents: Sequence[Agent],
    games: int,
    rules: str | Rules = "capstone-2024",
    board: str = "city",
) -> list[Score]:
    """Play a line-up of 3 to 5 agents and score each.

    Game i seats agent k at (k + i) mod n and starts at seat (i // n) mod n, so over n * n games
    each agent sits everywhere and starts equally often.
    """
    players = check_players(len(agents))
    if games < 1:
        raise ValueError(f"games is {games!r}; allowed: 1 or more")
    loaded = as_board(board)
    table = np.zeros(games, GAME)
    numbers = np.arange(games)
    first = numbers // players % players
    kernels.new_games(table, loaded.array, as_rules(rules).record(players), first)
    # Agent at each seat of each game.
    sitting = (np.arange(players)[None, :] - numbers[:, None]) % players
    actions = np.zeros(games, np.int64)
    while (running := np.flatnonzero(table["phase"] != OVER)).size:
        mover = sitting[running, table["seat"][running]]
        for k, agent in enumerate(agents):
            mine = running[mover == k]
            if mine.size:
                actions[mine] = agent.choose(table[mine], loaded)
        wrong = kernels.step_games(table, loaded.array, actions)
        if wrong >= 0:
            name = agents[sitting[wrong, table["seat"][wrong]]].name
            error = illegal_action(table, wrong, loaded, int(actions[wrong]))
            raise IllegalActionError(f"agent {name!r}: {error}")
    places = np.zeros((games, players), np.int64)
    kernels.rankings(table, places)
    points = table["deliveries"].astype(np.int64) - table["stones"]
    scores = []
    for k, agent in enumerate(agents):
        seat = (numbers + k) % players
        won = places[numbers, seat]
        mean_points = float(points[numbers, seat].mean())
        scores.append(
            Score(agent.name, games, int((won == 0).sum()), float(won.mean()), mean_points)
        )
    return scores
