"""The forms of observations that all environments share, and what `illegal` may be."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from busenv import Game, ObservationLayout, bus_v0, load_board
from busenv.envs.gymnasium import BusEnv
from busenv.envs.observation_format import as_observation_format, check_illegal, legal_instead
from busenv.envs.vector import BusVectorEnv
from busenv.envs.wrappers import with_form
from busenv.observation import observe_games
from tests.support.play import picks, played

CITY = load_board("city")


def some_games(number: int) -> np.ndarray:
    """States along random games of 3 to 5 players."""
    games = []
    for k in range(number):
        done = played(3 + k % 3, seed=k)
        game = Game(done.num_players, first_player=done.first_player)
        for action in done.history[: 7 * k]:
            game.step(action)
        games.append(game.arrays()[0])
    return np.concatenate(games)


@pytest.fixture(scope="module")
def games() -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks along some games."""
    return observe_games(some_games(20), CITY)


@pytest.mark.parametrize("dtype", ["uint8", "float32", np.float32, np.dtype("uint8")])
@pytest.mark.parametrize("keys", [None, ("observations", "action_mask"), ["obs", "mask"]])
def test_one_game_and_many_are_shown_alike_and_as_the_space_says(
    games: tuple[np.ndarray, np.ndarray], keys: Any, dtype: Any
) -> None:
    rows, masks = games
    form, layout = as_observation_format(CITY, keys, dtype), ObservationLayout(CITY)
    scaled = np.dtype(dtype) == np.float32
    expected = np.minimum(rows * layout.scale, 1) if scaled else rows
    seen = form.show(rows, masks)
    one = form.show(rows[3], masks[3])
    assert form.observation_space.contains(one)
    assert form.action_space == spaces.Discrete(CITY.num_actions)
    if keys is None:
        assert isinstance(seen, np.ndarray)
        assert isinstance(one, np.ndarray)
    else:
        assert isinstance(seen, dict)
        assert isinstance(one, dict)
        assert [*seen] == [*one] == [*keys]
        assert seen[keys[1]].dtype == one[keys[1]].dtype == np.int8
        assert (seen[keys[1]] == masks).all()
        assert (one[keys[1]] == masks[3]).all()
        seen, one = seen[keys[0]], one[keys[0]]
    assert seen.dtype == one.dtype == dtype
    assert (seen == expected).all()
    assert (one == expected[3]).all()


def test_scaled_rows_are_within_0_and_1_and_tell_apart_what_bytes_do(
    games: tuple[np.ndarray, np.ndarray],
) -> None:
    rows, masks = games
    seen = as_observation_format(CITY, None, "float32").show(rows, masks)
    assert isinstance(seen, np.ndarray)
    assert (seen.min(), seen.max()) == (0, 1)
    assert ((seen > 0) == (rows > 0)).all()
    full = as_observation_format(CITY, None, "float32").show(np.full_like(rows, 255), masks)
    assert (full == 1).all()


def test_nothing_is_copied_that_need_not_be(
    games: tuple[np.ndarray, np.ndarray],
) -> None:
    rows, masks = games
    form = as_observation_format(CITY, ("obs", "mask"))
    seen = form.show(rows, masks)
    assert isinstance(seen, dict)
    assert seen["obs"] is rows
    assert np.shares_memory(seen["mask"], masks)
    out = np.empty(rows.shape, np.float32)
    scaled = as_observation_format(CITY, None, "float32")
    assert scaled.show(rows, masks, out) is out
    assert (out == scaled.show(rows, masks)).all()


@pytest.mark.parametrize("keys", ["ab", ("obs",), ("obs", "obs"), ("obs", 1), 3, ("a", "b", "c")])
def test_keys_that_are_no_pair_of_names_are_refused(keys: Any) -> None:
    with pytest.raises(ValueError, match=r"observation_keys is .*allowed: None, or two names"):
        as_observation_format(CITY, keys)


@pytest.mark.parametrize("dtype", ["float64", "bytes?", None, int, 7])
def test_types_of_observations_that_there_are_not_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"observation_dtype is .*allowed: one of \['uint8', "):
        as_observation_format(CITY, None, dtype)


def test_what_illegal_may_be() -> None:
    assert [check_illegal(name) for name in ("raise", "lose", "replace")]
    for wrong in ("ignore", None, 1):
        with pytest.raises(ValueError, match=r"illegal is .*allowed: one of \['raise', 'lose', "):
            check_illegal(wrong)  # type: ignore[arg-type]


def test_a_legal_action_stands_in_for_an_illegal_one_evenly_and_always_the_same() -> None:
    drawn = []
    for seed in range(3000):
        game = Game(first_player=0, seed=seed)
        drawn.append(legal_instead(game))
        assert drawn[-1] == legal_instead(game)
    legal = Game(first_player=0).legal_actions()
    actions, counts = np.unique(drawn, return_counts=True)
    assert actions.tolist() == legal
    assert (abs(counts - 3000 / len(legal)) < 5 * (3000 / len(legal)) ** 0.5).all()
    game.step(drawn[-1])
    assert len({legal_instead(game) for _ in range(3)}) == 1


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_environments_that_exist_already_are_seen_in_another_form(dtype: str) -> None:
    """The wrapper shows what the environment's own settings do."""
    keys, rng = ("obs", "mask"), np.random.default_rng(0)
    form: Any = {"observation_keys": keys, "observation_dtype": dtype}

    wrapped, own = with_form(gymnasium.make("busenv/Bus-v0"), **form), BusEnv(**form)
    given, expected = wrapped.reset(seed=1), own.reset(seed=1)
    over = False
    while not over:
        assert data_equivalence(given, expected, exact=True)
        assert wrapped.observation_space.contains(given[0])
        action = int(picks(expected[0]["mask"][None], rng)[0])
        given, expected = wrapped.step(action), own.step(action)
        over = bool(expected[2])
    assert data_equivalence(given, expected, exact=True)
    assert wrapped.observation_space == own.observation_space

    many = {"num_envs": 3, "autoreset_mode": "SameStep"}
    vector = with_form(BusVectorEnv(**many), **form)
    vectors = BusVectorEnv(**many, **form)
    given, expected = vector.reset(seed=1), vectors.reset(seed=1)
    assert vector.observation_space == vectors.observation_space
    ended = 0
    while ended < 4:
        assert data_equivalence(given, expected, exact=True)
        actions = picks(expected[-1]["action_mask"], rng)
        given, expected = vector.step(actions), vectors.step(actions)
        ended += expected[2].sum()

    for make in (bus_v0.env, bus_v0.parallel_env):
        one, other = with_form(make(), **form), make(**form)
        for env in (one, other):
            env.reset(seed=1)
        agent = one.agents[0]
        assert one.observation_space(agent) is one.observation_space(agent)
        assert one.observation_space(agent) == other.observation_space(agent)
    turns, twin = with_form(bus_v0.env(), **form), bus_v0.env(**form)
    turns.reset(seed=1)
    twin.reset(seed=1)
    while twin.agents:
        assert data_equivalence(turns.last(), twin.last(), exact=True)
        seen, _, over, _, _ = twin.last()
        action = None if over else int(picks(seen["mask"][None], rng)[0])
        turns.step(action)
        twin.step(action)
    parallel, pair = with_form(bus_v0.parallel_env(), **form), bus_v0.parallel_env(**form)
    given, expected = parallel.reset(seed=1), pair.reset(seed=1)
    for _ in range(20):
        assert data_equivalence(given, expected, exact=True)
        actions = {name: int(seen["mask"].argmax()) for name, seen in expected[0].items()}
        given, expected = parallel.step(actions), pair.step(actions)


def test_only_what_can_be_seen_in_another_form_is() -> None:
    with pytest.raises(TypeError, match="is no environment of Gymnasium"):
        with_form(CITY)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="is no environment of busenv"):
        with_form(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="has another form already"):
        with_form(BusEnv(observation_dtype="float32"))
    with pytest.raises(ValueError, match="PettingZoo wants two names"):
        with_form(bus_v0.env(), None)
