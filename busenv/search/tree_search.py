"""The compiled tree search that `uct` and `az` agents share: select, expand, evaluate, back up.

A simulation descends from the root by PUCT (Rosin 2011; Silver et al. 2017) to a position that the
tree (`search.tree`) does not hold, evaluates that position, and adds the returns to all
edges on its path. Every seat maximises its own return (max^n, Luckhardt and Irani 1986). Returns
near the end of a game are proven (`search.solver`); a search stops when that of its best
action is proven.

The class of the search state selects, at compile time, what differs between searches: how a leaf is
evaluated, where priors come from, and how simulations are distributed at the root. `METHODS` maps
the class to those kernels. A search state has at least these fields:

settings: with exploration (weight of the prior in PUCT), prior_visits (visits that an edge's prior
    value counts for), fpu_reduction (first-play urgency: how far the value of an untried edge is
    below its node's; see `select_edge`), and skip_forced (whether decisions with one legal action
    are left out of the tree).
ahead: GAME, (1,), the position at which a simulation leaves the tree.
returns, chances: float64, (5,), returns (0 to 1) and chances to win of the evaluated leaf, by seat.
work: with bits and actions, uint64, (words,), and int64, (num_actions,), for legal actions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from busenv.core.bits import records_differ
from busenv.core.jit import inlined, kernel
from busenv.core.rules.legal import forced_action, legal_ids
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, Phase
from busenv.search.solver import all_seats, back_up_proof, prove_end, use_proof
from busenv.search.tree import MAX_DEPTH, add_node, child_of, reroot, set_root

GAME_SIZE = GAME.itemsize  # bytes, a multiple of 8
NO_MOVES = np.array([-1])  # an action of no edge: `search_root` begins a new tree


class SearchMethod(NamedTuple):
    """The kernels in which one search differs from another; each is documented below."""

    begin_search: Any
    expand: Any
    evaluate_leaf: Any
    simulate: Any
    root_weights: Any


METHODS: dict[type, SearchMethod] = {}  # by class of the search state


def begin_search(tree, search, board):
    """Expand the root unless it is expanded, and prepare the choice at the root."""
    METHODS[type(search)].begin_search(tree, search, board)


def expand(tree, search, at, b):
    """Add edges with priors to a node that a simulation reaches again, if the search does so."""
    METHODS[type(search)].expand(tree, search, at, b)


def evaluate_leaf(tree, search, at, b):
    """Evaluate the position `search.ahead[0]`: write `search.returns` and `search.chances`.

    at: the node of the position, which may receive edges; -1 when the tree is full.
    """
    METHODS[type(search)].evaluate_leaf(tree, search, at, b)


def simulate(tree, search, board, simulations):
    """Run simulations from an expanded root, after `begin_search`."""
    METHODS[type(search)].simulate(tree, search, board, simulations)


def root_weights(tree, search, out):
    """Write the weights of the root's actions into a row of zeros, float32, (num_actions,)."""
    METHODS[type(search)].root_weights(tree, search, out)


# numba calls the same five functions through overloads, which need plain functions of equal
# signature.
overload(begin_search)(lambda tree, search, board: _method(search).begin_search.py_func)
overload(expand)(lambda tree, search, at, b: _method(search).expand.py_func)
overload(evaluate_leaf)(lambda tree, search, at, b: _method(search).evaluate_leaf.py_func)
overload(simulate)(lambda tree, search, board, simulations: _method(search).simulate.py_func)
overload(root_weights)(lambda tree, search, out: _method(search).root_weights.py_func)


def _method(search: Any) -> SearchMethod:
    """Return the kernels of a search state's numba type."""
    return METHODS[search.instance_class]


@kernel
def pass_forced(g, b, bits):
    """Step through decisions that have one legal action, up to one that has more.

    bits: uint64, (words,), workspace.
    """
    while g.phase != Phase.OVER:
        action = forced_action(g, b, bits)
        if action < 0:
            return
        step(g, b, action)


@kernel
def select_edge(tree, settings, at):
    """Return the edge of a node with the highest PUCT score.

    The score of an edge is q + exploration * prior * sqrt(N + 1) / (n + 1). N and n are the visits
    of the node and of the edge; q is the edge's mean return, in which its prior value counts as
    `prior_visits` visits. Of the edges with neither visits nor a prior value, only the one with the
    highest prior is compared; its q is the node's value minus fpu_reduction * sqrt(p), where p is
    the sum of the priors of the tried edges.
    """
    node = tree.nodes[at]
    first = np.int64(node.first)
    scale = settings.exploration * math.sqrt(np.float64(node.visits) + 1.0)
    selected, best, untried, highest_prior, tried = first, -1e9, np.int64(-1), -1.0, 0.0
    for k in range(first, first + node.edges):
        edge = tree.edges[k]
        prior, visits = np.float64(edge.prior), np.float64(edge.visits)
        weight = settings.prior_visits + visits
        if weight == 0.0:
            if prior > highest_prior:
                highest_prior, untried = prior, k
            continue
        tried += prior
        value = (settings.prior_visits * edge.prior_value + edge.total) / weight
        score = value + scale * prior / (1.0 + visits)
        if score > best:
            best, selected = score, k
    if untried >= 0:
        value = np.float64(node.values[node.game.seat]) - settings.fpu_reduction * math.sqrt(tried)
        if value + scale * highest_prior > best:
            return untried
    return selected


@kernel
def simulate_once(tree, search, b, root_edge):
    """Run one simulation: walk to a leaf, evaluate it, and back up its returns.

    root_edge: the edge to take at the root; -1 to select it by PUCT.
    """
    leaf, depth = descend(tree, search, b, root_edge)
    if leaf < 0 or tree.nodes[leaf].proven != all_seats(tree.nodes[0].game.players):
        evaluate_leaf(tree, search, leaf, b)
    absorb(tree, search, leaf, depth)


@inlined
def descend(tree, search, b, root_edge):
    """Walk from the root to a leaf, add its node, and write its position to `search.ahead[0]`.

    Returns the leaf's node, which is -1 when the tree is full, and the number of edges on
    `tree.path`.
    """
    at, depth, ahead = np.int64(0), 0, search.ahead[0]
    everyone = all_seats(tree.nodes[0].game.players)
    while True:
        node = tree.nodes[at]
        if node.edges == 0 and node.game.phase != Phase.OVER:
            expand(tree, search, at, b)
        if node.edges == 0 or node.proven == everyone or depth == MAX_DEPTH:
            search.ahead[0] = node.game
            return at, depth
        if depth == 0 and root_edge >= 0:  # noqa: SIM108 - compiled
            k = root_edge
        else:
            k = select_edge(tree, search.settings, at)
        edge = tree.edges[k]
        tree.path[depth, 0] = at
        tree.path[depth, 1] = k
        depth += 1
        if edge.node < 0:
            search.ahead[0] = node.game
            step(ahead, b, np.int64(edge.action))
            if search.settings.skip_forced:
                pass_forced(ahead, b, search.work.bits)
            edge.node = add_node(tree, ahead)
            return np.int64(edge.node), depth
        at = np.int64(edge.node)


@inlined
def absorb(tree, search, leaf, depth):
    """Prove the returns of a leaf whose game is over, and back up those in `search.returns`."""
    newly_proven = (
        leaf >= 0 and tree.nodes[leaf].game.phase == Phase.OVER and not tree.nodes[leaf].proven
    )
    if newly_proven:
        prove_end(tree, leaf, search.returns)
    _back_up(tree, leaf, depth, newly_proven, search.returns, search.chances)


@kernel
def _back_up(tree, leaf, depth, newly_proven, returns, chances):
    """Add the results of a simulation to the edges and nodes on its path, and to the tree's wins.

    leaf: the last node; -1 when the tree was full. depth: number of edges on the path.
    newly_proven: whether the simulation proved more returns of the leaf. returns, chances: float64,
    (5,), by seat; those that are proven at nodes on the path replace them.
    """
    at, players = leaf, np.int64(tree.nodes[0].game.players)
    for k in range(depth - 1, -1, -1):
        parent, edge = tree.path[k, 0], tree.edges[tree.path[k, 1]]
        node = tree.nodes[parent]
        node.visits += 1
        edge.visits += 1
        edge.total += returns[node.game.seat]
        if at >= 0 and tree.nodes[at].proven != 0:
            use_proof(tree.nodes[at], returns, chances)
            newly_proven = back_up_proof(tree, parent, tree.path[k, 1], newly_proven)
        for seat in range(players if at >= 0 else 0):
            tree.nodes[at].wins[seat] += chances[seat]
        at = parent
    for seat in range(players):
        tree.wins[seat] += chances[seat]
    tree.wins[MAX_PLAYERS] += 1.0
    if tree.nodes[0].proven == all_seats(players):  # earlier estimates no longer count
        use_proof(tree.nodes[0], returns, chances)
        for seat in range(players):
            tree.wins[seat] = chances[seat] * tree.wins[MAX_PLAYERS]


@kernel
def _node_after(tree, search, board, moves):
    """Return the node that moves (int64) lead to from the root; -1 when the tree has none."""
    at, ahead = np.int64(0), search.ahead[0]
    if tree.used[0] == 0:
        return np.int64(-1)
    search.ahead[0] = tree.nodes[0].game
    for move in moves:
        legal = legal_ids(ahead, board[0], search.work.bits, search.work.actions)
        if legal > 1 or not search.settings.skip_forced:
            at = child_of(tree, at, move)
        elif move != search.work.actions[0]:
            return np.int64(-1)
        if at < 0:
            return at
        step(ahead, board[0], move)
    return at


@kernel
def search_root(tree, spare, search, game, board, moves, seed, simulations, out):
    """Search a game (GAME, (1,)) and write the weights of its actions, as `root_weights` does.

    moves: int64, that led to the game from the root of the tree, which is reused if it holds the
    game; else a new tree begins with the random stream of a seed.

    Returns whether the tree is now in `spare`.
    """
    root = _node_after(tree, search, board, moves)
    is_known = root >= 0 and not records_differ(tree.nodes[root].game, game[0], 0, GAME_SIZE)
    if is_known and root > 0:
        reroot(tree, root, spare)
        tree = spare
    elif not is_known:
        set_root(tree, game)
        tree.rng_state[0] = seed
    begin_search(tree, search, board)
    simulate(tree, search, board, simulations)
    root_weights(tree, search, out)
    return is_known and root > 0


@kernel
def search_games(tree, search, games, board, simulations, seeds, first, stride, out):
    """Search every `stride`-th game from `first` on, and write the weights of their actions.

    games: GAME, (N,). seeds: uint64, (N,), of the random streams. out: float32, (N, num_actions),
    zeros, of all games. A single legal action has weight 1 and is not searched.
    """
    for i in range(first, len(games), stride):
        set_root(tree, games[i : i + 1])
        tree.rng_state[0] = seeds[i]
        begin_search(tree, search, board)
        if tree.nodes[0].edges == 1:
            out[i, tree.edges[tree.nodes[0].first].action] = 1.0
            continue
        simulate(tree, search, board, simulations)
        root_weights(tree, search, out[i])
