"""An agent that searches the tree of decisions guided by a network."""

from __future__ import annotations

import numpy as np
from torch import nn

from busenv import Board
from busenv.agents.networks.compiled_mlp import read_weights
from busenv.agents.networks.mlp import SeatsMlp
from busenv.agents.search.guided import (
    GuidedSettings,
    SearchState,
    begin_search,
    follow,
    make_search_state,
)
from busenv.agents.search.halving import root_weights, search_games, simulate_guided
from busenv.agents.search.search_agent import SearchAgent
from busenv.agents.search.tree import Tree

# A search of so many simulations, or of so long a time, also plays positions out. More simulations
# tell little more of what the network believes; what playouts tell adds up.
LONG, LONG_SECONDS = 400, 0.02
PLAYOUTS = 4


class AzAgent(SearchAgent):
    """Search guided by a network (agents.search.guided), as a `SearchAgent`.

    network: one that tells of every seat, on the CPU; whatever it learns counts at once. board: the
    board that it was made for; games of another are refused with a ValueError.
    """

    edges_per_node = 16

    def __init__(
        self,
        network: nn.Module,
        board: Board,
        simulations: int | None = None,
        seconds: float | None = None,
        threads: int = 1,
        seed: int = 0,
        name: str = "az",
    ) -> None:
        if not isinstance(network, SeatsMlp):
            raise ValueError(
                f"{name}: the network does not tell of every seat who wins; allowed: a model of "
                "network 'seats' or 'features' (others play as net:...)"
            )
        self.network, self.board = network, board
        super().__init__(simulations, seconds, threads, seed, name)
        is_long = (simulations or 0) >= LONG or (seconds or 0.0) >= LONG_SECONDS
        self._settings = GuidedSettings(playouts=PLAYOUTS if is_long else 0)

    def _make_search(self, board: Board) -> SearchState:
        if board.fingerprint != self.board.fingerprint:
            raise ValueError(f"{self.name} was trained on {self.board!r}, not on {board!r}")
        return make_search_state(self._settings, read_weights(self.network))

    def _begin(self, tree: Tree, search: SearchState, board: Board) -> None:
        begin_search(tree, search, board.array)

    def _simulate(self, tree: Tree, search: SearchState, board: Board, simulations: int) -> None:
        simulate_guided(tree, search, board.array, simulations)

    def _weigh(self, tree: Tree, search: SearchState, weights: np.ndarray) -> None:
        root_weights(tree, search, weights)

    def _follow(self, tree: Tree, search: SearchState, board: Board, moves: list[int]) -> int:
        return int(follow(tree, search, board.array, np.array(moves, np.int64)))

    def _search_games(
        self,
        tree: Tree,
        search: SearchState,
        games: np.ndarray,
        board: Board,
        seeds: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        search_games(tree, search, games, board.array, self._simulations, seeds, weights)
