"""Games that begin in a position; equal positions have equal bytes."""

import dataclasses
import pickle
import random

import numpy as np
import pytest

from busenv import EDITIONS, Building, Game, Phase, PositionError, Rules, encode
from busenv.game.board import make_board
from busenv.observation import observe
from tests.support.positions import CASES, at_phase, begun, same, step
from tests.support.worlds import random_board, random_rules


def check_state(game: Game) -> Game:
    """Return a game that begins in the position: with the same bytes, hash and observations."""
    twin = begun(game)
    state, other = game.arrays()[0][0], twin.arrays()[0][0]
    assert [n for n in state.dtype.names if not np.array_equal(state[n], other[n])] == []
    assert state.tobytes() == other.tobytes()
    assert twin.position_hash() == game.position_hash()
    for seat in (None, *range(game.num_players)):
        assert np.array_equal(observe(twin, seat), observe(game, seat))
    assert same(twin, game)
    return twin


@pytest.mark.parametrize(("players", "rules"), CASES)
def test_a_game_from_a_position_plays_on_like_the_one_it_is_of(players: int, rules: str) -> None:
    rng, game, starts = random.Random(0), Game(players, rules, seed=0), []
    while not game.is_over:
        twin = check_state(game)
        assert twin.position().ranking == twin.ranking() == game.ranking()
        if rng.random() < 0.1:
            starts.append((twin, len(game.history)))
        step(game, rng, style=CASES.index((players, rules)) + game.round)
    check_state(game)
    for twin, ply in starts:
        for action in game.history[ply:]:
            twin.step(action)
        assert same(twin, game)
        assert twin.history == game.history[ply:]


def test_any_board_and_rules_have_positions_to_begin_in() -> None:
    for seed in range(15):
        rng = random.Random(seed)
        game = Game(
            rng.choice([3, 4, 5]), random_rules(rng), make_board(random_board(rng)), seed=seed
        )
        while not game.is_over:
            check_state(game)
            step(game, rng, seed)
        check_state(game)


def test_a_changed_position_is_played_by_its_changes() -> None:
    game = at_phase(Phase.CLOCK)
    changed = dataclasses.replace(game.position(), clock=Building.PUB)
    later = Game.from_position(changed)
    later.step(301)  # let time advance
    assert later.position().clock == Building.HOUSE
    assert game.position().clock == Building.HOUSE  # left as it was


def test_rules_and_board_are_as_given() -> None:
    rules, board = Rules(passengers=12, spaces=4), make_board(random_board(random.Random(3)))
    game = Game(3, rules, board, first_player=2)
    twin = begun(game)
    assert (twin.rules, twin.board, twin.first_player, twin.seed) == (rules, board, 2, 0)
    with pytest.raises(PositionError, match="passengers"):
        Game.from_position(game.position(), rules)  # on the city


def test_games_from_positions_are_saved_copied_and_undone(tmp_path) -> None:  # type: ignore[no-untyped-def]
    game = begun(at_phase(Phase.PICK_UP, 3, "splotter-1999"))
    start = game.position()
    with pytest.raises(ValueError, match="nothing to undo"):
        game.undo()
    rng = random.Random(0)
    for _ in range(30):
        game.step(rng.choice(game.legal_actions()))
    game.save(tmp_path / "game.json")
    for twin in (
        Game.load(tmp_path / "game.json"),
        Game.from_bytes(game.to_bytes()),
        pickle.loads(pickle.dumps(game)),
        game.clone(),
    ):
        assert same(twin, game)
        assert twin.history == game.history
        assert twin.to_bytes() == game.to_bytes()
        assert twin.last_decision == game.last_decision
        while twin.history:
            twin.undo()
        assert twin.position() == start
    replayed = [(now.position(), action) for now, action in Game.replay(game.record())]
    assert replayed[0] == (start, game.history[0])
    assert len(replayed) == 30


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
