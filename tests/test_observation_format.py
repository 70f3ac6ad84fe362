"""Observation formats of all environments, and the settings of `illegal`."""

from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from busenv import Game, bus_v0, load_board
from busenv.envs.gymnasium import BusEnv
from busenv.envs.illegal_actions import replacement_action
from busenv.envs.observation_format import ObservationFormat
from busenv.envs.vector import BusVectorEnv
from busenv.observation import observe, observe_games
from tests.support.play import picks, played
from tests.support.positions import at_ply

CITY = load_board("city")


@pytest.fixture(scope="module")
def games() -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks along some games."""
    some = [at_ply(played(3 + k % 3, seed=k), 7 * k).arrays()[0] for k in range(20)]
    return observe_games(np.concatenate(some), CITY)


def test_scaled_rows_are_in_0_to_1_and_zero_only_where_bytes_are(
    games: tuple[np.ndarray, np.ndarray],
) -> None:
    rows, masks = games
    seen = ObservationFormat(CITY, None, "float32").convert(rows, masks)
    assert isinstance(seen, np.ndarray)
    assert (seen.min(), seen.max()) == (0, 1)
    assert ((seen > 0) == (rows > 0)).all()
    full = ObservationFormat(CITY, None, "float32").convert(np.full_like(rows, 255), masks)
    assert (full == 1).all()


@pytest.mark.parametrize("copy", [False, True])
def test_bytes_and_masks_are_copied_only_on_request(
    games: tuple[np.ndarray, np.ndarray], copy: bool
) -> None:
    rows, masks = games
    observations: Any = ObservationFormat(CITY, ("obs", "mask")).convert(rows, masks, copy)
    assert np.shares_memory(observations["obs"], rows) != copy
    assert np.shares_memory(observations["mask"], masks) != copy


@pytest.mark.parametrize("keys", ["ab", ("obs",), ("obs", "obs"), ("obs", 1), 3, ("a", "b", "c")])
def test_keys_that_are_no_pair_of_names_are_refused(keys: Any) -> None:
    with pytest.raises(ValueError, match=r"observation_keys is .*allowed: None, or two names"):
        ObservationFormat(CITY, keys)


@pytest.mark.parametrize("dtype", ["float64", None, int, "float_32"])
def test_unknown_observation_dtypes_are_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"observation_dtype is .*allowed: one of \['uint8', "):
        ObservationFormat(CITY, None, dtype)


def test_an_illegal_action_is_replaced_by_a_legal_one_uniformly_and_repeatably() -> None:
    drawn = []
    for seed in range(3000):
        game = Game(first_player=0, seed=seed)
        drawn.append(replacement_action(game))
        assert drawn[-1] == replacement_action(game)
    legal = Game(first_player=0).legal_actions()
    actions, counts = np.unique(drawn, return_counts=True)
    assert actions.tolist() == legal
    assert (abs(counts - 3000 / len(legal)) < 5 * (3000 / len(legal)) ** 0.5).all()
    game.step(drawn[-1])
    assert len({replacement_action(game) for _ in range(3)}) == 1


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("keys", [None, ("obs", "mask")])
def test_every_environment_has_the_format_of_its_settings(keys: Any, dtype: str) -> None:
    """The observations are those of the games, converted."""
    settings: Any = {"observation_dtype": dtype} | ({"observation_keys": keys} if keys else {})
    expected = ObservationFormat(CITY, keys, dtype)
    single, vector = BusEnv(**settings), BusVectorEnv(3, autoreset_mode="SameStep", **settings)
    (seen, info), (rows, infos) = single.reset(seed=1), vector.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert single.game is not None
        plain = expected.convert(observe(single.game, single.seat), info["action_mask"])
        assert data_equivalence(seen, plain, exact=True)
        plain = expected.convert(vector.batch.observations, vector.batch.masks)
        assert data_equivalence(rows, plain, exact=True)
        for i, row, mask in zip(
            np.flatnonzero(infos.get("_final_obs", [])), *vector.batch.final_observations(),
            strict=True,
        ):  # fmt: skip
            assert data_equivalence(infos["final_obs"][i], expected.convert(row, mask), exact=True)
        if not single.game.is_over:
            seen, *_, info = single.step(int(picks(info["action_mask"][None], rng)[0]))
        rows, *_, infos = vector.step(picks(infos["action_mask"], rng))

    turns, parallel = bus_v0.raw_env(**settings), bus_v0.parallel_env(**settings)
    names = keys or ("observation", "action_mask")
    pair = ObservationFormat(CITY, names, dtype)
    turns.reset(seed=1)
    views, _ = parallel.reset(seed=1)
    for _ in range(40):
        for seat, agent in enumerate(turns.agents):
            mask = turns.game.action_mask() * (seat == turns.game.current_player)
            view = pair.convert(observe(turns.game, seat), mask.astype(np.int8))
            assert data_equivalence(turns.observe(agent), view, exact=True)
            assert data_equivalence(views[agent][names[0]], view[names[0]], exact=True)
            assert turns.observation_space(agent).contains(view)
        action, mover = turns.game.legal_actions()[0], turns.agent_selection
        turns.step(action)
        views, *_ = parallel.step({mover: action})
