"""OpenSpiel's own test of a game; observations, rewards and parameters."""

import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busenv import EDITIONS, REWARDS, Game, ObservationLayout, load_board
from busenv.game.board import BOARDS
from busenv.observation import observe
from busenv.render import game_text
from tests.support.play import paid

pyspiel = pytest.importorskip("pyspiel", reason="needs the extra openspiel")

from open_spiel.python.algorithms.mcts import RandomRolloutEvaluator  # noqa: E402
from open_spiel.python.observation import make_observation  # noqa: E402

from busenv.envs.openspiel import BusState, PlayoutEvaluator  # noqa: E402


def load(**parameters: Any) -> Any:
    return pyspiel.load_game("busenv", parameters)


def walk(game: Any, seed: int = 1) -> Iterator[BusState]:
    """Yield one state after each decision of random play, including the last."""
    rng, state = random.Random(seed), game.new_initial_state()
    while not state.is_terminal():
        yield state
        state.apply_action(rng.choice(state.legal_actions()))
    yield state


def reached(game: Any, plies: int, seed: int = 1) -> BusState:
    """Return the state of a random game after a number of decisions."""
    return next(state for state in walk(game, seed) if state.move_number() == plies)


@pytest.mark.parametrize(("players", "rules"), [*zip((3, 4, 5, 3), EDITIONS, strict=True)])
def test_random_sim_test(players: int, rules: str) -> None:
    game = pyspiel.load_game(f"busenv(players={players},rules={rules})")
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False)


@pytest.mark.parametrize("reward", REWARDS)
def test_returns_are_the_sums_of_rewards(reward: str) -> None:
    for players in (3, 5):
        game = load(players=players, reward=reward)
        for state in walk(game):
            assert state.is_terminal() or state.returns() == state.rewards() == [0] * players
        expected = paid(state.bus, reward)
        np.testing.assert_allclose(state.returns(), expected, rtol=0, atol=1e-12)
        assert state.rewards() == state.returns()
        assert all(game.min_utility() <= value <= game.max_utility() for value in expected)
        zero_sum = game.get_type().utility == pyspiel.GameType.Utility.ZERO_SUM
        assert zero_sum == (reward != "deliveries")
        assert game.utility_sum() == (0 if zero_sum else None)


def test_a_state_follows_its_game() -> None:
    twin = Game(5, "splotter-1999", first_player=3)
    for state in walk(load(players=5, rules="splotter-1999", first_player=3)):
        for action in state.history()[len(twin.history) :]:
            twin.step(action)
        assert state.bus.position() == twin.position()
        assert state.is_terminal() == twin.is_over
        assert state.current_player() == (-4 if twin.is_over else twin.current_player)
        legal = twin.legal_actions()
        assert state.legal_actions() == pyspiel.State.legal_actions(state) == legal
        for seat in range(5):
            expected = legal if seat == twin.current_player else []
            assert state.legal_actions(seat) == expected
            assert pyspiel.State.legal_actions(state, seat) == expected
        for action in legal[::9]:
            words = state.action_to_string(action)
            assert words == twin.describe(action)
            assert state.string_to_action(words) == action


def test_states_are_restored_from_text(tmp_path: Path) -> None:
    """Of any rules and board; the game continues."""
    rules, board = tmp_path / "rules.json", tmp_path / "town.json"
    rules.write_text('{"bus_limit": 3}')
    board.write_text(json.dumps(json.loads((BOARDS / "city.json").read_text()) | {"name": "town"}))
    game = load(players=3, rules=str(rules), board=str(board), first_player=2, reward="margin")
    state = reached(game, 70)
    text = pyspiel.serialize_game_and_state(game, state)
    game_again, state_again = pyspiel.deserialize_game_and_state(text)
    assert str(game_again) == str(game)
    for other in (state_again, game.deserialize_state(state.serialize())):
        assert other.bus.to_bytes() == state.bus.to_bytes()
        assert other.bus.rules.bus_limit == 3
        assert other.bus.board.name == "town"
        assert other.history() == state.history()
        other.apply_action(other.legal_actions()[0])
        assert other.move_number() == 71
    assert pickle.loads(pickle.dumps(state)).bus.to_bytes() == state.bus.to_bytes()


def test_observations_are_of_the_seat(tmp_path: Path) -> None:
    crowded = tmp_path / "rules.json"  # where some bytes are beyond what is usual
    crowded.write_text('{"passengers": 80, "start_passengers": 70}')
    game = load(players=4, rules=str(crowded))
    observer, layout = make_observation(game), ObservationLayout(load_board("city"))
    for state in walk(game):
        for seat in range(4):
            raw = observe(state.bus, seat) * layout.scale
            observer.set_from(state, seat)
            assert observer.tensor.dtype == np.float32
            assert raw.max() > observer.tensor.max() == 1
            np.testing.assert_array_equal(observer.tensor, np.minimum(raw, 1))
            np.testing.assert_array_equal(observer.dict["observation"], observer.tensor)
    np.testing.assert_array_equal(state.observation_tensor(3), observer.tensor)
    assert game.observation_tensor_shape() == [layout.size]
    assert state.observation_string(0) == observer.string_from(state, 0) == game_text(state.bus)
    recall = make_observation(game, pyspiel.IIGObservationType(perfect_recall=True))
    assert recall.string_from(state, 0) == state.information_state_string(0) == state.history_str()
    with pytest.raises(ValueError, match="observer has no parameters"):
        make_observation(game, params={"x": 1})


@pytest.mark.parametrize("reward", ["win", "margin"])
def test_the_evaluator_is_random_rollouts(reward: str) -> None:
    """The means of many agree within five standard errors, but for their noise."""
    state = reached(load(players=3, reward=reward), 40)
    ours = np.array([PlayoutEvaluator(1, seed).evaluate(state) for seed in range(400)])
    theirs = RandomRolloutEvaluator(1, np.random.RandomState(1))
    compared = np.array([theirs.evaluate(state) for _ in range(100)])
    error = np.sqrt(ours.var(axis=0) / len(ours) + compared.var(axis=0) / len(compared))
    assert (np.abs(ours.mean(axis=0) - compared.mean(axis=0)) < 5 * error + 1e-9).all()
    assert ours.std(axis=0).min() > 0
    many = PlayoutEvaluator(4000, 7).evaluate(state)
    assert (np.abs(many - ours.mean(axis=0)) < 5 * ours.std(axis=0) / 20).all()
    assert PlayoutEvaluator(1).prior(state) == theirs.prior(state)
    with pytest.raises(ValueError, match="n_rollouts is 0; allowed: 1 or more"):
        PlayoutEvaluator(0)
