"""Whole games played by the guided search, in compiled code, on several threads.

A game depends on its seed alone, so that the rows do not depend on how many threads there are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from busenv import Board, Rules
from busenv.agents.networks.compiled_mlp import Weights
from busenv.agents.search.az_search import AzSettings
from busenv.agents.search.search import begin_search, pass_forced, root_weights, simulate
from busenv.agents.search.sequential_halving import improved_policy
from busenv.agents.search.tree import child_of, reroot, set_root
from busenv.core.bits import seeded
from busenv.core.jit import kernel
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import MAX_PLAYERS, OVER, RULES
from busenv.train.expert_iteration.policy_selfplay import play_alone
from busenv.train.expert_iteration.selfplay_players import (
    LEARNER,
    SelfPlayConfig,
    draw,
    draw_owners,
    is_learners,
    make_players,
    opponent_turn,
    uniform,
)
from busenv.train.expert_iteration.training_rows import ROW, finish_rows, write_row

MOST_ROWS = 512  # of a game; what comes later is played and not learned from
SHARES = 4  # of the games that a thread plays one after the other: none waits long for another


@kernel
def _learner_action(tree, guide, full, early, plan, policy, board, row):
    """What the learner takes, searching from a tree's root; in full, the row of the decision."""
    begin_search(tree, guide, board)
    simulate(tree, guide, board, plan.full if full else plan.fast)
    policy[:] = 0.0
    if early:
        improved_policy(tree, guide, policy)
        action = draw(tree, policy)
    else:
        root_weights(tree, guide, policy)
        action = np.int64(policy.argmax())
    if full:
        policy[:] = 0.0
        improved_policy(tree, guide, policy)
        for seat in range(tree.nodes[0].game.players):
            row.chances[seat] = tree.wins[seat] / tree.wins[MAX_PLAYERS]
        write_row(row, tree.nodes[0].game, policy)
    return action


@kernel
def _play_game(seed, owners, plan, players, board, rows):
    """Play the game in `players.game` from its beginning to its end; the number of rows."""
    b, g, policy = board[0], players.game[0], players.policy
    tree, spare, _ = players.trees
    tree.noise[0] = seed
    count, decisions, kept = 0, 0, False
    same = is_learners(owners, g)
    while g.phase != OVER:
        owner = owners[g.seat]
        if owner == LEARNER:
            if not kept:
                set_root(tree, players.game)
            full = uniform(tree) < plan.full_share and count < rows.shape[0]
            guide = players.full if full else players.fast
            early, row = decisions < plan.early, rows[min(count, rows.shape[0] - 1)]
            action = _learner_action(tree, guide, full, early, plan, policy, board, row)
            count += full
        else:
            action, count = opponent_turn(owner, plan, players, board, tree, rows, count)
        step(g, b, action)
        pass_forced(g, b, players.full)
        decisions += 1
        child = child_of(tree, np.int64(0), action) if same else np.int64(-1)
        kept = child >= 0
        if kept:
            reroot(tree, child, spare)
            tree, spare = spare, tree
    finish_rows(rows[:count], g, True)
    return count


@kernel
def _play_games(seeds, rules, first, owners, plan, players, board, rows, counts):
    """Play games one after the other: rows (ROW, (N, MOST_ROWS)), how many of each into counts."""
    for i in range(len(seeds)):
        new_game(players.game[0], board[0], rules[i], first[i])
        counts[i] = _play_game(seeds[i], owners[i], plan, players, board, rows[i])


class Drawn(NamedTuple):
    """Games to be played, N of them: all that decides them but who plays.

    seeds: uint64. rules: RULES. first, counts: int64, who begins and how many play. owners: int64,
    (N, 5), who plays a seat.
    """

    seeds: np.ndarray
    rules: np.ndarray
    first: np.ndarray
    owners: np.ndarray
    counts: np.ndarray

    def part(self, which: slice) -> Drawn:
        """Some of the games."""
        return Drawn(*(array[which].copy() for array in self))


def play_drawn(
    drawn: Drawn,
    plan: SelfPlayConfig,
    settings: AzSettings,
    weights: Weights,
    past: Weights,
    board: Board,
) -> list[np.ndarray]:
    """The rows (ROW) of games, game by game, played one after the other."""
    count = len(drawn.seeds)
    rows, kept = np.zeros((count, MOST_ROWS), ROW), np.zeros(count, np.int64)
    play = play_alone if plan.alone else _play_games
    play(
        drawn.seeds, drawn.rules, drawn.first, drawn.owners, plan,
        make_players(weights, past, plan, settings), board.array, rows, kept,
    )  # fmt: skip
    return [rows[i, : kept[i]].copy() for i in range(count)]


class SelfPlay:
    """Plays games of a board with weights that may change in between.

    past: weights of a past self, which `past_share` of the games have a seat of, as `bot_share` of
    them have one of `bots`, drawn for each (`draw_owners`); the other seats are the learner's. Of
    the opponents' decisions only what became of the game is to be learned, so that a position is
    worth as much whoever has to decide; and none of them is kept where the learner plays alone.
    players: how many play, in turns.
    """

    def __init__(
        self,
        board: Board,
        rules: Rules,
        players: tuple[int, ...],
        plan: SelfPlayConfig,
        settings: AzSettings,
        threads: int,
    ) -> None:
        self._board, self.plan, self.settings = board, plan, settings
        self._counts, self._threads = players, threads
        self._rules = {count: rules.record(count) for count in players}

    def draw(
        self,
        games: int,
        past_share: float,
        bot_share: float,
        outnumbered: float,
        bots: tuple[str, ...],
        rng: np.random.Generator,
    ) -> Drawn:
        """Some games to be played."""
        counts = np.resize(self._counts, games).astype(np.int64)
        first = rng.integers(0, counts)
        owners = draw_owners(counts, past_share, bot_share, outnumbered, bots, rng)
        seed = np.uint64(rng.integers(2**62))
        seeds = np.array([seeded(seed, i) for i in range(games)], np.uint64)
        rules = np.array([self._rules[int(count)][0] for count in counts], RULES)
        return Drawn(seeds, rules, first, owners, counts)

    def play(self, drawn: Drawn, weights: Weights, past: Weights) -> list[np.ndarray]:
        """The rows (ROW) of games, game by game."""
        found: list[np.ndarray] = [np.zeros(0, ROW)] * len(drawn.seeds)

        parts = min(SHARES * self._threads, len(found))

        def work(part: int) -> None:
            share = slice(part, None, parts)
            found[share] = play_drawn(
                drawn.part(share), self.plan, self.settings, weights, past, self._board
            )

        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(work, range(parts)))
        return found


def statistics(rows: list[np.ndarray], drawn: Drawn) -> dict[str, float]:
    """Means over games: points of the learner's seats, rows a game, rounds."""
    kept = np.array([len(some) for some in rows])
    ends = np.array([some[0] for some in rows if len(some)])
    counts, owners = drawn.counts[kept > 0], drawn.owners[kept > 0]
    mine = (owners == LEARNER) & (np.arange(MAX_PLAYERS) < counts[:, None])
    return {
        "games/points": float(ends["points"][mine].mean()),
        "games/samples": float(kept.mean()),
        "games/rounds": float(ends["rounds"].mean()),
    }
