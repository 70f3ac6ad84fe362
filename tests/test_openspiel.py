"""OpenSpiel's own test of a game, and what it does not ask: observations, rewards, parameters."""

from __future__ import annotations

import json
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busenv import (
    EDITIONS,
    REWARDS,
    Game,
    IllegalActionError,
    ObservationLayout,
    load_board,
    longest_game,
)
from busenv.game.board import BOARDS
from tests.support.play import paid

pyspiel = pytest.importorskip("pyspiel", reason="needs the extra openspiel")

from open_spiel.python import rl_environment  # noqa: E402
from open_spiel.python.algorithms.mcts import MCTSBot, RandomRolloutEvaluator  # noqa: E402
from open_spiel.python.observation import make_observation  # noqa: E402

from busenv.envs.openspiel import BusState, PlayoutEvaluator  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs/recipes/openspiel.md"


def load(**parameters: Any) -> Any:
    return pyspiel.load_game("busenv", parameters)


def walk(game: Any, seed: int = 1) -> Iterator[BusState]:
    """A game of random play, state by state, the last one too; one and the same state goes on."""
    rng, state = random.Random(seed), game.new_initial_state()
    while not state.is_terminal():
        yield state
        state.apply_action(rng.choice(state.legal_actions()))
    yield state


def reached(game: Any, plies: int, seed: int = 1) -> BusState:
    """The state of a random game after so many decisions."""
    return next(state for state in walk(game, seed) if state.move_number() == plies)


@pytest.mark.parametrize("rules", EDITIONS)
@pytest.mark.parametrize("players", [3, 4, 5])
def test_random_sim_test(players: int, rules: str) -> None:
    game = pyspiel.load_game(f"busenv(players={players},rules={rules})")
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False)


@pytest.mark.slow
@pytest.mark.parametrize("rules", EDITIONS)
@pytest.mark.parametrize("players", [3, 4, 5])
def test_random_sim_test_many_times(players: int, rules: str) -> None:
    for reward in REWARDS:
        game = load(players=players, rules=rules, reward=reward, first_player=players - 1)
        pyspiel.random_sim_test(game, num_sims=3, serialize=True, verbose=False)


def test_what_the_game_says_of_itself() -> None:
    game = pyspiel.load_game("busenv")
    kind = game.get_type()
    assert kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    assert kind.chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
    assert kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    assert kind.reward_model == pyspiel.GameType.RewardModel.TERMINAL
    assert (game.num_players(), game.num_distinct_actions()) == (4, 375)
    for players in (3, 4, 5):
        for rules in EDITIONS:
            bound = load(players=players, rules=rules).max_game_length()
            assert bound == longest_game(players, rules)


@pytest.mark.parametrize("reward", REWARDS)
def test_the_end_pays_what_the_reward_adds_up_to(reward: str) -> None:
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


def test_a_state_is_the_game_in_it() -> None:
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


def test_a_clone_goes_its_own_way() -> None:
    state = reached(load(), 60)
    clone, before = state.clone(), state.bus.to_bytes()
    assert clone.bus.to_bytes() == before
    clone.apply_action(clone.legal_actions()[-1])
    assert (state.bus.to_bytes(), state.move_number()) == (before, 60)
    assert (len(clone.bus.history), clone.move_number()) == (61, 61)


def test_states_come_back_from_text(tmp_path: Path) -> None:
    """Of any rules and board; they play on."""
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


def test_an_observation_is_what_the_seat_sees(tmp_path: Path) -> None:
    crowded = tmp_path / "rules.json"  # where some bytes are beyond what is usual
    crowded.write_text('{"passengers": 80, "start_passengers": 70}')
    game = load(players=4, rules=str(crowded))
    observer, layout = make_observation(game), ObservationLayout(load_board("city"))
    for state in walk(game):
        for seat in range(4):
            raw = state.bus.observe(seat) * layout.scale
            observer.set_from(state, seat)
            assert observer.tensor.dtype == np.float32
            assert raw.max() > observer.tensor.max() == 1
            np.testing.assert_array_equal(observer.tensor, np.minimum(raw, 1))
            np.testing.assert_array_equal(observer.dict["observation"], observer.tensor)
    np.testing.assert_array_equal(state.observation_tensor(3), observer.tensor)
    assert game.observation_tensor_shape() == [layout.size]
    assert state.observation_string(0) == observer.string_from(state, 0) == state.bus.text()
    recall = make_observation(game, pyspiel.IIGObservationType(perfect_recall=True))
    assert recall.string_from(state, 0) == state.information_state_string(0) == state.history_str()
    with pytest.raises(ValueError, match="observer has no parameters"):
        make_observation(game, params={"x": 1})


def test_an_illegal_action_changes_nothing() -> None:
    state = load().new_initial_state()
    with pytest.raises(IllegalActionError, match=r"action 7 \(pass\) is illegal for seat 0"):
        state.apply_action(7)
    assert state.bus.history == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"players": 6}, "num_players is 6; allowed: 3, 4 or 5"),
        ({"rules": "capstone"}, "unknown rules 'capstone'; allowed"),
        ({"reward": "points"}, "reward is 'points'; allowed: one of"),
        ({"players": 3, "first_player": 3}, "first_player is 3; allowed: 0 to 2"),
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(**parameters)


def test_parameters_that_there_are_not_are_named() -> None:
    with pytest.raises(pyspiel.SpielError, match="Unknown parameter 'colour'"):
        load(colour=1)
    with pytest.raises(FileNotFoundError, match="no board 'town'"):
        load(board="town")


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


def test_the_evaluator_goes_by_its_seed() -> None:
    state = reached(load(), 30)
    one, same, other = PlayoutEvaluator(1, 3), PlayoutEvaluator(1, 3), PlayoutEvaluator(1, 4)
    drawn = [
        [evaluator.evaluate(state).tolist() for _ in range(9)] for evaluator in (one, same, other)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({*map(tuple, drawn[0])}) > 1


def test_their_search_plays_with_it() -> None:
    """The same decision for the same seeds; and a legal one."""
    game = load(players=3)
    state = reached(game, 40)

    def decide() -> int:
        noise = np.random.RandomState(5)
        return MCTSBot(game, 2, 50, PlayoutEvaluator(seed=5), random_state=noise).step(state)

    assert decide() == decide()
    assert decide() in state.legal_actions()


def test_their_environment_for_learners_runs() -> None:
    environment = rl_environment.Environment("busenv", players=3, reward="rank")
    rng, step = random.Random(2), environment.reset()
    while not step.last():
        seat = step.observations["current_player"]
        assert len(step.observations["info_state"][seat]) == 2045
        step = environment.step([rng.choice(step.observations["legal_actions"][seat])])
    assert sorted(step.rewards) == [-1, 0, 1]


def test_the_script_of_its_page_runs(tmp_path: Path) -> None:
    """And their search, with our evaluator, wins against three random players."""
    (script,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "seat" not in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])[0] == 1
