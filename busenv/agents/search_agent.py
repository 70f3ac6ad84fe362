"""The base class of agents that search: budget, threads, and trees reused between decisions."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import CompiledAgent, Estimate
from busenv.core.bits import seeded
from busenv.core.state import MAX_PLAYERS
from busenv.search.sequential_halving import policy_chances
from busenv.search.solver import is_decided
from busenv.search.tree import Tree, make_tree
from busenv.search.tree_search import NO_MOVES, root_weights, search_games, search_root, simulate

MAX_NODES = 200_000  # of a tree; when they are used up, simulations continue without new nodes
CLOCK_INTERVAL = 32  # simulations between two checks of the clock
STREAMS = 64  # random streams of a decision, one for each thread
TREE_SEARCHES = 3.0  # searches whose nodes a reused tree has space for


class SearchAgent(CompiledAgent):
    """A tree search (`search.tree_search`) whose trees are reused from decision to decision.

    simulations: per decision, or None for as many as fit into `seconds` per decision.
    threads: number of trees grown in parallel, at most STREAMS. They share the simulations, and the
        weights of their root actions are added up (root parallelisation, Chaslot et al. 2008).

    Raises ValueError unless exactly one of simulations and seconds is given, and each thread has a
    simulation. Without `seconds`, the same seed and games lead to the same decisions.
    """

    edges_per_node: int  # on average, in a full tree
    _searches: list[Any]  # one for each thread

    def __init__(
        self, simulations: int | None, seconds: float | None, *, threads: int, seed: int, name: str
    ) -> None:
        kind = name.partition(":")[0].partition("@")[0]
        if (simulations is None) == (seconds is None):
            raise ValueError(f"{kind} needs either simulations or seconds")
        most = STREAMS if simulations is None else min(simulations, STREAMS)
        if not (1 <= threads <= most and (seconds is None or seconds > 0)):
            budget = f"{seconds} seconds" if simulations is None else f"{simulations} simulations"
            raise ValueError(
                f"{kind}: {budget} on {threads} threads; allowed: 1 to {STREAMS} threads, each "
                "with at least one simulation, and more than 0 seconds"
            )
        self._simulations, self._seconds, self._threads = simulations, seconds, threads
        self._pool: ThreadPoolExecutor | None = None  # kept: starting threads is slow
        super().__init__(name, seed)
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # Threads cannot be copied or pickled, and copied search states would not follow later
        # changes of the copy's network: `_prepare` makes new ones.
        state = super().__getstate__()
        return {**state, "_pool": None, "_searches": []}

    @abstractmethod
    def _make_search(self, board: Board) -> Any:
        """Return a search state for one thread; ValueError when the board is not supported."""

    def reset(self, seed: int) -> None:
        with self._lock:
            super().reset(seed)
            self._history: list[int] | None = None
            self._decisions = 0

    def close(self) -> None:
        """Release threads and trees. The agent remains usable."""
        with self._lock:
            if self._pool:
                self._pool.shutdown()
                self._pool = None
            self._history = None
            self._board: Board | None = None
            self._searches = []
            self._trees: list[Tree] = []
            self._spare: list[Tree] = []  # to which `reroot` copies the subtree that is kept

    def _act(self, game: Game) -> int:
        legal = game.legal_actions()
        return legal[0] if len(legal) == 1 else int(self._search(game).argmax())

    def _choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self._probabilities(games, board).argmax(axis=1)

    def _probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return the weights of the root actions, normalised.

        Each thread searches different games, so the result is independent of their number.
        """
        self._history = None
        weights = np.zeros((len(games), board.num_actions), np.float32)
        if self._seconds is not None:
            for i in range(len(games)):
                weights[i] = self._search_one(games[i : i + 1], board, NO_MOVES)
        else:
            decisions = range(self._decisions, self._decisions + len(games))
            seeds = np.array([self._stream(decision, 0) for decision in decisions], np.uint64)
            self._decisions += len(games)
            self._on_threads(board, self._search_share, games, seeds, weights)
        return weights / weights.sum(axis=1, keepdims=True)

    def _estimate(self, game: Game) -> Estimate:
        """Return each seat's chance to win, and the legal actions' shares of the weights."""
        weights = self._search(game)
        chances = np.zeros((self._threads, MAX_PLAYERS))
        for tree, of_tree in zip(self._trees, chances, strict=True):
            policy_chances(tree, weights, of_tree)
        legal = game.legal_actions()
        shares = zip(legal, (weights[legal] / weights.sum()).tolist(), strict=True)
        by_share = sorted(shares, key=lambda pair: -pair[1])
        return chances.mean(axis=0)[: game.num_players].tolist(), by_share

    def action_values(self) -> dict[int, float]:
        """Return the mean return by visited action of the position that was searched last.

        Only `act` and `estimate` search in this sense; `act` does not search when one action is
        legal. Empty after a batch. A return is that of the seat to decide, 0 to 1: its chance to
        win, mixed with its points.
        """
        trees = [] if self._history is None else self._trees
        roots = [(tree, tree.nodes[0]) for tree in trees]
        edges = [tree.edges[r["first"] : r["first"] + r["edges"]] for tree, r in roots]
        if not edges:
            return {}
        visits, totals = (np.sum([e[name] for e in edges], axis=0) for name in ("visits", "total"))
        visited = visits > 0
        values = (totals[visited] / visits[visited]).tolist()
        return dict(zip(edges[0]["action"][visited].tolist(), values, strict=True))

    @property
    def simulated(self) -> int:
        """Simulations from the position that was searched last, of all threads."""
        return int(sum(tree.wins[MAX_PLAYERS] for tree in self._trees))

    def _search_share(
        self, thread: int, games: np.ndarray, seeds: np.ndarray, weights: np.ndarray
    ) -> None:
        """Search a thread's share of the games and write their weights."""
        assert self._board is not None
        search_games(
            self._trees[thread], self._searches[thread], games, self._board.array,
            self._simulations, seeds, thread, self._threads, weights,
        )  # fmt: skip

    def _on_threads(self, board: Board, work: Callable[..., None], *arguments: Any) -> None:
        """Call work(thread, *arguments) on each thread, the first on the calling one."""
        self._prepare(board)
        if self._threads > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads - 1)
        helpers: list[Future[None]] = []
        try:
            for thread in range(1, self._threads):
                assert self._pool is not None
                helpers.append(self._pool.submit(work, thread, *arguments))
            work(0, *arguments)
        finally:
            wait(helpers)  # they use this agent's trees
        for helper in helpers:
            helper.result()

    def _prepare(self, board: Board) -> None:
        """Make the trees and search states of a board unless they exist."""
        if self._board is None or self._board.fingerprint != board.fingerprint:
            self._board, self._history, self._searches = board, None, []
            for tree in self._trees:
                tree.used[:] = 0  # kernels must not read positions of a board of another size
        if not self._searches:
            self._searches = [self._make_search(board) for _ in range(self._threads)]
        if not self._trees:
            size = MAX_NODES
            if self._simulations is not None:
                size = min(int(TREE_SEARCHES * self._simulations) + 64, MAX_NODES)
            edges = self.edges_per_node * size + 512
            self._trees = [make_tree(size, edges) for _ in range(self._threads)]
            self._spare = [make_tree(size, edges) for _ in range(self._threads)]

    def _stream(self, decision: int, thread: int) -> np.uint64:
        """Return the start of a thread's random stream for a decision."""
        return np.uint64(seeded(self._rng_state[0], decision * STREAMS + thread))

    def _search(self, game: Game) -> np.ndarray:
        """Return the weights of a game's actions, float32, (num_actions,).

        The trees are reused when the game continues the one searched last.
        """
        history, last = game.history, self._history
        self._history = None  # until the search has succeeded
        continues = last is not None and history[: len(last)] == last
        moves = np.array(history[len(last or []) :], np.int64) if continues else NO_MOVES
        weights = self._search_one(game.arrays()[0], game.board, moves)
        self._history = history
        return weights

    def _search_one(self, games: np.ndarray, board: Board, moves: np.ndarray) -> np.ndarray:
        """Search one position. moves: int64, that led to it from the roots; else NO_MOVES."""
        self._decisions += 1
        weights = np.zeros((self._threads, board.num_actions), np.float32)
        self._on_threads(board, self._grow_tree, games, moves, weights)
        return weights.sum(axis=0)

    def _grow_tree(
        self, thread: int, games: np.ndarray, moves: np.ndarray, weights: np.ndarray
    ) -> None:
        """Run one thread's part of a search, and write its weights into a row."""
        assert self._board is not None
        end = time.monotonic() + (self._seconds or 0.0)
        tree, spare, out = self._trees[thread], self._spare[thread], weights[thread]
        search, board = self._searches[thread], self._board.array
        share, more = divmod(self._simulations or 1, self._threads)
        simulations = share + (thread < more) if self._seconds is None else 1
        seed = self._stream(self._decisions, thread)
        if search_root(tree, spare, search, games, board, moves, seed, simulations, out):
            tree, spare = spare, tree
        self._trees[thread], self._spare[thread] = tree, spare
        if self._seconds is not None:
            while time.monotonic() < end and tree.nodes[0]["edges"] > 1 and not is_decided(tree):
                simulate(tree, search, board, CLOCK_INTERVAL)
            out[:] = 0.0
            root_weights(tree, search, out)
