"""Whole games played by the guided search, in compiled code, on several threads.

A game depends on its seed alone, so that the rows do not depend on how many threads there are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from busenv import Board, Rules
from busenv.agents.mcts.guided import Guide, Settings, begin_search, make_guide, pass_forced
from busenv.agents.mcts.halving import improved_policy, simulate_few, weigh
from busenv.agents.mcts.search import Search, make_search, simulate
from busenv.agents.mcts.search import Settings as BotSettings
from busenv.agents.mcts.tree import Tree, child_of, make_tree, reroot, set_root
from busenv.agents.neural.compiled import Weights
from busenv.agents.planner.evaluation import WEIGHTS
from busenv.core.bits import GOLDEN, mix, seeded
from busenv.core.jit import kernel
from busenv.core.rules.setup import new_game
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER, RULES
from busenv.train.expert.rows import ROW, finish_rows, write_row

LEARNER, PAST, BOT = 0, 1, 2  # who plays a seat
MOST_ROWS = 256  # of a game; what comes later is played and not learned from
SHARES = 4  # of the games that a thread plays one after the other: none waits long for another
PLAY_NOISE = 0.3  # on the priors of searches that are not learned from


class Plan(NamedTuple):
    """How self-play searches.

    full, fast: simulations of a decision that is learned from and of one that is not. full_share:
    of decisions searched in full (playout cap randomisation, Wu 2019, KataGo). early: decisions of
    a game that are drawn by the improved policy, not taken for the best. bot: simulations of `uct`.
    """

    full: int
    fast: int
    full_share: float
    early: int
    bot: int


class Players(NamedTuple):
    """What plays, for one thread: the learner's search in full and in haste, a past self's, and
    `uct`; trees for the learner and for the others; arrays to work in."""

    full: Guide
    fast: Guide
    past: Guide
    bot: Search
    trees: tuple[Tree, Tree, Tree]
    game: np.ndarray
    policy: np.ndarray


def make_players(weights: Weights, past: Weights, plan: Plan, settings: Settings) -> Players:
    """Players for one thread. weights: of the learner; past: of a past self."""
    actions = len(weights.logits_bias)
    full = make_guide(settings._replace(noise=1.0), weights)
    fast = full._replace(settings=settings._replace(noise=PLAY_NOISE))
    nodes = 4 * max(plan.full, plan.bot) + 64
    return Players(
        full,
        fast,
        make_guide(fast.settings, past),
        make_search(BotSettings(), WEIGHTS, actions),
        tuple(make_tree(nodes, 24 * nodes + 512) for _ in range(3)),  # type: ignore[arg-type]
        np.zeros(1, GAME),
        np.zeros(actions, np.float32),
    )


@kernel
def _uniform(tree):
    """A number from 0 to below 1 out of a tree's random stream."""
    tree.noise[0] += GOLDEN
    return np.float64(mix(tree.noise[0]) >> np.uint64(11)) / 2.0**53


@kernel
def _draw(tree, policy):
    """An action, drawn by a policy."""
    rest, last = _uniform(tree), 0
    for action in range(policy.shape[0]):
        if policy[action] > 0.0:
            last = action
            rest -= policy[action]
            if rest < 0.0:
                break
    return last


@kernel
def _opponent_action(owner, noise, plan, players, board):
    """What a past self or the bot takes."""
    tree, policy = players.trees[2], players.policy
    set_root(tree, players.game)
    tree.noise[0] = noise
    policy[:] = 0.0
    if owner == PAST:
        begin_search(tree, players.past, board)
        simulate_few(tree, players.past, board, plan.fast)
        weigh(tree, players.past, True, policy)
    else:
        simulate(tree, players.bot, board, plan.bot)
        for k in range(tree.nodes[0].edges):
            edge = tree.edges[tree.nodes[0].first + k]
            policy[edge.action] = edge.visits
    return np.int64(policy.argmax())


@kernel
def _learner_action(tree, guide, full, early, plan, policy, board, row):
    """What the learner takes, searching from a tree's root; in full, the row of the decision."""
    begin_search(tree, guide, board)
    simulate_few(tree, guide, board, plan.full if full else plan.fast)
    policy[:] = 0.0
    if early:
        improved_policy(tree, guide, policy)
        action = _draw(tree, policy)
    else:
        weigh(tree, guide, True, policy)
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
    alone = owners[: np.int64(g.players)].max() == LEARNER
    while g.phase != OVER:
        owner = owners[g.seat]
        if owner == LEARNER:
            if not kept:
                set_root(tree, players.game)
            full = _uniform(tree) < plan.full_share and count < rows.shape[0]
            guide = players.full if full else players.fast
            early, row = decisions < plan.early, rows[min(count, rows.shape[0] - 1)]
            action = _learner_action(tree, guide, full, early, plan, policy, board, row)
            count += full
        else:
            if _uniform(tree) < plan.full_share and count < rows.shape[0]:
                rows[count].game = g
                count += 1
            tree.noise[0] += GOLDEN
            action = _opponent_action(owner, mix(tree.noise[0]), plan, players, board)
        step(g, b, action)
        pass_forced(g, b, players.full.work)
        decisions += 1
        child = child_of(tree, np.int64(0), action) if alone else np.int64(-1)
        kept = child >= 0
        if kept:
            reroot(tree, child, spare)
            tree, spare = spare, tree
    finish_rows(rows[:count], g)
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
    drawn: Drawn, plan: Plan, settings: Settings, weights: Weights, past: Weights, board: Board
) -> list[np.ndarray]:
    """The rows (ROW) of games, game by game, played one after the other."""
    count = len(drawn.seeds)
    rows, kept = np.zeros((count, MOST_ROWS), ROW), np.zeros(count, np.int64)
    _play_games(
        drawn.seeds, drawn.rules, drawn.first, drawn.owners, plan,
        make_players(weights, past, plan, settings), board.array, rows, kept,
    )  # fmt: skip
    return [rows[i, : kept[i]].copy() for i in range(count)]


class SelfPlay:
    """Plays games of a board with weights that may change in between.

    past: weights of a past self, which `past_share` of the games have a seat of, as `bot_share` of
    them have one of `uct`; the other seats are the learner's. Of the opponents' decisions only what
    became of the game is to be learned, so that a position is worth as much whoever has to decide.
    players: how many play, in turns.
    """

    def __init__(
        self,
        board: Board,
        rules: Rules,
        players: tuple[int, ...],
        plan: Plan,
        settings: Settings,
        threads: int,
    ) -> None:
        self._board, self.plan, self.settings = board, plan, settings
        self._counts, self._threads = players, threads
        self._rules = {count: rules.record(count) for count in players}

    def draw(
        self, games: int, past_share: float, bot_share: float, rng: np.random.Generator
    ) -> Drawn:
        """Some games to be played."""
        counts = np.resize(self._counts, games).astype(np.int64)
        first = rng.integers(0, counts)
        owners = _draw_owners(counts, past_share, bot_share, rng)
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


def _draw_owners(
    counts: np.ndarray, past_share: float, bot_share: float, rng: np.random.Generator
) -> np.ndarray:
    """Whose each seat is: int64, (N, 5). An opponent takes every seat but one, or one only."""
    owners = np.zeros((len(counts), MAX_PLAYERS), np.int64)
    draws, seats = rng.random(len(counts)), rng.integers(0, counts)
    alone = rng.random(len(counts)) < 0.5
    for kind, low, high in ((PAST, 0.0, past_share), (BOT, past_share, past_share + bot_share)):
        which = (draws >= low) & (draws < high)
        owners[which & alone] = kind
        owners[np.flatnonzero(which), seats[which]] = np.where(alone[which], LEARNER, kind)
    return owners


def statistics(rows: list[np.ndarray], drawn: Drawn) -> dict[str, float]:
    """Means over games: points of the learner's seats, rows a game, rounds."""
    kept = np.array([len(some) for some in rows])
    ends = np.array([some[0] for some in rows if len(some)])
    counts, owners = drawn.counts[kept > 0], drawn.owners[kept > 0]
    mine = (owners == LEARNER) & (np.arange(MAX_PLAYERS) < counts[:, None])
    return {
        "games/points": float(ends["points"][mine].mean()),
        "games/rows": float(kept.mean()),
        "games/rounds": float(ends["rounds"].mean()),
    }
