"""Proven results in the search tree: MCTS-Solver (Winands, Björnsson and Saito 2008, "Monte-Carlo
tree search solver") for several players (Nijssen and Winands 2011, "Enhancements for multi-player
Monte-Carlo tree search").

A node's return is proven for a seat when best play of all seats (max^n, Luckhardt and Irani 1986)
leads to that return for it, whatever a seat prefers among actions that are equally good for it. The
returns of finished games are proven. At other nodes, the seat to decide is the mover:

- The mover's return is proven when those of all children are proven for the mover, and is the best
  of them. One child suffices if its return is the highest possible one. A mere win does not
  suffice, since points are part of the return and another action may win by more.
- Another seat's return is proven when the mover's is proven at all children and all best children
  have the same proven return for that seat. If the best children differ, the mover's choice is
  unknown, and the seat's return remains an estimate (the standard update rule of Nijssen and
  Winands).

A simulation that reaches a node with proven returns of all seats ends there. Proven returns replace
those of the simulation on its way back, and the mean return of an edge whose child is proven is
exact.
"""

from __future__ import annotations

import numpy as np

from busenv.core.jit import kernel

HIGHEST = 1.0  # the return of a win by the largest margin that counts
TOLERANCE = 1e-5  # rounding errors of equal returns; returns that differ do so by more
DECIDED = 1e9  # weight of a proven best action, next to the weights from other threads' trees


@kernel
def all_seats(players):
    """Return the bits of all seats."""
    return (1 << np.int64(players)) - 1


@kernel
def is_proven(tree, edge):
    """Return whether an action of the root has a proven return for the seat to decide."""
    child = np.int64(tree.edges[edge].node)
    return child >= 0 and tree.nodes[child].proven >> tree.nodes[0].game.seat & 1 != 0


@kernel
def is_decided(tree):
    """Return whether the best action of the root is proven."""
    return tree.nodes[0].proven >> tree.nodes[0].game.seat & 1 != 0


@kernel
def best_proven_edge(tree):
    """Return the root's edge with the highest proven return, the most visited one of equals.

    -1 when no edge's return is proven.
    """
    best, highest, first = np.int64(-1), -1.0, np.int64(tree.nodes[0].first)
    for k in range(first, first + tree.nodes[0].edges):
        if is_proven(tree, k):
            edge = tree.edges[k]
            value = np.float64(tree.nodes[edge.node].values[tree.nodes[0].game.seat])
            is_equal = abs(value - highest) < TOLERANCE
            if (is_equal and edge.visits > tree.edges[best].visits) or (
                not is_equal and value > highest
            ):
                best, highest = k, value
    return best


@kernel
def prove_end(tree, at, returns):
    """Mark the returns of a finished game as proven. returns: float64, (5,), by seat."""
    node = tree.nodes[at]
    for seat in range(node.game.players):
        node.values[seat] = returns[seat]
    node.proven = all_seats(node.game.players)


@kernel
def _prove(tree, at):
    """Prove returns of a node by those of its children; return whether there are more now."""
    node, seat = tree.nodes[at], np.int64(tree.nodes[at].game.seat)
    first, before = np.int64(node.first), np.int64(node.proven)
    is_complete, best = True, -1.0
    for k in range(first, first + node.edges):
        child = np.int64(tree.edges[k].node)
        if child < 0 or tree.nodes[child].proven >> seat & 1 == 0:
            is_complete = False
        else:
            best = max(best, np.float64(tree.nodes[child].values[seat]))
    if not is_complete and best < HIGHEST - TOLERANCE:
        return False
    node.values[seat] = best
    node.proven |= 1 << seat
    if is_complete:
        _prove_others(tree, at, best)
    return node.proven != before


@kernel
def _prove_others(tree, at, best):
    """Prove the returns that the mover's best actions, of a proven return, have in common."""
    node, seat, reference = tree.nodes[at], np.int64(tree.nodes[at].game.seat), np.int64(-1)
    first, proven = np.int64(node.first), np.int64(0)
    for k in range(first, first + node.edges):
        child = tree.nodes[tree.edges[k].node]
        if child.values[seat] < best - TOLERANCE:
            continue
        if reference < 0:
            reference, proven = np.int64(tree.edges[k].node), np.int64(child.proven)
        proven &= child.proven
        for other in range(node.game.players):
            if abs(child.values[other] - tree.nodes[reference].values[other]) > TOLERANCE:
                proven &= ~(1 << other)
    node.proven |= proven
    for other in range(node.game.players):
        if other != seat and proven >> other & 1 != 0:
            node.values[other] = tree.nodes[reference].values[other]


@kernel
def use_proof(node, returns, chances):
    """Replace the returns of a simulation, and its chances to win, by those proven at a node.

    The winner has the highest return.
    """
    players = np.int64(node.game.players)
    for seat in range(players):
        if node.proven >> seat & 1 != 0:
            returns[seat] = node.values[seat]
    if node.proven == all_seats(players):
        winner = node.values[:players].argmax()
        for seat in range(players):
            chances[seat] = seat == winner


@kernel
def back_up_proof(tree, parent, k, newly_proven):
    """Update an edge, then its node, by the proven returns of the edge's child.

    newly_proven: whether the simulation proved more returns at the child.

    Returns whether it proved more at the node.
    """
    edge, seat = tree.edges[k], np.int64(tree.nodes[parent].game.seat)
    child = tree.nodes[edge.node]
    if child.proven >> seat & 1 != 0:
        edge.total = np.float64(edge.visits) * np.float64(child.values[seat])
        edge.prior_value = child.values[seat]
    return newly_proven and _prove(tree, parent)
