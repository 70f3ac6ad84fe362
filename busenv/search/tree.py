"""The search tree: nodes with positions and edges with actions, in arrays of fixed size.

Every node stores its position, so that a simulation steps the game only where it leaves the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busenv.core.jit import kernel
from busenv.core.state import GAME, MAX_PLAYERS

_I, _F = np.int32, np.float32

NODE = np.dtype(
    [
        ("game", GAME),
        ("visits", _I),
        ("first", _I),  # its edges are first to first + edges - 1; 0 edges: not expanded
        ("edges", np.int16),
        ("proven", np.int16),  # bit by seat: its value is its proven return
        ("wins", _F, MAX_PLAYERS),  # chances to win by seat, summed over its simulations
        ("values", _F, MAX_PLAYERS),  # by seat: its proven return, or the network's estimate
    ],
    align=True,  # without it, kernels on a GPU load fields byte by byte
)
EDGE = np.dtype(
    [
        ("action", _I),
        ("node", _I),  # the child; -1 while it has none
        ("visits", _I),
        ("prior", _F),  # probability; those of a node's edges add up to 1
        ("prior_value", _F),  # estimated return of the seat to decide
        ("total", _F),  # sum of that seat's returns over simulations
    ],
    align=True,
)
MAX_DEPTH = 256  # edges at most on the path of a simulation


class Tree(NamedTuple):
    """Arrays of a tree.

    nodes: NODE, (N,). edges: EDGE, (E,). used: int64, (2,), numbers of nodes and edges in use.
    path: int64, (MAX_DEPTH, 2), nodes and edges of a simulation. wins: float64, (6,), chances to
    win by seat, summed over the simulations, then the number of simulations.
    rng_state: uint64, (1,), state of the random stream.
    """

    nodes: np.ndarray
    edges: np.ndarray
    used: np.ndarray
    path: np.ndarray
    wins: np.ndarray
    rng_state: np.ndarray


def make_tree(nodes: int, edges: int) -> Tree:
    """Return an empty tree with space for numbers of nodes and edges."""
    return Tree(
        np.zeros(nodes, NODE),
        np.zeros(edges, EDGE),
        np.zeros(2, np.int64),
        np.zeros((MAX_DEPTH, 2), np.int64),
        np.zeros(MAX_PLAYERS + 1),
        np.zeros(1, np.uint64),
    )


@kernel
def add_node(tree, g):
    """Add a node for a position; return its index, or -1 when the tree is full."""
    at = tree.used[0]
    if at == tree.nodes.shape[0]:
        return -1
    node = tree.nodes[at]
    node.game = g
    node.visits = 0
    node.first = 0
    node.edges = 0
    node.proven = 0
    node.wins[:] = 0.0
    tree.used[0] = at + 1
    return at


@kernel
def add_edges(tree, at, count):
    """Add edges without children to a node; return the first one's index, or -1 without space."""
    first = tree.used[1]
    if first + count > tree.edges.shape[0]:
        return np.int64(-1)
    for k in range(first, first + count):
        edge = tree.edges[k]
        edge.node = -1
        edge.visits = 0
        edge.total = 0.0
        edge.prior_value = 0.0
    tree.nodes[at].first = first
    tree.nodes[at].edges = count
    tree.used[1] = first + count
    return first


@kernel
def set_root(tree, game):
    """Clear a tree and set its root. game: GAME, (1,)."""
    tree.used[:] = 0
    tree.wins[:] = 0.0
    add_node(tree, game[0])


@kernel
def child_of(tree, at, action):
    """Return the node that an action of a node leads to; -1 when there is none."""
    for k in range(tree.nodes[at].first, tree.nodes[at].first + tree.nodes[at].edges):
        if tree.edges[k].action == action:
            return np.int64(tree.edges[k].node)
    return -1


@kernel
def reroot(tree, root, target):
    """Copy the subtree of a node into another tree, as its root."""
    target.nodes[0] = tree.nodes[root]
    target.wins[:] = 0.0
    target.rng_state[0] = tree.rng_state[0]
    nodes, edges, at = 1, 0, 0
    while at < nodes:
        node = target.nodes[at]
        first = np.int64(node.first)
        node.first = edges
        for k in range(first, first + node.edges):
            target.edges[edges] = tree.edges[k]
            if tree.edges[k].node >= 0:
                target.nodes[nodes] = tree.nodes[tree.edges[k].node]
                target.edges[edges].node = nodes
                nodes += 1
            edges += 1
        at += 1
    target.used[0] = nodes
    target.used[1] = edges
