"""The tree that searches grow: positions and the actions between them, in arrays made once.

Every node keeps its position, so that a simulation walks down by index and steps only where it
leaves the tree.
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
        ("edges", _I),
        ("values", _F, MAX_PLAYERS),  # each seat's return as a network sees it, if one guides
    ]
)
EDGE = np.dtype(
    [
        ("action", _I),
        ("node", _I),  # the child that it leads to; -1 when there is none yet
        ("visits", _I),
        ("prior", _F),  # probability; those of a node's edges add up to 1
        ("prior_value", _F),  # return of the seat that decides, by knowledge of what it leads to
        ("total", _F),  # ... and by the simulations that went there, summed up
    ]
)
MAX_DEPTH = 256  # a simulation goes no deeper


class Tree(NamedTuple):
    """Arrays of a tree: NODE, (N,); EDGE, (E,); how many of each are in use: int64, (2,).

    path: int64, (MAX_DEPTH, 2), nodes and edges of a simulation. wins: float64, (6,), chances of
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
    """An empty tree that has space for so many nodes and edges; memory is taken up as it grows."""
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
    """Add a node for a position; -1 when the tree is full."""
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
def set_root(tree, game):
    """Empty a tree and begin it with one position (GAME, an array of length one)."""
    tree.used[:] = 0
    tree.wins[:] = 0.0
    add_node(tree, game[0])


@kernel
def child_of(tree, at, action):
    """The node that an action of a node leads to; -1 when there is none."""
    for k in range(tree.nodes[at].first, tree.nodes[at].first + tree.nodes[at].edges):
        if tree.edges[k].action == action:
            return np.int64(tree.edges[k].node)
    return -1


@kernel
def reroot(tree, root, target):
    """Copy what is below a node into another tree, where the node becomes the root."""
    target.nodes[0] = tree.nodes[root]
    target.wins[:] = 0.0
    target.noise[0] = tree.noise[0]
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
