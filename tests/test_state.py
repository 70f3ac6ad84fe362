"""A state holds its position only: equal positions have equal bytes."""

import random

import numpy as np
import pytest

from busenv import EDITIONS, Game, encode, observe
from tests.support.play import STYLES, choose


def check(game: Game) -> None:
    """A game that begins in the position has the same bytes, hash and observations."""
    twin = Game.from_position(game.position(), game.rules, game.board)
    state, other = game.arrays()[0][0], twin.arrays()[0][0]
    assert [
        name for name in state.dtype.names if not np.array_equal(state[name], other[name])
    ] == []
    assert state.tobytes() == other.tobytes()
    assert twin.position_hash() == game.position_hash()
    for seat in range(game.num_players):
        assert np.array_equal(twin.observe(seat), game.observe(seat))
    assert np.array_equal(twin.observe(), observe(game))


@pytest.mark.parametrize("rules", EDITIONS)
@pytest.mark.parametrize("players", [3, 4, 5])
def test_a_position_tells_every_byte_of_the_state(players: int, rules: str) -> None:
    for seed in range(3):
        rng, game = random.Random(seed), Game(players, rules, seed=seed)
        style = STYLES[(seed + 3 * players + len(rules)) % len(STYLES)]
        while not game.is_over:
            check(game)
            streets = game.position().streets[game.current_player]
            visited = {i for street in streets for i in game.board.streets[street]}
            game.step(choose(rng, game.board, game.legal_actions(), style, visited))
        check(game)


def test_positions_reached_in_another_order_are_the_same() -> None:
    one, other = Game(3, first_player=0), Game(3, first_player=0)
    house, pub = encode(one.board, "build", 2, 0), encode(one.board, "build", 7, 2)
    for game, actions in ((one, (house, pub)), (other, (pub, house))):
        for action in actions:
            game.step(action)
    assert one.history != other.history
    assert one.position_hash() == other.position_hash()
    assert one.arrays()[0].tobytes() == other.arrays()[0].tobytes()


def test_the_hash_tells_positions_apart() -> None:
    games = [Game(players, rules, first_player=0) for players in (3, 4, 5) for rules in EDITIONS]
    games += [Game(3, first_player=1), Game(3, first_player=0)]
    games[-1].step(8)
    assert len({game.position_hash() for game in games}) == len(games)
    assert all(0 <= game.position_hash() < 2**64 for game in games)
