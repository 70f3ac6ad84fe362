"""Monte Carlo tree search for several players guided by a network, compiled.

A simulation walks down the tree (agents.search.tree) to a position that it does not have yet. There
the network gives the priors of the actions and every seat's return, if asked for together with
playouts to the end (agents.search.playout); at the end of a game the ranking does. Decisions with one
legal action are passed through. Every seat maximises its own return (max^n, Luckhardt and Irani
1986), at the root by halving (agents.search.halving), below it by PUCT (Silver et al. 2017).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.agents.networks.compiled_mlp import (
    Weights,
    Workspace,
    clear_cache,
    evaluate,
    make_workspace,
    softmax,
)
from busenv.agents.networks.logits import POINTS
from busenv.agents.search.playout import TO_THE_END, playout
from busenv.agents.search.tree import MAX_DEPTH, add_node, child_of
from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import fast_kernel, kernel
from busenv.core.rules.legal import legal_ids
from busenv.core.rules.score import points_of, rank_of
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER

MIN_PRIOR = np.float32(1e-8)  # priors count as at least so much


class GuidedSettings(NamedTuple):
    """What the search is tuned by.

    exploration: weight of the prior in PUCT.
    reduction: by how much an action not yet tried counts as worse than the position, when those
        tried have all of the prior.
    points_share: weight of points in the return, so that a seat that is behind still fights; the
        rest is the chance to win.
    points_width: points ahead of the mean that count as half a return.
    noise: scale of the Gumbel noise on the root's priors; 1 to learn from, less to play.
    candidates: actions at most that simulations are shared out to at the root.
    visit_scale, value_scale: how much values change priors, sigma of Danihelka et al. doubt: visits
        that the root's own worth counts for beside an action's, above 0.
    playouts: from each position that the network is asked about, to the end. playout_share: what
        they count beside the network.
    """

    exploration: float = 0.3
    reduction: float = 0.1
    points_share: float = 0.2
    points_width: float = 10.0
    noise: float = 0.1
    candidates: int = 16
    visit_scale: float = 50.0
    value_scale: float = 0.5
    prior_visits: float = 1.0
    playouts: int = 0
    playout_share: float = 0.6


class SearchState(NamedTuple):
    """What kernels that grow a tree take besides it: what they are tuned by, the network, arrays.

    ahead: GAME, (1,), where the tree is left. played: GAME, (1,), a playout. returns, chances,
        points: float64, (5,), of the seats in a position.
    priors, scores: float32, (num_actions,), of the root's edges, in order. order: int64,
    (num_actions,), the places of candidates among them.
    """

    settings: GuidedSettings
    weights: Weights
    work: Workspace
    ahead: np.ndarray
    played: np.ndarray
    returns: np.ndarray
    chances: np.ndarray
    points: np.ndarray
    priors: np.ndarray
    scores: np.ndarray
    order: np.ndarray


def make_search_state(settings: GuidedSettings, weights: Weights) -> SearchState:
    """A guide for one thread. weights: of a network that tells of every seat."""
    work, actions = make_workspace(weights), len(weights.logits_bias)
    returns, chances, points = (np.zeros(MAX_PLAYERS) for _ in range(3))
    priors, scores = (np.zeros(actions, np.float32) for _ in range(2))
    order = np.zeros(actions, np.int64)
    ahead, played = np.zeros(1, GAME), np.zeros(1, GAME)
    return SearchState(
        settings, weights, work, ahead, played, returns, chances, points, priors, scores, order
    )


@kernel
def _find_returns(players, settings, chances, points, returns):
    """Returns, 0 to 1 each, from chances to win and from points."""
    mean, share = 0.0, settings.points_share
    for seat in range(players):
        mean += points[seat] / players
    for seat in range(players):
        ahead = 0.5 + (points[seat] - mean) / (2.0 * settings.points_width)
        returns[seat] = (1.0 - share) * chances[seat] + share * min(max(ahead, 0.0), 1.0)


@kernel
def read_values(g, values, chances, points):
    """Chances and points by seat, from what the network told who decides."""
    players, best, total = np.int64(g.players), -1e9, 0.0
    for slot in range(players):
        best = max(best, np.float64(values[slot]))
    for slot in range(players):
        seat = (np.int64(g.seat) + slot) % players
        chances[seat] = np.exp(np.float64(values[slot]) - best)
        points[seat] = np.float64(values[MAX_PLAYERS + slot]) * POINTS
        total += chances[seat]
    for seat in range(players):
        chances[seat] /= total


@kernel
def read_priors(work, count):
    """Turn the `count` logits of a position that the network was asked about into priors."""
    if not softmax(work.logits, count, np.float32(1.0)):
        raise ValueError(
            "the network's logits are not finite: its weights are too large or damaged"
        )


@kernel
def _play_out(tree, guide, g, b):
    """Mix how playouts of a position end into the chances and points that the network told."""
    settings, played, players = guide.settings, guide.played[0], np.int64(g.players)
    weight = settings.playout_share / settings.playouts
    for seat in range(players):
        guide.chances[seat] *= 1.0 - settings.playout_share
        guide.points[seat] *= 1.0 - settings.playout_share
    for _ in range(settings.playouts):
        guide.played[0] = g
        tree.noise[0] += GOLDEN
        playout(played, b, TO_THE_END, mix(tree.noise[0]))
        for seat in range(players):
            guide.chances[seat] += weight * (rank_of(played, seat) == 0)
            guide.points[seat] += weight * points_of(played, seat)


@kernel
def _evaluate_leaf(tree, guide, g, b):
    """What a position that the network was asked about is worth: chances, points and returns."""
    read_values(g, guide.work.values, guide.chances, guide.points)
    if guide.settings.playouts > 0:
        _play_out(tree, guide, g, b)
    _find_returns(np.int64(g.players), guide.settings, guide.chances, guide.points, guide.returns)


@kernel
def _find_result(g, settings, chances, points, returns):
    """The same of a game that is over."""
    players = np.int64(g.players)
    for seat in range(players):
        chances[seat] = rank_of(g, seat) == 0
        points[seat] = np.float64(points_of(g, seat))
    _find_returns(players, settings, chances, points, returns)


@fast_kernel
def _expand(tree, guide, at, b):
    """Ask the network about a node: its edges and priors, and the returns. Without edges when the
    tree is full."""
    work, g = guide.work, tree.nodes[at].game
    count = evaluate(g, b, guide.weights, work)
    _evaluate_leaf(tree, guide, g, b)
    for seat in range(MAX_PLAYERS):
        tree.nodes[at].values[seat] = guide.returns[seat]
    first = tree.used[1]
    if first + count > tree.edges.shape[0]:
        return
    read_priors(work, count)
    for k in range(count):
        edge = tree.edges[first + k]
        edge.action = work.actions[k]
        edge.prior = work.logits[k]
        edge.prior_value = 0.0
        edge.node = -1
        edge.visits = 0
        edge.total = 0.0
    tree.nodes[at].first = first
    tree.nodes[at].edges = count
    tree.used[1] = first + count


@kernel
def _select(tree, guide, at):
    """The edge of a node below the root that PUCT goes along."""
    node, settings = tree.nodes[at], guide.settings
    first, seat = np.int64(node.first), node.game.seat
    scale = settings.exploration * np.sqrt(np.float64(node.visits) + 1.0)
    found, best, untried, likeliest, tried = first, -1e9, np.int64(-1), -1.0, 0.0
    for k in range(first, first + node.edges):
        edge = tree.edges[k]
        prior = np.float64(edge.prior)
        if edge.visits == 0:
            if prior > likeliest:
                likeliest, untried = prior, k
            continue
        tried += prior
        visits = np.float64(edge.visits)
        score = np.float64(edge.total) / visits + scale * prior / (1.0 + visits)
        if score > best:
            best, found = score, k
    if untried >= 0:
        value = np.float64(node.values[seat]) - settings.reduction * np.sqrt(tried)
        if value + scale * likeliest > best:
            return untried
    return found


@kernel
def pass_forced(g, b, work):
    """Take decisions that have one legal action, up to one that has more."""
    while g.phase != OVER and legal_ids(g, b, work.bits, work.actions) == 1:
        step(g, b, work.actions[0])


@kernel
def _descend(tree, guide, b, along):
    """Walk from the root to a position that is not expanded, or over, and find its returns.

    along: the root's edge to begin with, when it is expanded. The length of the path.
    """
    settings, work, ahead = guide.settings, guide.work, guide.ahead[0]
    at = np.int64(0)
    for depth in range(MAX_DEPTH):
        node = tree.nodes[at]
        if node.game.phase == OVER:
            _find_result(node.game, settings, guide.chances, guide.points, guide.returns)
            return depth
        if node.edges == 0:
            _expand(tree, guide, at, b)
            return depth
        k = along if depth == 0 else _select(tree, guide, at)
        edge = tree.edges[k]
        tree.path[depth, 0] = at
        tree.path[depth, 1] = k
        if edge.node < 0:
            guide.ahead[0] = node.game
            step(ahead, b, np.int64(edge.action))
            pass_forced(ahead, b, work)
            edge.node = add_node(tree, ahead)
        if edge.node < 0:  # the tree is full
            if ahead.phase == OVER:
                _find_result(ahead, settings, guide.chances, guide.points, guide.returns)
            else:
                evaluate(ahead, b, guide.weights, work)
                _evaluate_leaf(tree, guide, ahead, b)
            return depth + 1
        at = np.int64(edge.node)
    for seat in range(MAX_PLAYERS):
        guide.returns[seat] = tree.nodes[at].values[seat]
    return MAX_DEPTH


@kernel
def simulate_once(tree, guide, b, along):
    """One simulation, its returns taken back along the path."""
    depth = _descend(tree, guide, b, along)
    for k in range(depth):
        node, edge = tree.nodes[tree.path[k, 0]], tree.edges[tree.path[k, 1]]
        node.visits += 1
        edge.visits += 1
        edge.total += guide.returns[node.game.seat]
    for seat in range(MAX_PLAYERS):
        tree.wins[seat] += guide.chances[seat]
    tree.wins[MAX_PLAYERS] += 1.0


@kernel
def begin_search(tree, guide, board):
    """Expand the root if it is not, and put noise on its priors, into `guide.priors`."""
    clear_cache(guide.work)
    if tree.nodes[0].edges == 0:
        simulate_once(tree, guide, board[0], np.int64(-1))
    first, count = np.int64(tree.nodes[0].first), np.int64(tree.nodes[0].edges)
    for k in range(count):
        tree.noise[0] += GOLDEN
        uniform = (np.float64(mix(tree.noise[0]) >> np.uint64(11)) + 0.5) / 2.0**53
        gumbel = -np.log(-np.log(uniform))
        prior = max(tree.edges[first + k].prior, MIN_PRIOR)
        guide.priors[k] = np.log(prior) + guide.settings.noise * gumbel
    softmax(guide.priors, count, np.float32(1.0))


@kernel
def follow(tree, guide, board, moves):
    """The node that moves (int64) lead to from the root, past those that were forced; -1 when there
    is none."""
    at, ahead, work = np.int64(0), guide.ahead[0], guide.work
    guide.ahead[0] = tree.nodes[0].game
    for move in moves:
        if legal_ids(ahead, board[0], work.bits, work.actions) > 1:
            at = child_of(tree, at, move) if at >= 0 else np.int64(-1)
        if at < 0:
            return at
        step(ahead, board[0], move)
    return at
