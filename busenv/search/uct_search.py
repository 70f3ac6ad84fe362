"""Search with handcrafted knowledge: the kernels of `uct` for `search.tree_search`.

A new position is played on for a few rounds, or in a long search to the end
(`heuristics.playout`), and the position that the playout reaches is valued by the logits of
winning (`heuristics.evaluation`). A node that a simulation reaches again is expanded: each of
its actions is tried, and the evaluation of the next position gives the edge its prior probability
and its prior value. PUCT also selects at the root.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from busenv.core.bits import GOLDEN, below, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import legal_ids
from busenv.core.rules.step import step
from busenv.core.state import MAX_PLAYERS, Phase
from busenv.heuristics.evaluation import (
    EvaluationWorkspace,
    evaluate,
    find_chances,
    make_evaluation_workspace,
    relative_value,
)
from busenv.heuristics.playout import TO_THE_END, playout
from busenv.search.solver import DECIDED, best_proven_edge, is_decided, is_proven
from busenv.search.tree import add_edges
from busenv.search.tree_search import METHODS, SearchMethod, simulate_once


class UctSettings(NamedTuple):
    """Hyperparameters of the search.

    exploration: weight of the prior in PUCT.
    prior_temperature: of the softmax that turns the values of actions into priors, in points.
    prior_visits: visits that an action's prior value counts for.
    playout_rounds: rounds of a playout while the root has fewer than full_playout_visits visits;
        later playouts run to the end. The evaluation helps a short search and misleads a long one.
    win_weight: weight of winning in the return. The rest is the weight of the margin, so that a
        seat that is behind still prefers the better result.
    margin_scale: margin, in logits of winning, that counts as a whole return.
    value_noise: points of uniform noise on an action's value, so that searches differ.
    fpu_reduction, skip_forced: see `search.tree_search`.
    """

    exploration: float = 0.25
    prior_temperature: float = 3.0
    prior_visits: float = 2.0
    playout_rounds: int = 2
    full_playout_visits: int = 1000
    win_weight: float = 0.6
    margin_scale: float = 12.0
    value_noise: float = 0.1
    fpu_reduction: float = 0.0
    skip_forced: bool = False


class UctSearchState(NamedTuple):
    """Settings and arrays of one thread's search; see `search.tree_search` for the shared ones.

    weights: float64, (4, COUNT), of `heuristics.evaluation`.
    """

    settings: UctSettings
    weights: np.ndarray
    work: EvaluationWorkspace
    ahead: np.ndarray
    returns: np.ndarray
    chances: np.ndarray


def make_uct_search(settings: UctSettings, weights: np.ndarray, num_actions: int) -> UctSearchState:
    """Return a search state for boards with `num_actions` action ids."""
    work = make_evaluation_workspace(num_actions)
    returns, chances = np.zeros(MAX_PLAYERS), work.evaluation.chances
    return UctSearchState(settings, weights, work, work.ahead, returns, chances)


@kernel
def _find_returns(g, settings, evaluation, returns):
    """Write the returns and the chances to win of a position that has been evaluated."""
    find_chances(g, evaluation)
    win_logits, chances, mean = evaluation.win_logits, evaluation.chances, 0.0
    for seat in range(g.players):
        mean += win_logits[seat] / g.players
    for seat in range(g.players):
        margin = min(max(0.5 + (win_logits[seat] - mean) / settings.margin_scale, 0.0), 1.0)
        returns[seat] = settings.win_weight * chances[seat] + (1.0 - settings.win_weight) * margin


@kernel
def _expand(tree, search, at, b):
    """Try every action of a node: add an edge with its prior and its prior value for each.

    A tree without space for the edges stays as it is.
    """
    settings, weights, evaluation = search.settings, search.weights, search.work.evaluation
    g, actions, ahead = tree.nodes[at].game, search.work.actions, search.ahead[0]
    count = legal_ids(g, b, search.work.bits, actions)
    first, best = add_edges(tree, at, count), -1e9
    if first < 0:
        return
    for k in range(count):
        search.ahead[0] = g
        step(ahead, b, actions[k])
        evaluate(ahead, b, weights, evaluation)
        _find_returns(ahead, settings, evaluation, search.returns)
        tree.rng_state[0] += GOLDEN
        noise = settings.value_noise * 1e-6 * np.float64(below(mix(tree.rng_state[0]), 1000000))
        edge = tree.edges[first + k]
        edge.action = actions[k]
        edge.prior = relative_value(ahead, weights, evaluation.values, g.seat) + noise
        best = max(best, edge.prior)
        edge.prior_value = search.returns[g.seat]
    total = 0.0
    for k in range(first, first + count):
        tree.edges[k].prior = math.exp((tree.edges[k].prior - best) / settings.prior_temperature)
        total += tree.edges[k].prior
    for k in range(first, first + count):
        tree.edges[k].prior /= total


@kernel
def _evaluate_leaf(tree, search, at, b):
    """Evaluate the position that a playout from the leaf reaches."""
    settings, evaluation, ahead = search.settings, search.work.evaluation, search.ahead[0]
    short = tree.nodes[0].visits < settings.full_playout_visits
    tree.rng_state[0] += GOLDEN
    playout(ahead, b, settings.playout_rounds if short else TO_THE_END, mix(tree.rng_state[0]))
    evaluate(ahead, b, search.weights, evaluation)
    _find_returns(ahead, settings, evaluation, search.returns)


@kernel
def _begin_search(tree, search, board):
    if tree.nodes[0].edges == 0 and tree.nodes[0].game.phase != Phase.OVER:
        _expand(tree, search, np.int64(0), board[0])


@kernel
def _simulate(tree, search, board, simulations):
    for _ in range(simulations):
        simulate_once(tree, search, board[0], np.int64(-1))
        if is_decided(tree):
            return


@kernel
def _root_weights(tree, search, out):
    """The visits of the root's actions, except of actions that are proven to be worse."""
    root, best = tree.nodes[0], best_proven_edge(tree)
    if is_decided(tree):
        out[tree.edges[best].action] = DECIDED
        return
    for k in range(root.first, root.first + root.edges):
        if k == best or not is_proven(tree, k):
            out[tree.edges[k].action] = tree.edges[k].visits


METHODS[UctSearchState] = SearchMethod(
    _begin_search, _expand, _evaluate_leaf, _simulate, _root_weights
)
