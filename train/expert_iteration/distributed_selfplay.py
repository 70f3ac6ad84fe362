"""Games of the guided search on Ray's cluster, a few in a call; nothing there needs torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from busenv import Board, cluster
from busenv.agents.networks.compiled_mlp import Weights
from busenv.agents.search.az_search import AzSettings
from busenv.train.expert_iteration.search_selfplay import Drawn, play_drawn
from busenv.train.expert_iteration.selfplay_players import SelfPlayConfig

GAMES = 4  # of a call; some seconds


class Hands(NamedTuple):
    """Who plays, how, and where."""

    weights: Weights
    past: Weights
    plan: SelfPlayConfig
    settings: AzSettings
    board: Board


def begin_on_cluster(hands: Hands, drawn: Drawn) -> Callable[[], list[np.ndarray]]:
    """Have games played; a function that waits for their rows, game by game."""
    shared = cluster.Shared(hands)
    starts = range(0, len(drawn.seeds), GAMES)
    calls = [cluster.call(play_part, shared, drawn.part(slice(k, k + GAMES))) for k in starts]
    return lambda: [rows for call in calls for rows in _split(*cluster.result(call))]


def play_part(hands: cluster.Shared[Hands], drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """What a node does: the rows of some games, and how many each of them has."""
    found = hands.get()
    weights, past = (Weights(*map(np.array, w)) for w in (found.weights, found.past))
    rows = play_drawn(
        drawn.part(slice(None)), found.plan, found.settings, weights, past, found.board
    )
    return np.concatenate(rows), np.array([len(some) for some in rows])


def _split(rows: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    return np.split(rows, np.cumsum(counts)[:-1])
