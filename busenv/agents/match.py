"""Matches of agents: all games in one batch, with balanced seats, turns and neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import gcd
from pathlib import Path

import numpy as np

from busenv import Board, Game, IllegalActionError, Rules
from busenv.agents import Agent, make_agent
from busenv.agents.custom_agent import as_agent
from busenv.batch.opponents import Player
from busenv.batch.saved_games import take_games
from busenv.common.intervals import wilson
from busenv.core import kernels
from busenv.core.state import GAME, OVER
from busenv.game.board_specs import GeneratedBoards, as_board, load_boards
from busenv.game.rules import as_rules, check_players
from busenv.game.states import illegal_action
from busenv.validation import check_whole


@dataclass(frozen=True)
class Score:
    """Result of an agent: wins out of games, mean rank (0 is first) and mean points."""

    name: str
    games: int
    wins: int
    rank: float
    points: float

    def interval(self) -> tuple[float, float]:
        """Return the 95% Wilson interval of the share of wins."""
        return wilson(self.wins, self.games)


def play_match(
    agents: Sequence[str | Player],
    games: int,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board | GeneratedBoards = "city",
    *,
    seed: int | None = 0,
) -> list[Score]:
    """Play games of 3 to 5 agents and return the result of each.

    agents: specs, agents, or other objects with `act(game)` or `choose(games, board)`.
    board: the games are shared out evenly among the boards of a set, in order.
    seed: agent k is reset with seed + k; None leaves agents that are objects as they are.

    Over n * n * (n - 1)! games (18, 96 or 600 for 3, 4 or 5 agents) each agent has every other one
    on its left, and on its right, equally often (`seat_line_up`).
    """
    if isinstance(agents, str):
        raise TypeError(f"agents is {agents!r}; allowed: a list of 3 to 5 agents")
    players = check_players(len(agents))
    games, rules = check_whole("games", games, 1), as_rules(rules)
    loaded = load_boards(board) if isinstance(board, str) else board
    boards = loaded if isinstance(loaded, GeneratedBoards) else [as_board(loaded)]
    states = np.zeros(games, GAME)
    seat_owner, first = seat_line_up(tuple(range(players)), np.arange(games))
    arrays, num_parts = (states, seat_owner, first), min(games, len(boards))
    with ExitStack() as stack:
        line_up = [_as_player(agent, k, seed, stack) for k, agent in enumerate(agents)]
        parts = zip(*(np.array_split(array, num_parts) for array in arrays), strict=True)
        for k, (started, owners, starts) in enumerate(parts):  # views, one part for each board
            kernels.new_games(started, boards[k].array, rules.record(players), starts)
            for _ in play_games_to_end(line_up, owners, started, rules=rules, board=boards[k]):
                pass
    return _scores(line_up, states, seat_owner)


def seat_line_up(
    line_up: tuple[int, ...], numbers: np.ndarray, shift: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return who holds each seat, int64 (N, n), and which seat begins, (N,), in games of a line-up.

    numbers: int64, (N,), of the games. In n * n games each member has every seat with every
    starting player once. Each block of n * n games uses one circular order; `shift` is the
    number of the first block's order.
    """
    players, orders = len(line_up), np.array(circular_orders(line_up))
    order = orders[(numbers // players**2 + shift) % len(orders)]
    places = (np.arange(players) - numbers[:, None]) % players
    return np.take_along_axis(order, places, axis=1), numbers // players % players


@cache
def circular_orders(line_up: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the circular orders of a line-up, in which an agent may occur repeatedly.

    An order occurs as often as random seating gives it, divided by the greatest common divisor:
    (0, 0, 1, 1) twice and (0, 1, 0, 1) once. Mirror images follow each other.
    """

    def rotated(order: tuple[int, ...]) -> tuple[int, ...]:
        return min(order[k:] + order[:k] for k in range(len(order)))

    first, *others = line_up
    counts = Counter(
        rotated((first, *order))
        for forward in permutations(others)
        for order in (forward, forward[::-1])
    )
    divisor = gcd(*counts.values())
    return [order for order, count in counts.items() for _ in range(count // divisor)]


def _as_player(agent: str | Player, k: int, seed: int | None, stack: ExitStack) -> Agent:
    """Return agent k of a match; the stack closes those built from specs."""
    if isinstance(agent, str):
        return stack.enter_context(closing(make_agent(agent, (seed or 0) + k)))
    player = as_agent(agent)
    if seed is not None:
        player.reset(seed + k)
    return player


def play_games_to_end(
    agents: Sequence[Agent],
    seat_owner: np.ndarray,
    states: np.ndarray,
    *,
    rules: Rules,
    board: Board,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Play games to their end, one decision per game at a time, and yield the decisions.

    seat_owner: int64, (N, seats), index of the agent in each seat. states: GAME, (N,), new
    games, which the actions change. Yields the indices of the games that decided and their
    actions: int64, (n,) each. Raises IllegalActionError, which names the agent.
    """
    actions = np.zeros(len(states), np.int64)
    games = list[Game]()
    if any(agent.single_game_only for agent in agents):  # GAME records have no history
        setups = zip(states["players"].tolist(), states["first"].tolist(), strict=True)
        games = [Game(players, rules, board, first, seed=0) for players, first in setups]
    while (running := np.flatnonzero(states["phase"] != OVER)).size:
        to_decide = seat_owner[running, states["seat"][running]]
        for k, agent in enumerate(agents):
            mine = running[to_decide == k]
            if not mine.size:
                continue
            if agent.single_game_only:
                actions[mine] = np.array([agent.act(games[i]) for i in mine])
            else:
                actions[mine] = agent.choose_trusted(take_games(states, mine), board)
        illegal = kernels.step_games(states, board.array, actions)
        if illegal >= 0:
            name = agents[seat_owner[illegal, states["seat"][illegal]]].name
            error = illegal_action(states, illegal, board, int(actions[illegal]))
            raise IllegalActionError(f"agent {name!r}: {error}")
        if games:
            for i in running:
                games[i].step(actions[i])
        yield running, actions[running]


def _scores(agents: Sequence[Agent], states: np.ndarray, seat_owner: np.ndarray) -> list[Score]:
    """Return the result of each agent in the finished games of `play_match`."""
    ranks = kernels.rankings(states, seat_owner.shape[1])
    points = (states["deliveries"].astype(np.int64) - states["stones"])[:, : len(agents)]
    scores = []
    for k, agent in enumerate(agents):
        own = seat_owner == k  # one seat of each game
        rank, wins = ranks[own], int((ranks[own] == 0).sum())
        mean_points = float(points[own].mean())
        scores.append(Score(agent.name, len(states), wins, float(rank.mean()), mean_points))
    return scores
