"""The `uct` agent: tree search with handcrafted knowledge."""

from __future__ import annotations

from busenv import Board
from busenv.agents.search_agent import SearchAgent
from busenv.heuristics.evaluation import WEIGHTS
from busenv.search.uct_search import UctSearchState, UctSettings, make_uct_search


class UctAgent(SearchAgent):
    """Monte Carlo tree search by `search.uct_search`; see `SearchAgent`.

    settings: hyperparameters.
    """

    edges_per_node = 24  # most nodes are never expanded

    def __init__(
        self,
        simulations: int | None = None,
        seconds: float | None = None,
        *,
        threads: int = 1,
        seed: int = 0,
        name: str = "uct",
        settings: UctSettings = UctSettings(),  # noqa: B008 - a constant
    ) -> None:
        self._settings = settings
        super().__init__(simulations, seconds, threads=threads, seed=seed, name=name)

    def _make_search(self, board: Board) -> UctSearchState:
        return make_uct_search(self._settings, WEIGHTS, board.num_actions)
