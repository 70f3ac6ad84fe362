"""Playouts, and the search with handcrafted knowledge."""

from __future__ import annotations

import random

import numpy as np

from busenv import Game, load_board
from busenv.agents.uct_agent import UctAgent
from busenv.core.bits import GOLDEN, mix, subtract_bytes
from busenv.core.jit import kernel
from busenv.core.rules.legal import is_legal
from busenv.core.rules.step import step
from busenv.core.state import Phase
from busenv.game.board import make_board
from busenv.heuristics.playout import playout_action
from busenv.search.uct_search import UctSettings
from tests.support.worlds import random_board, random_rules

CITY = load_board("city")


def test_bytes_are_subtracted_side_by_side() -> None:
    pairs = np.random.default_rng(5).integers(0, 128, (200, 2, 8)).astype(np.uint8)
    pairs[0] = [[0, 127, 0, 127, 1, 0, 5, 126], [0, 127, 127, 0, 0, 1, 5, 127]]
    for some, other in pairs:
        difference = np.uint64(subtract_bytes(some.view(np.uint64)[0], other.view(np.uint64)[0]))
        expected = np.maximum(some.astype(int) - other, 0)
        assert np.array([difference]).view(np.uint8).tolist() == expected.tolist()


@kernel
def _play_out(game, board, seed):  # type: ignore[no-untyped-def]
    """Play a game as playouts do; -1, or the first illegal action."""
    while game[0].phase != Phase.OVER:
        seed += GOLDEN
        action = playout_action(game[0], board[0], mix(seed))
        if not is_legal(game[0], board[0], action):
            return action
        step(game[0], board[0], action)
    return -1


def test_playouts_are_legal_on_any_board_and_by_any_rules() -> None:
    rng = random.Random(8)
    for seed in range(60):
        board = make_board(random_board(rng)) if seed % 2 else CITY
        game = Game(3 + seed % 3, random_rules(rng), board, seed=seed)
        assert _play_out(game.arrays()[0], board.array, np.uint64(seed)) == -1
        assert game.is_over


def test_long_searches_play_out_to_the_end() -> None:
    """Early in a game, playouts to the end give other values than playouts of two rounds."""

    def chances(**settings: int) -> np.ndarray:
        agent = UctAgent(400, seed=1, settings=UctSettings(**settings))
        return np.array(agent.estimate(Game(4, first_player=0, seed=1))[0])

    assert (chances() == chances(full_playout_visits=10**9)).all()
    assert (chances() != chances(full_playout_visits=200)).any()
    assert (chances(full_playout_visits=0) == chances(playout_rounds=1000)).all()


def test_trees_of_another_board_are_cleared() -> None:
    """Positions of a larger board have actions that overrun the arrays of a smaller one."""
    agent, game = UctAgent(20), Game(board="generated:small:1", first_player=0)
    agent.act(Game(board="generated:large:1"))
    assert all(tree.used.all() for tree in agent._trees)
    agent._prepare(game.board)
    assert not any(tree.used.any() for tree in agent._trees)
    agent.reset(3)
    assert agent.act(game) == UctAgent(20, seed=3).act(game)
