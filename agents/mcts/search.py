"""Monte Carlo tree search for several players, compiled, in arrays that are made once.

Every node keeps its position, so a simulation walks down by index and steps only where it leaves
the tree; there a playout (agents.mcts.playout) of a few rounds begins, and what it leads
to is judged by the odds of winning that agents.planner.outlook sees. A node that is reached
a second time is expanded: each
of its actions is tried, and the outlook on what it leads to gives its prior chance and a first
value. Every seat maximises its own return (max^n, Luckhardt and Irani 1986) by PUCT (Rosin 2011;
Silver et al. 2017).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from busenv.agents.mcts.playout import play_on
from busenv.agents.planner.outlook import appraise, lead

from busenv.core.bits import GOLDEN, ONE, ZERO, below, lowest, mix, popcount
from busenv.core.jit import kernel
from busenv.core.rules.legal import legal_bits
from busenv.core.rules.score import place
from busenv.core.rules.step import step
from busenv.core.state import GAME, MAX_PLAYERS, OVER

_I, _F = np.int32, np.float32

NODE = np.dtype(
    [
        ("game", GAME),
        ("visits", _I),
        ("first", _I),  # its edges are first to first + edges - 1; 0 edges: not expanded
        ("edges", _I),
    ]
)
EDGE = np.dtype(
    [
        ("action", _I),
        ("node", _I),  # the node behind it; -1 when there is none yet
        ("visits", _I),
        ("prior", _F),
        ("hope", _F),  # return of the seat that decides, by the outlook on the position behind it
        ("total", _F),  # ... and by the simulations that went there, summed up
    ]
)
DEPTH = 256  # a simulation goes no deeper


class Settings(NamedTuple):
    """What the search is tuned by (`experiments.studies.tune search` compares values).

    exploration: weight of the prior in PUCT.
    prior_width: points by which an action's outlook is behind the best one's when its prior is 1/e
        of the best one's.
    hope_visits: visits that an action's outlook counts for beside its simulations.
    rounds: rounds that a playout goes on for.
    win_share: weight of winning in the return; the rest is the margin's, so that a seat that is
        behind still fights.
    margin_width: margin, in logits of winning, that counts as a whole return.
    noise: points of noise on an outlook, so that no two searches are the same.
    """

    exploration: float = 0.25
    prior_width: float = 3.0
    hope_visits: float = 2.0
    rounds: int = 2
    win_share: float = 0.6
    margin_width: float = 12.0
    noise: float = 0.1


class Tree(NamedTuple):
    """Arrays of a search: NODE, (N,); EDGE, (E,); how many of each are in use: int64, (2,).

    path: int64, (DEPTH, 2), nodes and edges of a simulation. wins: float64, (6,), chances of
    winning by seat, summed over the simulations, then the number of these.
    noise: uint64, (1,), state of the random stream.
    """

    nodes: np.ndarray
    edges: np.ndarray
    used: np.ndarray
    path: np.ndarray
    wins: np.ndarray
    noise: np.ndarray


def make_tree(nodes: int, edges: int) -> Tree:
    """Room for a tree; memory is taken up as it grows."""
    return Tree(
        np.zeros(nodes, NODE),
        np.zeros(edges, EDGE),
        np.zeros(2, np.int64),
        np.zeros((DEPTH, 2), np.int64),
        np.zeros(MAX_PLAYERS + 1),
        np.zeros(1, np.uint64),
    )


@kernel
def _judge(g, settings, odds, result, chances):
    """Turn odds (logits; points when the game is over) into returns and chances, 0 to 1 each."""
    best, mean, total = -1e9, 0.0, 0.0
    for seat in range(g.players):
        best = max(best, odds[seat])
        mean += odds[seat] / g.players
    for seat in range(g.players):
        chances[seat] = np.exp(odds[seat] - best)
        if g.phase == OVER:
            chances[seat] = place(g, seat) == 0
        total += chances[seat]
    for seat in range(g.players):
        chances[seat] /= total
        margin = min(max(0.5 + (odds[seat] - mean) / settings.margin_width, 0.0), 1.0)
        result[seat] = settings.win_share * chances[seat] + (1.0 - settings.win_share) * margin


@kernel
def _expand(tree, at, b, weights, settings, room, result, chances):
    """Try every action of a node: an edge each, with its prior and its hope.

    Nothing is done when there is no room left.
    """
    g, bits, ahead = tree.nodes[at].game, room.bits[0], room.ahead[0]
    legal_bits(g, b, bits)
    first, count, best = tree.used[1], ZERO, -1e9
    for word in range(bits.shape[0]):
        count += popcount(bits[word])
    if first + np.int64(count) > tree.edges.shape[0]:
        return
    k = first
    for word in range(bits.shape[0]):
        rest = bits[word]
        while rest != ZERO:
            edge = tree.edges[k]
            edge.action = np.int64(64 * word) + np.int64(lowest(rest))
            rest &= rest - ONE
            k += 1
            room.ahead[0] = g
            step(ahead, b, edge.action)
            appraise(ahead, b, weights, room)
            tree.noise[0] += GOLDEN
            stray = settings.noise * 1e-6 * np.float64(below(mix(tree.noise[0]), 1000000))
            edge.prior = lead(ahead, weights, room.worth, g.seat) + stray
            best = max(best, edge.prior)
            _judge(ahead, settings, room.odds, result, chances)
            edge.hope = result[g.seat]
            edge.node = -1
            edge.visits = 0
            edge.total = 0.0
    total = 0.0
    for k in range(first, first + np.int64(count)):
        tree.edges[k].prior = np.exp((tree.edges[k].prior - best) / settings.prior_width)
        total += tree.edges[k].prior
    for k in range(first, first + np.int64(count)):
        tree.edges[k].prior /= total
    tree.nodes[at].first = first
    tree.nodes[at].edges = count
    tree.used[1] = first + np.int64(count)


@kernel
def _select(tree, at, settings):
    """The edge that PUCT goes along."""
    node = tree.nodes[at]
    found, best = np.int64(node.first), -1e9
    pull = settings.exploration * np.sqrt(np.float64(node.visits) + 1.0)
    for k in range(np.int64(node.first), np.int64(node.first) + node.edges):
        edge = tree.edges[k]
        visits = np.float64(edge.visits)
        mean = (settings.hope_visits * edge.hope + edge.total) / (settings.hope_visits + visits)
        score = mean + pull * edge.prior / (1.0 + visits)
        if score > best:
            best, found = score, k
    return found


@kernel
def _add_node(tree, g):
    """Add a node for a position; -1 when there is no room left."""
    at = tree.used[0]
    if at == tree.nodes.shape[0]:
        return -1
    node = tree.nodes[at]
    node.game = g
    node.visits = 0
    node.first = 0
    node.edges = 0
    tree.used[0] = at + 1
    return at


@kernel
def _descend(tree, b, weights, settings, room, result, chances):
    """Walk from the root to where the tree ends, into `room.ahead[0]`; the length of the path."""
    at, ahead = np.int64(0), room.ahead[0]
    for depth in range(DEPTH):
        node = tree.nodes[at]
        if node.edges == 0 and node.game.phase != OVER:
            _expand(tree, at, b, weights, settings, room, result, chances)
        if node.edges == 0:
            room.ahead[0] = node.game
            return depth
        k = _select(tree, at, settings)
        edge = tree.edges[k]
        tree.path[depth, 0] = at
        tree.path[depth, 1] = k
        if edge.node < 0:
            room.ahead[0] = node.game
            step(ahead, b, edge.action)
            edge.node = _add_node(tree, ahead)
            return depth + 1
        at = np.int64(edge.node)
    room.ahead[0] = tree.nodes[at].game
    return DEPTH


@kernel
def simulate(tree, board, weights, settings, room, simulations):
    """Run simulations from the root, a game that is not over."""
    result, chances = np.zeros(MAX_PLAYERS), np.zeros(MAX_PLAYERS)
    for _ in range(simulations):
        depth = _descend(tree, board[0], weights, settings, room, result, chances)
        tree.noise[0] += GOLDEN
        play_on(room.ahead[0], board[0], settings.rounds, mix(tree.noise[0]))
        appraise(room.ahead[0], board[0], weights, room)
        _judge(room.ahead[0], settings, room.odds, result, chances)
        for k in range(depth):
            node, edge = tree.nodes[tree.path[k, 0]], tree.edges[tree.path[k, 1]]
            node.visits += 1
            edge.visits += 1
            edge.total += result[node.game.seat]
        for seat in range(MAX_PLAYERS):
            tree.wins[seat] += chances[seat]
        tree.wins[MAX_PLAYERS] += 1.0


@kernel
def plant(tree, game):
    """Begin a tree with one position (GAME, an array of length one)."""
    tree.used[:] = 0
    tree.wins[:] = 0.0
    _add_node(tree, game[0])


@kernel
def search_each(tree, games, board, weights, settings, room, simulations, seeds, visits):
    """Search many games, one after the other; how often each action was taken into `visits`.

    seeds: uint64, (N,), of the random streams. visits: float32, (N, num_actions), zeros at first.
    A single legal action is taken without a search.
    """
    for i in range(len(games)):
        plant(tree, games[i : i + 1])
        tree.noise[0] = seeds[i]
        simulate(tree, board, weights, settings, room, 1)
        root = tree.nodes[0]
        if root.edges > 1:
            simulate(tree, board, weights, settings, room, simulations - 1)
        for k in range(root.first, root.first + root.edges):
            visits[i, tree.edges[k].action] = tree.edges[k].visits


@kernel
def behind(tree, at, action):
    """The node behind an action of a node; -1 when there is none."""
    for k in range(tree.nodes[at].first, tree.nodes[at].first + tree.nodes[at].edges):
        if tree.edges[k].action == action:
            return np.int64(tree.edges[k].node)
    return -1


@kernel
def transplant(tree, root, into):
    """Copy what is below a node into another tree, where the node becomes the root."""
    into.nodes[0] = tree.nodes[root]
    into.wins[:] = 0.0
    into.noise[0] = tree.noise[0]
    nodes, edges, at = 1, 0, 0
    while at < nodes:
        node = into.nodes[at]
        first = np.int64(node.first)
        node.first = edges
        for k in range(first, first + node.edges):
            into.edges[edges] = tree.edges[k]
            if tree.edges[k].node >= 0:
                into.nodes[nodes] = tree.nodes[tree.edges[k].node]
                into.edges[edges].node = nodes
                nodes += 1
            edges += 1
        at += 1
    into.used[0] = nodes
    into.used[1] = edges
