"""Search guided by a network: the kernels of `az` for `search.tree_search`.

The network gives a new position its priors and every seat's return; long searches also play it out
to the end (`heuristics.playout`). Decisions with one legal action are left out of the tree. At
the root, simulations are distributed by sequential halving (`search.sequential_halving`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.score import points_of, rank_of
from busenv.core.state import GAME, MAX_PLAYERS, Phase
from busenv.heuristics.playout import TO_THE_END, playout
from busenv.networks.compiled_layers import softmax
from busenv.networks.compiled_network import (
    Weights,
    Workspace,
    clear_previous_rows,
    evaluate,
    make_workspace,
)
from busenv.networks.logits import POINTS, VALUES_NOT_FINITE
from busenv.search import sequential_halving
from busenv.search.tree import add_edges
from busenv.search.tree_search import METHODS, SearchMethod, simulate_once


class AzSettings(NamedTuple):
    """Hyperparameters of the search.

    exploration, prior_visits, fpu_reduction, skip_forced: see `search.tree_search`.
    score_weight: weight of points in the return, so that a seat that is behind still prefers the
        better result. The rest is the weight of the chance to win.
    score_scale: points above the mean of the seats that count as half a return.
    gumbel_scale: scale of the Gumbel noise on the root's logits; 1 in full searches of self-play,
        0.3 in its fast searches.
    max_considered_actions: actions at most that receive simulations at the root.
    maxvisit_init, value_scale: of sigma(q) = (maxvisit_init + most visits of an action) *
        value_scale * q, which a value q adds to an action's logit (Danihelka et al. 2022).
    root_prior_visits: visits, above 0, that the root's own value counts for in an action's value.
    num_playouts: playouts to the end from each evaluated position. playout_weight: their weight in
        its value; the rest is the network's. With 1, the network needs no values for every seat.
    """

    exploration: float = 0.3
    prior_visits: float = 0.0
    fpu_reduction: float = 0.1
    skip_forced: bool = True
    score_weight: float = 0.2
    score_scale: float = 10.0
    gumbel_scale: float = 0.1
    max_considered_actions: int = 16
    maxvisit_init: float = 50.0
    value_scale: float = 0.5
    root_prior_visits: float = 1.0
    num_playouts: int = 0
    playout_weight: float = 0.6


class AzSearchState(NamedTuple):
    """Settings and arrays of one thread's search; see `search.tree_search` for the shared ones.

    end: GAME, (1,), a playout. points: float64, (5,), by seat, of the evaluated leaf.
    logits, scores: float32, (num_actions,), of the root's edges, in the edges' order.
    ranking: int64, (num_actions,), indices of the root's edges by score, best first.
    progress: PROGRESS, (1,), of the halving.
    """

    settings: AzSettings
    weights: Weights
    work: Workspace
    ahead: np.ndarray
    end: np.ndarray
    returns: np.ndarray
    chances: np.ndarray
    points: np.ndarray
    logits: np.ndarray
    scores: np.ndarray
    ranking: np.ndarray
    progress: np.ndarray


def make_az_search(settings: AzSettings, weights: Weights) -> AzSearchState:
    """Return a search state.

    weights: of a network with values for every seat; of any network if `playout_weight` is 1.
    """
    work, num_actions = make_workspace(weights), weights.sizes[1]
    ahead, end = np.zeros(1, GAME), np.zeros(1, GAME)
    returns, chances, points = (np.zeros(MAX_PLAYERS) for _ in range(3))
    logits, scores = (np.zeros(num_actions, np.float32) for _ in range(2))
    return AzSearchState(
        settings, weights, work, ahead, end, returns, chances, points, logits, scores,
        np.zeros(num_actions, np.int64), np.zeros(1, sequential_halving.PROGRESS),
    )  # fmt: skip


@kernel
def read_values(g, values, chances, points):
    """Convert a network's values into chances to win and points, by seat.

    Raises ValueError unless they are finite.
    """
    players, best = np.int64(g.players), np.float64(values[0])
    total, checked = 0.0, 0.0
    for slot in range(1, players):
        best = max(best, np.float64(values[slot]))
    for slot in range(players):
        seat = (np.int64(g.seat) + slot) % players
        chances[seat] = math.exp(np.float64(values[slot]) - best)
        points[seat] = np.float64(values[MAX_PLAYERS + slot]) * POINTS
        total += chances[seat]
        checked += points[seat] + np.float64(values[slot])
    if not math.isfinite(checked):
        raise ValueError(VALUES_NOT_FINITE)
    for seat in range(players):
        chances[seat] /= total


@kernel
def _find_returns(search, players):
    """Write the returns that chances to win and points amount to."""
    settings, points, mean = search.settings, search.points, 0.0
    weight = settings.score_weight
    for seat in range(players):
        mean += points[seat] / players
    for seat in range(players):
        margin = 0.5 + (points[seat] - mean) / (2.0 * settings.score_scale)
        search.returns[seat] = (1.0 - weight) * search.chances[seat] + weight * min(
            max(margin, 0.0), 1.0
        )


@kernel
def _add_playouts(tree, search, b):
    """Mix the results of playouts into the chances and points of the evaluated position."""
    settings, end, players = search.settings, search.end[0], np.int64(search.ahead[0].players)
    weight = settings.playout_weight / settings.num_playouts
    for seat in range(players):
        search.chances[seat] *= 1.0 - settings.playout_weight
        search.points[seat] *= 1.0 - settings.playout_weight
    for _ in range(settings.num_playouts):
        search.end[0] = search.ahead[0]
        tree.rng_state[0] += GOLDEN
        playout(end, b, np.int64(TO_THE_END), mix(tree.rng_state[0]))
        for seat in range(players):
            search.chances[seat] += weight * (rank_of(end, seat) == 0)
            search.points[seat] += weight * points_of(end, seat)


@kernel
def _expand(tree, search, at, b):
    """Do nothing: nodes receive their edges when they are evaluated."""


@kernel
def _evaluate_leaf(tree, search, at, b):
    """Evaluate a position by its final result, or by the network, which also gives it edges."""
    if search.ahead[0].phase == Phase.OVER:
        read_result(search)
        return
    count = evaluate(search.ahead[0], b, search.weights, search.work)
    read_evaluation(tree, search, at, b, count)


@kernel
def read_result(search):
    """Write the returns and chances of a game that is over."""
    g, players = search.ahead[0], np.int64(search.ahead[0].players)
    for seat in range(players):
        search.chances[seat] = rank_of(g, seat) == 0
        search.points[seat] = np.float64(points_of(g, seat))
    _find_returns(search, players)


@kernel
def read_evaluation(tree, search, at, b, count):
    """Compute a leaf's returns and chances from the network's outputs and, if enabled, playouts.

    Adds the node's edges if it has none. at: the node; -1 when the tree is full. count: number of
    legal actions, the first of `search.work.actions`.
    """
    if search.settings.playout_weight < 1.0:
        read_values(search.ahead[0], search.work.values, search.chances, search.points)
    if search.settings.num_playouts > 0:
        _add_playouts(tree, search, b)
    _find_returns(search, np.int64(search.ahead[0].players))
    if at >= 0 and tree.nodes[at].edges == 0:
        _add_edges(tree, search, at, count)


@kernel
def _add_edges(tree, search, at, count):
    """Add edges with the network's priors to a node, unless the tree has no space for them."""
    work = search.work
    softmax(work.logits, count, np.float32(1.0))  # may raise: no edge exists yet
    first = add_edges(tree, at, count)
    for seat in range(MAX_PLAYERS):
        tree.nodes[at].values[seat] = search.returns[seat]
    if first >= 0:
        for k in range(count):
            edge = tree.edges[first + k]
            edge.action = work.actions[k]
            edge.prior = work.logits[k]


@kernel
def _begin_search(tree, search, board):
    clear_previous_rows(search.work)
    if tree.nodes[0].edges == 0:
        simulate_once(tree, search, board[0], np.int64(-1))
    sequential_halving.sample_logits(tree, search)


METHODS[AzSearchState] = SearchMethod(
    _begin_search,
    _expand,
    _evaluate_leaf,
    sequential_halving.simulate_by_halving,
    sequential_halving.halving_weights,
)
