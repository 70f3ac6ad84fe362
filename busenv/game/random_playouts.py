"""Uniformly random play of whole games, or from a position, in one compiled call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from busenv.core import kernels
from busenv.core.state import MAX_PLAYERS
from busenv.game.board import Board
from busenv.game.board_specs import as_board
from busenv.game.game import Game
from busenv.game.position import ENDINGS
from busenv.game.rules import Rules, as_rules, check_players
from busenv.rewards import REWARDS
from busenv.validation import check_seed, check_whole


@dataclass(frozen=True)
class Playouts:
    """Statistics of random games.

    games, decisions: number of games and of decisions. rounds: mean per game.
    deliveries: mean per game, by seat.
    endings: number of games by ending: "time_stones", "sites" and "markers" (R15, R19).
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
    """Play games to the end, with actions drawn uniformly at random, in one compiled call.

    games: 0 or more. The seed also decides the first player of each game. Runs on one thread and
    releases the GIL. Other arguments and errors as for `busenv.Game`.
    """
    count = check_whole("games", games, 0, 2**40 - 1)
    players = check_players(num_players)
    board = as_board(board)
    deliveries = np.zeros(MAX_PLAYERS, np.int64)
    record = as_rules(rules).record(players)
    totals = kernels.random_games(
        board.array, record, count, np.uint64(check_seed(seed)), deliveries
    )
    share = 1 / max(count, 1)
    return Playouts(
        games=count,
        decisions=int(totals[0]),
        rounds=float(totals[1] * share),
        deliveries=[float(d * share) for d in deliveries[:players]],
        endings={name: int(totals[2 + i]) for i, name in enumerate(ENDINGS) if i > 0},
    )


def random_returns(game: Game, playouts: int = 1, reward: str = "win", seed: int = 0) -> np.ndarray:
    """Finish a game by uniformly random play, repeatedly, and return the rewards by seat.

    One compiled call, which releases the GIL and leaves the game unchanged. For a game that is
    over, every playout returns its rewards.

    playouts: number, 0 or more. reward: a name in `busenv.REWARDS`. Rewards are summed from the
    start of the game, so the future part of `margin` is this minus the margin so far.
    Returns float64, (playouts, num_players). Raises ValueError, which names what is allowed, and
    TypeError if `game` is not a `Game`.

    >>> import busenv
    >>> game = busenv.Game(num_players=3, seed=1)
    >>> random_returns(game, 2, seed=5)
    array([[-0.5, -0.5,  1. ],
           [-0.5, -0.5,  1. ]])
    """
    if not isinstance(game, Game):
        raise TypeError(f"game is {game!r}; allowed: a busenv.Game")
    if not isinstance(reward, str) or reward not in REWARDS:
        raise ValueError(f"reward is {reward!r}; allowed: one of {[*REWARDS]}")
    state, board = game.arrays()
    returns = np.empty((check_whole("playouts", playouts, 0, 2**31 - 1), MAX_PLAYERS))
    kernels.random_returns(state, board, REWARDS[reward], np.uint64(check_seed(seed)), returns)
    return returns[:, : game.num_players]
