"""UCT for several players (Kocsis and Szepesvari 2006; max^n) without handcrafted knowledge.

Leaves are played out uniformly at random to the end of the game; a win counts 1. The opponent in a
test of the search with knowledge.
"""

import numpy as np

from busenv import Game
from busenv.core.bits import GOLDEN, mix
from busenv.core.jit import kernel
from busenv.core.rules.legal import legal_ids, random_action
from busenv.core.rules.score import rank_of
from busenv.core.rules.step import step
from busenv.core.state import GAME, OVER

EXPLORATION = 0.3  # against the search with knowledge, 0.3 and 0.6 are equally strong, 1 is weaker


@kernel
def _search(game, board, simulations, seed, at_depth, tree, actions, bits, ahead):
    """Return the root's most visited action.

    tree: int64, (nodes, 5): first child, children, action, visits, wins of the seat that chose the
    action.
    """
    b, g, used = board[0], ahead[0], 1
    tree[0, :] = 0
    for _ in range(simulations):
        ahead[0] = game[0]
        at, depth = 0, 0
        at_depth[0, 0], at_depth[0, 1] = 0, -1
        while g.phase != OVER:
            if tree[at, 1] == 0:
                if tree[at, 3] == 0 and at > 0:
                    break  # a leaf is played out once before it is expanded
                count = legal_ids(g, b, bits, actions)
                if used + count > tree.shape[0]:
                    break
                tree[at, 0], tree[at, 1] = used, count
                for k in range(count):
                    tree[used + k, :] = 0
                    tree[used + k, 2] = actions[k]
                used += count
            best, selected, log = -1.0, 0, np.log(np.float64(tree[at, 3]) + 1.0)
            for child in range(tree[at, 0], tree[at, 0] + tree[at, 1]):
                visits = np.float64(tree[child, 3])
                score = 1e9
                if visits > 0.0:
                    score = np.float64(tree[child, 4]) / visits
                    score += EXPLORATION * np.sqrt(log / visits)
                if score > best:
                    best, selected = score, child
            depth += 1
            at_depth[depth, 0], at_depth[depth, 1] = selected, np.int64(g.seat)
            at = selected
            step(g, b, tree[at, 2])
        while g.phase != OVER:
            seed += GOLDEN
            step(g, b, random_action(g, b, mix(seed)))
        for k in range(depth + 1):
            node, seat = at_depth[k, 0], at_depth[k, 1]
            tree[node, 3] += 1
            if seat >= 0 and rank_of(g, seat) == 0:
                tree[node, 4] += 1
    best, action = -1, 0
    for child in range(tree[0, 0], tree[0, 0] + tree[0, 1]):
        if tree[child, 3] > best:
            best, action = tree[child, 3], tree[child, 2]
    return action


class PlainUct:
    """An agent that runs a number of simulations of plain UCT."""

    def __init__(self, simulations: int, seed: int = 0) -> None:
        self._simulations, self._rng = simulations, np.random.default_rng(seed)
        self._tree = np.zeros((40 * simulations + 400, 5), np.int64)

    def act(self, game: Game) -> int:
        games, board = game.arrays()
        actions = np.zeros(game.board.num_actions, np.int64)
        bits = np.zeros((len(actions) + 63) // 64, np.uint64)
        seed, path = np.uint64(self._rng.integers(2**62)), np.zeros((2000, 2), np.int64)
        return int(
            _search(
                games, board, self._simulations, seed, path, self._tree, actions, bits,
                np.zeros(1, GAME),
            )
        )  # fmt: skip
