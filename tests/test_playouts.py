"""Random playouts from a position, compared with the same play step by step."""

from __future__ import annotations

import numpy as np
import pytest

from busenv import REWARDS, Game, random_returns
from busenv.core import bits
from tests.support.play import paid, played
from tests.support.random_play import play_out


def played_on(game: Game, seed: int, times: int) -> list[Game]:
    """The game played on to its end with the random streams of `random_returns`."""
    copies = []
    for index in range(times):
        copies.append(game.clone())
        state, board = copies[-1].arrays()
        play_out(state, board, np.array([bits.seeded(np.uint64(seed), index)], np.uint64))
    return copies


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("players", [3, 4, 5])
def test_every_playout_pays_what_its_end_is_worth(players: int, reward: str) -> None:
    for plies in (0, 60, 10_000):
        game = played(players, seed=players, plies=plies)
        returns = random_returns(game, 20, reward, seed=9)
        assert returns.dtype == np.float64
        expected = [paid(end, reward) for end in played_on(game, 9, 20)]
        np.testing.assert_allclose(returns, expected, rtol=0, atol=1e-12)
        if game.is_over:
            assert (returns == returns[0]).all()
        else:
            assert len(np.unique(returns, axis=0)) > 1


def test_returns_include_earlier_deliveries() -> None:
    game = played(plies=150)
    assert sum(game.deliveries) > 2
    again = Game.from_position(game.position())
    for reward in REWARDS:
        one, other = (random_returns(g, 20, reward, seed=3) for g in (game, again))
        np.testing.assert_array_equal(one, other)
    assert (random_returns(game, 20, "deliveries") >= game.deliveries).all()


def test_returns_are_deterministic_and_leave_the_game_unchanged() -> None:
    game = played(plies=80)
    before = game.to_bytes()
    one = random_returns(game, 50, "margin", seed=1)
    np.testing.assert_array_equal(one, random_returns(game, 50, "margin", seed=1))
    np.testing.assert_array_equal(one[:10], random_returns(game, 10, "margin", seed=1))
    assert (one != random_returns(game, 50, "margin", seed=2)).any()
    assert game.to_bytes() == before
    assert random_returns(game, 0).shape == (0, 4)
