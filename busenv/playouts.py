"""Uniformly random play of whole games, in one compiled call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from busenv.board import Board, as_board
from busenv.checks import check_seed, check_whole
from busenv.core import kernels
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.position import ENDINGS
from busenv.rules import Rules, as_rules, check_players


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
