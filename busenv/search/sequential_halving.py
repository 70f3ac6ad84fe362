"""The choice at the root by sequential halving on Gumbel noise, and the improved policy (Danihelka
et al. 2022, "Policy improvement by planning with Gumbel").

The root tries the actions with the highest noisy logits equally often, then the better half of
them, and so on. PUCT would spend most simulations on actions that are not in doubt.
"""

from __future__ import annotations

import math

import numpy as np

from busenv.core.bits import uniform
from busenv.core.jit import kernel
from busenv.core.state import MAX_PLAYERS
from busenv.search.solver import DECIDED, all_seats, best_proven_edge, is_decided, is_proven
from busenv.search.tree_search import simulate_once

MIN_PRIOR = np.float32(1e-8)  # lower priors count as this one
# State of the halving between simulations. count: remaining candidates. phases: number of phases
# over which the budget is divided; after each, half of the candidates are dropped. step:
# simulations started in this phase. steps: simulations planned for this phase. used: simulations
# charged to the budget so far. used_before: value of `used` when this phase began.
PROGRESS = np.dtype(
    [(name, np.int64) for name in ("count", "phases", "step", "steps", "used", "used_before")],
    align=True,
)


@kernel
def sample_logits(tree, search):
    """Write the root's logits plus scaled Gumbel noise into `search.logits`."""
    first = np.int64(tree.nodes[0].first)
    for k in range(tree.nodes[0].edges):
        gumbel = -math.log(-math.log(uniform(tree.rng_state) + 2.0**-54))
        prior = max(tree.edges[first + k].prior, MIN_PRIOR)
        search.logits[k] = math.log(prior) + search.settings.gumbel_scale * gumbel


@kernel
def _root_values(tree):
    """Return the most visits of an edge of the root, and the root's mixed value (v_mix).

    It is the mean of the network's value, which counts as one visit, and of the values of the
    visited edges, weighted by their priors, which counts as the sum of their visits.
    """
    root = tree.nodes[0]
    first, seat = np.int64(root.first), root.game.seat
    tried, mean, visits, most = 0.0, 0.0, 0, 0
    for k in range(first, first + root.edges):
        edge = tree.edges[k]
        most = max(most, edge.visits)
        if edge.visits > 0:
            tried += edge.prior
            mean += edge.prior * np.float64(edge.total) / np.float64(edge.visits)
            visits += edge.visits
    value = np.float64(root.values[seat]) + visits * mean / max(tried, 1e-8)
    return most, value / (1.0 + visits)


@kernel
def _score(tree, search, k, logit, most, mixed_value):
    """Return a logit plus sigma of the value of edge `k`.

    Unless the edge's value is proven, it is averaged with the root's value, which counts as
    root_prior_visits visits, because a mean over few visits is uncertain.
    """
    settings, edge = search.settings, tree.edges[k]
    prior_visits = 0.0 if is_proven(tree, k) else settings.root_prior_visits
    visits = np.float64(edge.visits) + prior_visits
    value = (np.float64(edge.total) + prior_visits * mixed_value) / visits
    scale = (settings.maxvisit_init + np.float64(most)) * settings.value_scale
    return np.float64(logit) + scale * value


@kernel
def _sort_ranking(search, count):
    """Sort the first `count` edges of `search.ranking` by score, best first; stable."""
    ranking, scores = search.ranking, search.scores
    for i in range(1, count):
        moved, k = ranking[i], i
        while k > 0 and scores[ranking[k - 1]] < scores[moved]:
            ranking[k] = ranking[k - 1]
            k -= 1
        ranking[k] = moved


@kernel
def begin_halving(tree, search, simulations):
    """Select the actions with the highest noisy logits as candidates, and plan the first phase.

    simulations: budget of the search.
    """
    progress, edges = search.progress[0], np.int64(tree.nodes[0].edges)
    for k in range(edges):
        search.ranking[k] = k
        search.scores[k] = search.logits[k]
    _sort_ranking(search, edges)
    progress.count = max(min(edges, search.settings.max_considered_actions, simulations), 1)
    progress.phases = max(np.int64(math.ceil(math.log2(np.float64(progress.count)))), 1)
    progress.used = 0
    _begin_phase(progress, simulations)


@kernel
def _begin_phase(progress, simulations):
    progress.step, progress.used_before = 0, progress.used
    visits = max(simulations // (progress.phases * progress.count), 1)
    progress.steps = visits * progress.count


@kernel
def _rank_candidates(tree, search, count):
    first = np.int64(tree.nodes[0].first)
    most, mixed_value = _root_values(tree)
    for i in range(count):
        k = search.ranking[i]
        search.scores[k] = _score(tree, search, first + k, search.logits[k], most, mixed_value)
    _sort_ranking(search, count)


@kernel
def next_candidate(tree, search, simulations):
    """Return the root's edge for the next simulation; -1 when the search is finished.

    Simulations of actions with a proven return cost little and do not count. They keep the visits
    of the candidates equal.
    """
    progress = search.progress[0]
    if progress.used + progress.step > 0 and is_decided(tree):
        return np.int64(-1)
    if progress.step == progress.steps or progress.used >= simulations:
        _rank_candidates(tree, search, progress.count)
        if progress.used >= simulations or progress.used == progress.used_before:
            return np.int64(-1)  # in the second case, all candidates are proven
        progress.count = max(progress.count // 2, min(progress.count, 2))
        _begin_phase(progress, simulations)
    edge = np.int64(tree.nodes[0].first) + search.ranking[progress.step % progress.count]
    progress.step += 1
    progress.used += not is_proven(tree, edge)
    return edge


@kernel
def simulate_by_halving(tree, search, board, simulations):
    """Run simulations from the root by sequential halving among its candidates."""
    begin_halving(tree, search, simulations)
    edge = next_candidate(tree, search, simulations)
    while edge >= 0:
        simulate_once(tree, search, board[0], edge)
        edge = next_candidate(tree, search, simulations)


@kernel
def halving_weights(tree, search, out):
    """Write exp(score) of the root's actions, relative to the best one, into a row of zeros.

    An action with at most half of the visits of the best-ranked one keeps 0, and so does an action
    with a proven return, except the best of these. out: float32, (num_actions,).
    """
    best_proven = best_proven_edge(tree)
    if is_decided(tree):
        out[tree.edges[best_proven].action] = DECIDED
        return
    first, count = np.int64(tree.nodes[0].first), np.int64(tree.nodes[0].edges)
    (most, mixed_value), best = _root_values(tree), -1e9
    enough = tree.edges[first + search.ranking[0]].visits
    for k in range(count):
        search.scores[k] = -np.inf
        if is_proven(tree, first + k):
            is_candidate = first + k == best_proven
        else:
            is_candidate = 2 * tree.edges[first + k].visits > enough
        if is_candidate:
            search.scores[k] = _score(tree, search, first + k, search.logits[k], most, mixed_value)
            best = max(best, np.float64(search.scores[k]))
    for k in range(count):
        out[tree.edges[first + k].action] = math.exp(search.scores[k] - best)


@kernel
def improved_policy(tree, search, out):
    """Write the improved policy of the root, softmax(logits + sigma(values)), into a row of zeros.

    It is the policy target of expert iteration. out: float32, (num_actions,).
    """
    first, count = np.int64(tree.nodes[0].first), np.int64(tree.nodes[0].edges)
    (most, mixed_value), best, total = _root_values(tree), -1e9, 0.0
    for k in range(count):
        logit = math.log(max(np.float64(tree.edges[first + k].prior), MIN_PRIOR))
        search.scores[k] = _score(tree, search, first + k, logit, most, mixed_value)
        best = max(best, np.float64(search.scores[k]))
    for k in range(count):
        search.scores[k] = math.exp(search.scores[k] - best)
        total += search.scores[k]
    for k in range(count):
        out[tree.edges[first + k].action] = search.scores[k] / total


@kernel
def policy_chances(tree, policy, out):
    """Write the chances to win, by seat, if the player to decide follows a policy.

    They are means over the actions that were searched, weighted by the policy. Unlike `tree.wins`,
    they are not lowered by actions that a search tries and rejects. policy: float32,
    (num_actions,); its sum is arbitrary. out: float, (5,).
    """
    root, players, total = tree.nodes[0], np.int64(tree.nodes[0].game.players), 0.0
    edges = 0 if root.proven == all_seats(players) else np.int64(root.edges)
    out[:] = 0.0
    for k in range(root.first, root.first + edges):
        edge = tree.edges[k]
        if edge.node < 0:
            continue
        wins, count = tree.nodes[edge.node].wins, 0.0
        for seat in range(players):
            count += wins[seat]
        if count > 0.0:
            total += policy[edge.action]
            for seat in range(players):
                out[seat] += policy[edge.action] * wins[seat] / count
    for seat in range(players):
        out[seat] = out[seat] / total if total > 0.0 else tree.wins[seat] / tree.wins[MAX_PLAYERS]
