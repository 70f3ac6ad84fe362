"""The base class of agents that search: budget, threads, and trees reused between decisions."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import Agent
from busenv.agents.search.search import (
    begin_search,
    follow,
    root_weights,
    search_games,
    search_root,
    simulate,
)
from busenv.agents.search.tree import Tree, make_tree, reroot, set_root
from busenv.core.bits import seeded
from busenv.core.state import MAX_PLAYERS
from busenv.validation import check_games, check_seed

MAX_NODES = 200_000  # of a tree; when they are used up, simulations continue without new nodes
CLOCK_INTERVAL = 32  # simulations between two checks of the clock
STREAMS = 64  # random streams of a decision, one for each thread
TREE_SEARCHES = 3.0  # searches whose nodes a reused tree has space for


class SearchAgent(Agent):
    """A tree search (`agents.search.search`) whose trees are reused from decision to decision.

    simulations: per decision, or None for as many as fit into `seconds` per decision.
    threads: number of trees grown in parallel. They share the simulations, and the weights of
        their root actions are added up (root parallelisation, Chaslot et al. 2008).

    Raises ValueError unless exactly one of simulations and seconds is given, and each thread has a
    simulation. Without `seconds`, the same seed and games lead to the same decisions.
    """

    edges_per_node: int  # on average, in a full tree

    def __init__(
        self,
        simulations: int | None,
        seconds: float | None,
        threads: int,
        seed: int,
        name: str,
    ) -> None:
        kind = name.partition(":")[0].partition("@")[0]
        if (simulations is None) == (seconds is None):
            raise ValueError(f"{kind} needs either simulations or seconds")
        if simulations is not None and not 1 <= threads <= simulations:
            raise ValueError(f"{kind}: {simulations} simulations on {threads} threads; allowed: "
                             "1 thread or more, each with at least one simulation")  # fmt: skip
        if seconds is not None and not (seconds > 0 and threads >= 1):
            raise ValueError(
                f"{kind}: {seconds} seconds on {threads} threads; allowed: more than 0"
            )
        self.name = name
        self._simulations, self._seconds, self._threads = simulations, seconds, threads
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0
        self.close()
        self.reset(seed)

    @abstractmethod
    def _make_search(self, board: Board) -> Any:
        """Return a search state for one thread; ValueError when the board is not supported."""

    def reset(self, seed: int) -> None:
        self._seed = check_seed(seed)
        self._history: list[int] | None = None
        self._decisions = 0

    def close(self) -> None:
        """Release threads and trees. The agent remains usable."""
        if self._pool:
            self._pool.shutdown()
            self._pool, self._pool_process = None, 0
        self._history = None
        self._board: Board | None = None
        self._searches: list[Any] = []  # one for each thread
        self._trees: list[Tree] = []
        self._spare: list[Tree] = []  # one for each tree, which `reroot` copies it to

    def act(self, game: Game) -> int:
        if game.is_over:
            raise ValueError("the game is over: there is nothing to choose")
        legal = game.legal_actions()
        if len(legal) == 1:
            return legal[0]
        return int(self._search(game).argmax())

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self.action_probabilities(games, board).argmax(axis=1)

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Return the weights of the root actions, normalised.

        Each thread searches different games, so the result is independent of their number.
        """
        games = check_games(games, board)
        self._history = None
        weights = np.zeros((len(games), board.num_actions), np.float32)
        if self._seconds is not None:
            for i in range(len(games)):
                weights[i] = self._search_one(games[i : i + 1], board, None)
        else:
            decisions = range(self._decisions, self._decisions + len(games))
            seeds = np.array([self._stream(decision, 0) for decision in decisions], np.uint64)
            self._decisions += len(games)
            self._on_threads(board, self._search_share, games, seeds, weights)
        return weights / weights.sum(axis=1, keepdims=True)

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """Return each seat's chance to win, and the legal actions with their share of the weights.

        Raises ValueError when the game is over.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to estimate")
        weights = self._search(game)
        wins = np.sum([tree.wins for tree in self._trees], axis=0)
        chances = (wins[: game.num_players] / wins[MAX_PLAYERS]).tolist()
        legal = game.legal_actions()
        shares = zip(legal, (weights[legal] / weights.sum()).tolist(), strict=True)
        return chances, sorted(shares, key=lambda pair: -pair[1])

    @property
    def simulated(self) -> int:
        """Simulations from the current position, of all threads."""
        return int(sum(tree.wins[MAX_PLAYERS] for tree in self._trees))

    def _search_share(
        self, thread: int, games: np.ndarray, seeds: np.ndarray, weights: np.ndarray
    ) -> None:
        """Search a thread's share of the games and write their weights."""
        assert self._board is not None
        share = slice(thread, None, self._threads)
        own = weights[share].copy()
        search_games(
            self._trees[thread], self._searches[thread], games[share].copy(), self._board.array,
            self._simulations, seeds[share].copy(), own,
        )  # fmt: skip
        weights[share] = own

    def _on_threads(self, board: Board, work: Callable[..., None], *arguments: Any) -> None:
        """Call work(thread, *arguments) on each thread, the first on the calling one."""
        self._prepare(board)
        if self._threads > 1 and self._pool_process != os.getpid():  # a forked process has none
            self._pool, self._pool_process = ThreadPoolExecutor(self._threads - 1), os.getpid()
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
            self._searches = [self._make_search(board) for _ in range(self._threads)]
            self._board, self._history = board, None
        if not self._trees:
            size = MAX_NODES
            if self._simulations is not None:
                size = min(int(TREE_SEARCHES * self._simulations) + 64, MAX_NODES)
            edges = self.edges_per_node * size + 512
            self._trees = [make_tree(size, edges) for _ in range(self._threads)]
            self._spare = [make_tree(size, edges) for _ in range(self._threads)]

    def _stream(self, decision: int, thread: int) -> int:
        """Return the start of a thread's random stream for a decision."""
        return int(seeded(np.uint64(self._seed), decision * STREAMS + thread))

    def _search(self, game: Game) -> np.ndarray:
        """Return the weights of a game's actions, float32, (num_actions,).

        The trees are reused when the game continues the one searched last.
        """
        history, last = game.history, self._history
        continues = last is not None and history[: len(last)] == last
        moves = history[len(last or []) :] if continues else None
        weights = self._search_one(game.arrays()[0], game.board, moves)
        self._history = history
        return weights

    def _search_one(self, games: np.ndarray, board: Board, moves: list[int] | None) -> np.ndarray:
        """Search one position. moves: that led to it from the roots; None: start new trees."""
        self._decisions += 1
        weights = np.zeros((self._threads, board.num_actions), np.float32)
        self._on_threads(board, self._grow_tree, games, moves, weights)
        return weights.sum(axis=0)

    def _grow_tree(
        self, thread: int, games: np.ndarray, moves: list[int] | None, weights: np.ndarray
    ) -> None:
        """Run one thread's part of a search, and write its weights into a row."""
        assert self._board is not None
        search, board = self._searches[thread], self._board.array
        if moves is None or not self._reuse_tree(thread, games, moves):
            set_root(self._trees[thread], games)
            self._trees[thread].noise[0] = self._stream(self._decisions, thread)
        tree = self._trees[thread]
        if self._simulations is not None:
            share, more = divmod(self._simulations, self._threads)
            search_root(tree, search, board, share + (thread < more), weights[thread])
            return
        assert self._seconds is not None
        end = time.monotonic() + self._seconds
        begin_search(tree, search, board)
        simulate(tree, search, board, 1)
        while time.monotonic() < end and tree.nodes[0]["edges"] > 1:
            simulate(tree, search, board, CLOCK_INTERVAL)
        root_weights(tree, search, weights[thread])

    def _reuse_tree(self, thread: int, games: np.ndarray, moves: list[int]) -> bool:
        """Move a root along the moves; return whether the tree has the position they led to."""
        assert self._board is not None
        tree, search = self._trees[thread], self._searches[thread]
        root = int(follow(tree, search, self._board.array, np.array(moves, np.int64)))
        if root < 0 or tree.nodes["game"][root].tobytes() != games[0].tobytes():
            return False
        if root > 0:
            reroot(tree, root, self._spare[thread])
            self._trees[thread], self._spare[thread] = self._spare[thread], tree
        return True
