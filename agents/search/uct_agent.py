"""An agent that searches the tree of decisions by knowledge of the game."""

from __future__ import annotations

import numpy as np

from busenv import Board
from busenv.agents.planner.evaluation import WEIGHTS
from busenv.agents.search.search_agent import SearchAgent
from busenv.agents.search.tree import Tree, child_of
from busenv.agents.search.uct_search import Search, UctSettings, make_search, search_games, simulate


class UctAgent(SearchAgent):
    """Monte Carlo tree search (agents.search.uct_search), as a `SearchAgent`.

    settings, weights: of the search (agents.search.uct_search) and of its evaluation of positions
        (agents.planner.evaluation).
    """

    edges_per_node = 24  # most nodes are never expanded

    def __init__(
        self,
        simulations: int | None = None,
        seconds: float | None = None,
        threads: int = 1,
        seed: int = 0,
        name: str = "uct",
        settings: UctSettings = UctSettings(),  # noqa: B008 - a constant
        weights: np.ndarray = WEIGHTS,
    ) -> None:
        self._settings, self._weights = settings, weights
        super().__init__(simulations, seconds, threads, seed, name)

    def _make_search(self, board: Board) -> Search:
        return make_search(self._settings, self._weights, board.num_actions)

    def _begin(self, tree: Tree, search: Search, board: Board) -> None:
        """The first simulation expands the root."""

    def _simulate(self, tree: Tree, search: Search, board: Board, simulations: int) -> None:
        simulate(tree, search, board.array, simulations)

    def _weigh(self, tree: Tree, search: Search, weights: np.ndarray) -> None:
        root = tree.nodes[0]
        edges = tree.edges[root["first"] : root["first"] + root["edges"]]
        weights[edges["action"]] = edges["visits"]

    def _follow(self, tree: Tree, search: Search, board: Board, moves: list[int]) -> int:
        root = 0
        for action in moves:
            root = child_of(tree, root, action) if root >= 0 else -1
        return root

    def _search_games(
        self,
        tree: Tree,
        search: Search,
        games: np.ndarray,
        board: Board,
        seeds: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        assert self._simulations is not None
        search_games(tree, search, games, board.array, self._simulations, seeds, weights)
