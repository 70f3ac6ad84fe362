"""Uniformly random play, of whole games or from a position on, in one compiled call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from busenv.core import kernels
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.game.board import Board, as_board
from busenv.game.game import Game
from busenv.game.position import ENDINGS
from busenv.game.rules import Rules, as_rules, check_players
from busenv.rewards import REWARDS
from busenv.validation import check_seed, check_whole


@dataclass(frozen=True)
class Playouts:
    """What came of random games.

    games, decisions: how many were played and taken.
    rounds: mean number of rounds a game.
    deliveries: mean deliveries a game, by seat.
    endings: how many games ended by "time_stones", "sites" and "markers" (R15, R19).
    """

    games: int
    decisions: int
    rounds: float
    deliveries: list[float]
    endings: dict[str, int]


def random_playouts(
    games: int,
    num_players: int = 4,
    rules: str | Path | Rules = "capstone-2024",
    board: str | Path | Board = "city",
    seed: int = 0,
) -> Playouts:
    """Play games to the end, each legal action as likely as another, in one compiled call.

    One thread, no Python per game, the GIL released. The starting player of each game is drawn
    from the seed too. Arguments and errors as for `busenv.Game`; games: 0 or more, else
    ValueError.
    """
    count = check_whole("games", games, 0, 2**40 - 1)
    players = check_players(num_players)
    board = as_board(board)
    sums = np.zeros(3 + len(ENDINGS), np.int64)
    sums[0] = count
    deliveries = np.zeros(MAX_PLAYERS, np.int64)
    kernels.random_games(
        board.array,
        as_rules(rules).record(players),
        np.uint64(check_seed(seed)),
        np.zeros(1, GAME),
        sums,
        deliveries,
    )
    share = 1 / max(count, 1)
    return Playouts(
        games=count,
        decisions=int(sums[1]),
        rounds=float(sums[2] * share),
        deliveries=[float(d * share) for d in deliveries[:players]],
        endings={name: int(sums[3 + i]) for i, name in enumerate(ENDINGS) if i > 0},
    )


def random_returns(game: Game, playouts: int = 1, reward: str = "win", seed: int = 0) -> np.ndarray:
    """Play a game on to its end, again and again: what it then has paid each seat in all.

    Each legal action is as likely as another. One compiled call, the GIL released; the game itself
    stays where it is. When it is over, every playout tells what it has paid.

    playouts: how many, 0 or more. reward: a name in `busenv.REWARDS`; paid is from the beginning of
    the game on, so what is still to come of `margin` is this less the margin so far.
    Returns float64, shape (playouts, num_players). ValueError says what is allowed instead.

    >>> import busenv
    >>> game = busenv.Game(num_players=3, seed=1)
    >>> random_returns(game, 2, seed=5)
    array([[-0.5, -0.5,  1. ],
           [-0.5, -0.5,  1. ]])
    """
    if not isinstance(reward, str) or reward not in REWARDS:
        raise ValueError(f"reward is {reward!r}; allowed: one of {[*REWARDS]}")
    state, board = game.arrays()
    returns = np.empty((check_whole("playouts", playouts, 0, 2**31 - 1), MAX_PLAYERS))
    noise, scratch = np.uint64(check_seed(seed)), np.zeros(2, GAME)
    kernels.random_returns(state, board, REWARDS[reward], noise, scratch, returns)
    return returns[:, : game.num_players]
