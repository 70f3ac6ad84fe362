"""Matches of agents, all games side by side, seats and starting player rotated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from busenv import Board, IllegalActionError, Rules
from busenv.agents import Agent
from busenv.core import kernels
from busenv.core.state import GAME, OVER
from busenv.experiments.common.intervals import wilson
from busenv.game.board import as_board
from busenv.game.rules import as_rules, check_players
from busenv.validation import check_whole, illegal_action


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
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
) -> list[Score]:
    """Play a line-up of 3 to 5 agents and score each.

    Game i seats agent k at (k + i) mod n and starts at seat (i // n) mod n, so over n * n games
    each agent sits everywhere and starts equally often.
    """
    players = check_players(len(agents))
    numbers = np.arange(check_whole("games", games, 1))
    loaded = as_board(board)
    states = np.zeros(len(numbers), GAME)
    first = numbers // players % players
    kernels.new_games(states, loaded.array, as_rules(rules).record(players), first)
    # By game and seat: which agent sits there.
    seat_owner = (np.arange(players)[None, :] - numbers[:, None]) % players
    actions = np.zeros(len(numbers), np.int64)
    while (running := np.flatnonzero(states["phase"] != OVER)).size:
        to_decide = seat_owner[running, states["seat"][running]]
        for k, agent in enumerate(agents):
            mine = running[to_decide == k]
            if mine.size:
                actions[mine] = agent.choose(states[mine], loaded)
        wrong = kernels.step_games(states, loaded.array, actions)
        if wrong >= 0:
            name = agents[seat_owner[wrong, states["seat"][wrong]]].name
            error = illegal_action(states, wrong, loaded, int(actions[wrong]))
            raise IllegalActionError(f"agent {name!r}: {error}")
    return _scores(agents, states)


def _scores(agents: Sequence[Agent], states: np.ndarray) -> list[Score]:
    """What games of `play_match` that are over say of each agent."""
    players, numbers = len(agents), np.arange(len(states))
    places = np.zeros((len(states), players), np.int64)
    kernels.rankings(states, places)
    points = states["deliveries"].astype(np.int64) - states["stones"]
    scores = []
    for k, agent in enumerate(agents):
        seat = (numbers + k) % players
        place, wins = places[numbers, seat], int((places[numbers, seat] == 0).sum())
        mean_points = float(points[numbers, seat].mean())
        scores.append(Score(agent.name, len(states), wins, float(place.mean()), mean_points))
    return scores
