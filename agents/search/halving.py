"""How simulations are shared out at the root, and what is learned from them (Danihelka et al. 2022,
Gumbel AlphaZero).

The root has one thing to find out: which action is best. PUCT spends most simulations where it is
not in doubt; so the root takes the likeliest actions, of priors with Gumbel noise, and tries all of
them equally often; then the better half of them, and so on.
"""

from __future__ import annotations

import numpy as np

from busenv.agents.search.guided import MIN_PRIOR, begin_search, simulate_once
from busenv.agents.search.tree import set_root
from busenv.core.jit import kernel


@kernel
def _most_visits(tree, first, count):
    most = 0
    for k in range(first, first + count):
        most = max(most, tree.edges[k].visits)
    return most


@kernel
def _mixed_value(tree):
    """What the root is worth to who decides, by all that is known."""
    root = tree.nodes[0]
    first, seat, tried, mean, visits = np.int64(root.first), root.game.seat, 0.0, 0.0, 0
    for k in range(first, first + root.edges):
        edge = tree.edges[k]
        if edge.visits > 0:
            tried += edge.prior
            mean += edge.prior * np.float64(edge.total) / np.float64(edge.visits)
            visits += edge.visits
    return (np.float64(root.values[seat]) + visits * mean / max(tried, 1e-8)) / (1.0 + visits)


@kernel
def _score(guide, edge, prior, known, most):
    """The logit of a prior, changed by what an action is worth: sigma. Few visits tell little of
    that, so the root's own worth counts for some more."""
    settings = guide.settings
    visits = np.float64(edge.visits) + settings.prior_visits
    value = (np.float64(edge.total) + settings.prior_visits * known) / visits
    scale = (settings.visit_scale + np.float64(most)) * settings.value_scale
    return np.log(max(np.float64(prior), MIN_PRIOR)) + scale * value


@kernel
def _sort_candidates(tree, guide, count):
    """The candidates by logit and value: best first."""
    first, order, scores = np.int64(tree.nodes[0].first), guide.order, guide.scores
    most, known = _most_visits(tree, first, np.int64(tree.nodes[0].edges)), _mixed_value(tree)
    for i in range(count):
        place = order[i]
        scores[place] = _score(guide, tree.edges[first + place], guide.priors[place], known, most)
    for i in range(1, count):  # insertion
        moved, k = order[i], i
        while k > 0 and scores[order[k - 1]] < scores[moved]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = moved


@kernel
def simulate_guided(tree, guide, board, simulations):
    """Simulations by sequential halving among the root's likeliest actions."""
    first, edges = np.int64(tree.nodes[0].first), np.int64(tree.nodes[0].edges)
    for k in range(edges):
        guide.order[k] = k
        guide.scores[k] = guide.priors[k]
    for i in range(1, edges):
        k = i
        while k > 0 and guide.scores[guide.order[k - 1]] < guide.scores[i]:
            guide.order[k] = guide.order[k - 1]
            k -= 1
        guide.order[k] = i
    count = min(edges, guide.settings.candidates, simulations)
    phases, used = max(np.int64(np.ceil(np.log2(np.float64(count)))), 1), 0
    while used < simulations:
        for _ in range(max(simulations // (phases * count), 1)):
            for i in range(count):
                if used < simulations:
                    simulate_once(tree, guide, board[0], first + guide.order[i])
                    used += 1
        _sort_candidates(tree, guide, count)
        count = max(count // 2, min(count, 2))


@kernel
def root_weights(tree, guide, out):
    """How the root's actions compare after `simulate_guided`, into a row of zeros (float32,
    (num_actions,)): their noisy priors changed by what they are worth. Those that were not tried to
    the end, or as often by earlier searches, are left out."""
    first, count = np.int64(tree.nodes[0].first), np.int64(tree.nodes[0].edges)
    most, known, best = _most_visits(tree, first, count), _mixed_value(tree), -1e9
    enough = tree.edges[first + guide.order[0]].visits
    for k in range(count):
        edge = tree.edges[first + k]
        if 2 * edge.visits > enough:
            guide.scores[k] = _score(guide, edge, guide.priors[k], known, most)
            best = max(best, np.float64(guide.scores[k]))
    for k in range(count):
        edge = tree.edges[first + k]
        if 2 * edge.visits > enough:
            out[edge.action] = np.exp(guide.scores[k] - best)


@kernel
def improved_policy(tree, guide, out):
    """The network's policy at the root, improved by the search: what to learn (float32 into a row
    of zeros)."""
    first, count = np.int64(tree.nodes[0].first), np.int64(tree.nodes[0].edges)
    most, known, best, total = _most_visits(tree, first, count), _mixed_value(tree), -1e9, 0.0
    for k in range(count):
        edge = tree.edges[first + k]
        guide.scores[k] = _score(guide, edge, edge.prior, known, most)
        best = max(best, np.float64(guide.scores[k]))
    for k in range(count):
        guide.scores[k] = np.exp(guide.scores[k] - best)
        total += guide.scores[k]
    for k in range(count):
        out[tree.edges[first + k].action] = guide.scores[k] / total


@kernel
def search_games(tree, guide, games, board, simulations, seeds, out):
    """Search many games, one after the other; how their actions compare into rows of `out`
    (float32, (N, num_actions), zeros at first). seeds: uint64, (N,), of the random streams.

    A single legal action is taken without a search.
    """
    for i in range(len(games)):
        set_root(tree, games[i : i + 1])
        tree.noise[0] = seeds[i]
        begin_search(tree, guide, board)
        if tree.nodes[0].edges == 1:
            out[i, tree.edges[tree.nodes[0].first].action] = 1.0
            continue
        simulate_guided(tree, guide, board, simulations)
        root_weights(tree, guide, out[i])
