"""What agents have in common that search the tree of decisions: a number of simulations or a time,
threads, and a tree that is kept from decision to decision."""

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
from busenv.agents.search.tree import Tree, make_tree, reroot, set_root
from busenv.core.bits import seeded
from busenv.core.state import MAX_PLAYERS
from busenv.validation import check_games, check_seed

MAX_NODES = 200_000  # of a tree; a search goes on without growing when they are used up
BETWEEN_CHECKS = 32  # simulations between two looks at the clock
STREAMS = 64  # random streams of a decision, one for each thread
SEARCHES_KEPT = 3.0  # a tree is kept between decisions, and has space for the nodes of so many


class SearchAgent(Agent):
    """A search; the tree is kept from decision to decision.

    simulations: of each decision, or None for as many as fit into a time.
    seconds: that time; no account is taken of the time that the other agents need.
    threads: trees grown side by side, which share the simulations; what they find is added up (root
        parallel, Chaslot et al. 2008).

    ValueError unless there are simulations or seconds, one of them, and enough for the threads.
    Without `seconds` the same seed and games lead to the same decisions.
    """

    edges_per_node: int  # on average

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
            raise ValueError(f"{kind} needs simulations or seconds, one of them")
        if simulations is not None and not 1 <= threads <= simulations:
            raise ValueError(f"{kind}: {simulations} simulations on {threads} threads; allowed: "
                             "1 thread or more, each with at least one simulation")  # fmt: skip
        if seconds is not None and not (seconds > 0 and threads >= 1):
            raise ValueError(
                f"{kind}: {seconds} seconds on {threads} threads; allowed: more than 0"
            )
        self.name = name
        self._simulations, self._seconds, self._threads = simulations, seconds, threads
        self._trees: list[Tree] = []
        self._spare: list[Tree] = []  # one for each tree, which `reroot` copies it to
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0
        self.reset(seed)

    @abstractmethod
    def _make_search(self, board: Board) -> Any:
        """What the kernels of one thread take besides a tree."""

    @abstractmethod
    def _begin(self, tree: Tree, search: Any, board: Board) -> None:
        """See to it that the root of a tree is expanded."""

    @abstractmethod
    def _simulate(self, tree: Tree, search: Any, board: Board, simulations: int) -> None:
        """Grow a tree by some simulations."""

    @abstractmethod
    def _weigh(self, tree: Tree, search: Any, weights: np.ndarray) -> None:
        """Add what a tree makes of the root's actions to weights (float32, (num_actions,))."""

    @abstractmethod
    def _follow(self, tree: Tree, search: Any, board: Board, moves: list[int]) -> int:
        """The node that moves lead to from the root; -1 when there is none."""

    @abstractmethod
    def _search_games(
        self,
        tree: Tree,
        search: Any,
        games: np.ndarray,
        board: Board,
        seeds: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        """Search many games by `simulations` each; weights: float32, (N, num_actions)."""

    def reset(self, seed: int) -> None:
        self._seed = check_seed(seed)
        self._history: list[int] | None = None
        self._decisions = 0

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()
            self._pool, self._pool_process = None, 0
        self._trees, self._spare = [], []

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
        """Shares of the weights. Simulations are not shared here: each thread searches games of its
        own, and what is found does not depend on how many threads there are."""
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
            self._on_threads(self._search_share, games, board, seeds, weights)
        return weights / weights.sum(axis=1, keepdims=True)

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """Each seat's chance to win, and the legal actions with their shares of the weights."""
        weights = self._search(game)
        wins = np.sum([tree.wins for tree in self._trees], axis=0)
        chances = (wins[: game.num_players] / wins[MAX_PLAYERS]).tolist()
        legal = game.legal_actions()
        shares = zip(legal, (weights[legal] / weights.sum()).tolist(), strict=True)
        return chances, sorted(shares, key=lambda pair: -pair[1])

    @property
    def simulated(self) -> int:
        """Simulations that were begun where the game now stands, all threads' together."""
        return int(sum(tree.wins[MAX_PLAYERS] for tree in self._trees))

    def _search_share(
        self, thread: int, games: np.ndarray, board: Board, seeds: np.ndarray, weights: np.ndarray
    ) -> None:
        """Search a thread's share of the games, and put what it makes of them into `weights`."""
        share = slice(thread, None, self._threads)
        found = weights[share].copy()
        self._search_games(
            self._trees[thread],
            self._make_search(board),
            games[share].copy(),
            board,
            seeds[share].copy(),
            found,
        )
        weights[share] = found

    def _on_threads(self, work: Callable[..., None], *arguments: Any) -> None:
        """Call work(thread, *arguments) on each thread, the first on this one."""
        if not self._trees:
            self._make_trees()
        if self._threads > 1 and self._pool_process != os.getpid():  # a forked process has none
            self._pool, self._pool_process = ThreadPoolExecutor(self._threads - 1), os.getpid()
        helpers: list[Future[None]] = []
        try:
            for thread in range(1, self._threads):
                assert self._pool is not None
                helpers.append(self._pool.submit(work, thread, *arguments))
            work(0, *arguments)
        finally:
            wait(helpers)  # they work on this agent's trees
        for helper in helpers:
            helper.result()

    def _stream(self, decision: int, thread: int) -> int:
        """Start of a thread's random stream for a decision."""
        return int(seeded(np.uint64(self._seed), decision * STREAMS + thread))

    def _search(self, game: Game) -> np.ndarray:
        """Search a game, from what is known of it if it goes on from the last one: weights of the
        actions, float32, (num_actions,)."""
        history, known = game.history, self._history
        goes_on = known is not None and history[: len(known)] == known
        moves = history[len(known or []) :] if goes_on else None
        weights = self._search_one(game.arrays()[0], game.board, moves)
        self._history = history
        return weights

    def _search_one(self, games: np.ndarray, board: Board, moves: list[int] | None) -> np.ndarray:
        """Search from one position. moves: that led to it from the roots; None: begin anew."""
        self._decisions += 1
        weights = np.zeros((self._threads, board.num_actions), np.float32)
        self._on_threads(self._grow_tree, games, board, moves, weights)
        return weights.sum(axis=0)

    def _make_trees(self) -> None:
        size = MAX_NODES
        if self._simulations is not None:
            size = min(int(SEARCHES_KEPT * self._simulations) + 64, MAX_NODES)
        for _ in range(self._threads):
            self._trees.append(make_tree(size, self.edges_per_node * size + 512))
            self._spare.append(make_tree(size, self.edges_per_node * size + 512))

    def _grow_tree(
        self,
        thread: int,
        games: np.ndarray,
        board: Board,
        moves: list[int] | None,
        weights: np.ndarray,
    ) -> None:
        """One thread's part of a search from one position; its weights into a row."""
        search = self._make_search(board)
        if moves is None or not self._keep_tree(thread, search, games, board, moves):
            set_root(self._trees[thread], games)
            self._trees[thread].noise[0] = self._stream(self._decisions, thread)
        tree = self._trees[thread]
        self._begin(tree, search, board)
        if self._simulations is not None:
            share, more = divmod(self._simulations, self._threads)
            self._simulate(tree, search, board, share + (thread < more))
        else:
            assert self._seconds is not None
            end = time.monotonic() + self._seconds
            self._simulate(tree, search, board, 1)
            while time.monotonic() < end and tree.nodes[0]["edges"] > 1:
                self._simulate(tree, search, board, BETWEEN_CHECKS)
        self._weigh(tree, search, weights[thread])

    def _keep_tree(
        self, thread: int, search: Any, games: np.ndarray, board: Board, moves: list[int]
    ) -> bool:
        """Move a root along the moves; whether the tree has the position that they led to."""
        tree = self._trees[thread]
        root = self._follow(tree, search, board, moves)
        if root < 0 or tree.nodes["game"][root].tobytes() != games[0].tobytes():
            return False
        if root == 0:  # it is asked once more about the same position
            return True
        reroot(tree, root, self._spare[thread])
        self._trees[thread], self._spare[thread] = self._spare[thread], tree
        return True
