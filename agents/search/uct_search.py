"""Monte Carlo tree search for several players by knowledge of the game, compiled.

A simulation walks down the tree (agents.search.tree) to where it ends. There a playout of a few
rounds, or in a long search to the end, begins (agents.search.playout), and the position that it leads
to is valued by the logits of winning (agents.planner.evaluation). A node that is reached a second
time is expanded: each of its actions is tried, and the evaluation of what it leads to gives its
prior probability and its prior value. Every seat maximises its own return (max^n, Luckhardt and
Irani 1986) by PUCT (Rosin 2011; Silver et al. 2017).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.agents.planner.evaluation import (
    EvaluationWorkspace,
    evaluate,
    find_chances,
    make_evaluation_workspace,
    relative_value,
)
from busenv.agents.search.playout import TO_THE_END, playout
from busenv.agents.search.tree import MAX_DEPTH, add_node, set_root
from busenv.core.bits import GOLDEN, below, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import legal_ids
from busenv.core.rules.step import step
from busenv.core.state import MAX_PLAYERS, OVER


class UctSettings(NamedTuple):
    """Parameters of the search.

    exploration: weight of the prior in PUCT.
    prior_width: points by which an action's value is behind the best one's when its prior is 1/e
        of the best one's.
    prior_visits: visits that an action's prior value counts for beside its simulations.
    rounds: rounds that a playout goes on for, while the root has fewer visits than `short`; after
        that to the end. What the evaluation believes helps a short search and misleads a long one.
    win_share: weight of winning in the return; the rest is the margin's, so that a seat that is
        behind still fights.
    margin_width: margin, in logits of winning, that counts as a whole return.
    noise: points of noise on an action's value, so that no two searches are the same.
    """

    exploration: float = 0.25
    prior_width: float = 3.0
    prior_visits: float = 2.0
    rounds: int = 2
    short: int = 1000
    win_share: float = 0.6
    margin_width: float = 12.0
    noise: float = 0.1


class Search(NamedTuple):
    """What kernels that grow a tree take besides it: what they are tuned by, arrays to work in.

    weights: float64, (4, COUNT), of `busenv.agents.planner.evaluation`.
    returns: float64, (5,), what `_find_returns` finds for each seat.
    """

    settings: UctSettings
    weights: np.ndarray
    work: EvaluationWorkspace
    returns: np.ndarray


def make_search(settings: UctSettings, weights: np.ndarray, num_actions: int) -> Search:
    """A search on boards with a number of action ids."""
    work = make_evaluation_workspace(num_actions)
    return Search(settings, weights, work, np.zeros(MAX_PLAYERS))


@kernel
def _find_returns(g, settings, evaluation, returns):
    """Returns, 0 to 1 each, of a position that was evaluated, and the chances to win."""
    find_chances(g, evaluation)
    win_logits, chances, mean = evaluation.win_logits, evaluation.chances, 0.0
    for seat in range(g.players):
        mean += win_logits[seat] / g.players
    for seat in range(g.players):
        margin = min(max(0.5 + (win_logits[seat] - mean) / settings.margin_width, 0.0), 1.0)
        returns[seat] = settings.win_share * chances[seat] + (1.0 - settings.win_share) * margin


@kernel
def _expand(tree, search, at, b):
    """Try every action of a node: an edge each, with its prior and its prior value.

    Nothing is done when the tree is full.
    """
    settings, weights, work, returns = search
    positions, evaluation = work.ahead, work.evaluation
    g, actions, ahead = tree.nodes[at].game, work.actions[0], positions[0]
    count = legal_ids(g, b, work.bits, actions)
    first, best = tree.used[1], -1e9
    if first + count > tree.edges.shape[0]:
        return
    for k in range(count):
        positions[0] = g
        step(ahead, b, actions[k])
        evaluate(ahead, b, weights, evaluation)
        _find_returns(ahead, settings, evaluation, returns)
        tree.noise[0] += GOLDEN
        noise = settings.noise * 1e-6 * np.float64(below(mix(tree.noise[0]), 1000000))
        edge = tree.edges[first + k]
        edge.action = actions[k]
        edge.prior = relative_value(ahead, weights, evaluation.values, g.seat) + noise
        best = max(best, edge.prior)
        edge.prior_value = returns[g.seat]
        edge.node = -1
        edge.visits = 0
        edge.total = 0.0
    total = 0.0
    for k in range(first, first + count):
        tree.edges[k].prior = np.exp((tree.edges[k].prior - best) / settings.prior_width)
        total += tree.edges[k].prior
    for k in range(first, first + count):
        tree.edges[k].prior /= total
    tree.nodes[at].first = first
    tree.nodes[at].edges = count
    tree.used[1] = first + count


@kernel
def _select(tree, at, settings):
    """The edge that PUCT goes along."""
    node = tree.nodes[at]
    found, best = np.int64(node.first), -1e9
    exploration = settings.exploration * np.sqrt(np.float64(node.visits) + 1.0)
    for k in range(np.int64(node.first), np.int64(node.first) + node.edges):
        edge = tree.edges[k]
        visits = np.float64(edge.visits)
        known = settings.prior_visits * edge.prior_value + edge.total
        mean = known / (settings.prior_visits + visits)
        score = mean + exploration * edge.prior / (1.0 + visits)
        if score > best:
            best, found = score, k
    return found


@kernel
def _descend(tree, search, b):
    """Walk from the root to where the tree ends, into `work.ahead[0]`; the length of the path."""
    work = search.work
    at, ahead = np.int64(0), work.ahead[0]
    for depth in range(MAX_DEPTH):
        node = tree.nodes[at]
        if node.edges == 0 and node.game.phase != OVER:
            _expand(tree, search, at, b)
        if node.edges == 0:
            work.ahead[0] = node.game
            return depth
        k = _select(tree, at, search.settings)
        edge = tree.edges[k]
        tree.path[depth, 0] = at
        tree.path[depth, 1] = k
        if edge.node < 0:
            work.ahead[0] = node.game
            step(ahead, b, np.int64(edge.action))
            edge.node = add_node(tree, ahead)
            return depth + 1
        at = np.int64(edge.node)
    work.ahead[0] = tree.nodes[at].game
    return MAX_DEPTH


@kernel
def simulate(tree, search, board, simulations):
    """Run simulations from the root, a game that is not over."""
    settings, weights, work, returns = search
    b, ahead, evaluation = board[0], work.ahead[0], work.evaluation
    for _ in range(simulations):
        depth = _descend(tree, search, b)
        tree.noise[0] += GOLDEN
        rounds = settings.rounds if tree.nodes[0].visits < settings.short else TO_THE_END
        playout(ahead, b, rounds, mix(tree.noise[0]))
        evaluate(ahead, b, weights, evaluation)
        _find_returns(ahead, settings, evaluation, returns)
        for k in range(depth):
            node, edge = tree.nodes[tree.path[k, 0]], tree.edges[tree.path[k, 1]]
            node.visits += 1
            edge.visits += 1
            edge.total += returns[node.game.seat]
        for seat in range(ahead.players):
            tree.wins[seat] += evaluation.chances[seat]
        tree.wins[MAX_PLAYERS] += 1.0


@kernel
def search_games(tree, search, games, board, simulations, seeds, visits):
    """Search many games, one after the other; how often each action was taken into `visits`.

    seeds: uint64, (N,), of the random streams. visits: float32, (N, num_actions), zeros at first.
    A single legal action is taken without a search.
    """
    for i in range(len(games)):
        set_root(tree, games[i : i + 1])
        tree.noise[0] = seeds[i]
        simulate(tree, search, board, 1)
        root = tree.nodes[0]
        if root.edges > 1:
            simulate(tree, search, board, simulations - 1)
        for k in range(root.first, root.first + root.edges):
            visits[i, tree.edges[k].action] = tree.edges[k].visits
