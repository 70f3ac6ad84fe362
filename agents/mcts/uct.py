"""An agent that searches the tree of decisions, for a number of simulations or for a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from busenv import Board, Game
from busenv.agents.base import Agent
from busenv.agents.mcts.search import (
    Settings,
    Tree,
    child_of,
    make_search,
    make_tree,
    reroot,
    search_games,
    set_root,
    simulate,
)
from busenv.agents.planner.evaluation import WEIGHTS
from busenv.checks import check_games, check_seed
from busenv.core.bits import seeded
from busenv.core.state import MAX_PLAYERS

MAX_NODES = 200_000  # of a tree; a search goes on without growing when they are used up
EDGES_PER_NODE = 24  # on average: most nodes are never expanded
BETWEEN_CHECKS = 32  # simulations between two looks at the clock
STREAMS = 64  # random streams of a decision, one for each thread
SEARCHES_KEPT = 3.0  # a tree is kept between decisions, and has space for the nodes of so many


class UctAgent(Agent):
    """Monte Carlo tree search (agents.mcts.search); the tree is kept from decision to decision.

    simulations: of each decision, or None for as many as fit into a time.
    seconds: that time; no account is taken of the time that the other agents need.
    threads: trees grown side by side, which share the simulations; their visits are added up (root
        parallel, Chaslot et al. 2008).
    settings, weights: of the search (agents.mcts.search) and of its evaluation of positions
        (agents.planner.evaluation).

    ValueError unless there are simulations or seconds, one of them, and enough for the threads.
    Without `seconds` the same seed and games lead to the same decisions.
    """

    def __init__(
        self,
        simulations: int | None = None,
        seconds: float | None = None,
        threads: int = 1,
        seed: int = 0,
        name: str = "uct",
        settings: Settings = Settings(),  # noqa: B008 - a constant
        weights: np.ndarray = WEIGHTS,
    ) -> None:
        if (simulations is None) == (seconds is None):
            raise ValueError("uct needs simulations or seconds, one of them")
        if simulations is not None and not 1 <= threads <= simulations:
            raise ValueError(f"uct: {simulations} simulations on {threads} threads; allowed: "
                             "1 thread or more, each with at least one simulation")  # fmt: skip
        if seconds is not None and not (seconds > 0 and threads >= 1):
            raise ValueError(f"uct: {seconds} seconds on {threads} threads; allowed: more than 0")
        self.name = name
        self._simulations, self._seconds, self._threads = simulations, seconds, threads
        self._settings, self._weights = settings, weights
        self._trees: list[Tree] = []
        self._spare: list[Tree] = []  # one for each tree, which `reroot` copies it to
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0
        self.reset(seed)

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
        self._search(game)
        return max(self._visits(), key=lambda pair: pair[1])[0]

    def choose(self, games: np.ndarray, board: Board) -> np.ndarray:
        return self.action_probabilities(games, board).argmax(axis=1)

    def action_probabilities(self, games: np.ndarray, board: Board) -> np.ndarray:
        """Shares of the visits. Simulations are not shared here: each thread searches games of its
        own, and what is found does not depend on how many threads there are."""
        games = check_games(games, board)
        self._history = None
        visits = np.zeros((len(games), board.num_actions), np.float32)
        if self._seconds is not None:
            for i in range(len(games)):
                self._search_one(games[i : i + 1], board, None)
                for action, count in self._visits():
                    visits[i, action] = count
        else:
            decisions = range(self._decisions, self._decisions + len(games))
            seeds = np.array([self._stream(decision, 0) for decision in decisions], np.uint64)
            self._decisions += len(games)
            self._on_threads(self._search_share, games, board, seeds, visits)
        return visits / visits.sum(axis=1, keepdims=True)

    def _search_share(
        self, thread: int, games: np.ndarray, board: Board, seeds: np.ndarray, visits: np.ndarray
    ) -> None:
        """Search a thread's share of the games, and put how often it took what into `visits`."""
        share = slice(thread, None, self._threads)
        search = make_search(self._settings, self._weights, board.num_actions)
        found = visits[share].copy()
        search_games(
            self._trees[thread],
            search,
            games[share].copy(),
            board.array,
            self._simulations,
            seeds[share].copy(),
            found,
        )
        visits[share] = found

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

    def estimate(self, game: Game) -> tuple[list[float], list[tuple[int, float]]]:
        """Each seat's chance to win, and the legal actions with their shares of the visits."""
        self._search(game)
        wins = np.sum([tree.wins for tree in self._trees], axis=0)
        visits = self._visits()
        total = sum(count for _, count in visits)
        chances = (wins[: game.num_players] / wins[MAX_PLAYERS]).tolist()
        shares = [(action, count / total) for action, count in visits]
        return chances, sorted(shares, key=lambda pair: -pair[1])

    def _search(self, game: Game) -> None:
        """Search a game, from what is known of it if it goes on from the last one."""
        history, known = game.history, self._history
        goes_on = known is not None and history[: len(known)] == known
        moves = history[len(known or []) :] if goes_on else None
        self._search_one(game.arrays()[0], game.board, moves)
        self._history = history

    def _search_one(self, games: np.ndarray, board: Board, moves: list[int] | None) -> None:
        """Search from one position. moves: that led to it from the roots; None: begin anew."""
        self._decisions += 1
        self._on_threads(self._grow_tree, games, board, moves)

    def _make_trees(self) -> None:
        size = MAX_NODES
        if self._simulations is not None:
            size = min(int(SEARCHES_KEPT * self._simulations) + 64, MAX_NODES)
        for _ in range(self._threads):
            self._trees.append(make_tree(size, EDGES_PER_NODE * size + 512))
            self._spare.append(make_tree(size, EDGES_PER_NODE * size + 512))

    def _grow_tree(
        self, thread: int, games: np.ndarray, board: Board, moves: list[int] | None
    ) -> None:
        """One thread's part of a search from one position."""
        if moves is None or not self._follow(thread, games, moves):
            set_root(self._trees[thread], games)
            self._trees[thread].noise[0] = self._stream(self._decisions, thread)
        tree = self._trees[thread]
        search = make_search(self._settings, self._weights, board.num_actions)
        if self._simulations is not None:
            share, more = divmod(self._simulations, self._threads)
            simulate(tree, search, board.array, share + (thread < more))
        else:
            assert self._seconds is not None
            end = time.monotonic() + self._seconds
            simulate(tree, search, board.array, 1)
            while time.monotonic() < end and tree.nodes[0]["edges"] > 1:
                simulate(tree, search, board.array, BETWEEN_CHECKS)

    def _follow(self, thread: int, games: np.ndarray, moves: list[int]) -> bool:
        """Move a root along the moves; whether the tree has the position that they led to."""
        tree, root = self._trees[thread], 0
        for action in moves:
            root = child_of(tree, root, action) if root >= 0 else -1
        if root < 0 or tree.nodes["game"][root].tobytes() != games[0].tobytes():
            return False
        reroot(tree, root, self._spare[thread])
        self._trees[thread], self._spare[thread] = self._spare[thread], tree
        return True

    def _visits(self) -> list[tuple[int, int]]:
        """How often each action of the root was taken, over all trees."""
        counts: dict[int, int] = {}
        for tree in self._trees:
            root = tree.nodes[0]
            edges = tree.edges[root["first"] : root["first"] + root["edges"]]
            for action, visits in zip(
                edges["action"].tolist(), edges["visits"].tolist(), strict=True
            ):
                counts[action] = counts.get(action, 0) + visits
        return sorted(counts.items())
