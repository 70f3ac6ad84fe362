"""Relative building types in every environment: observations, actions, rewards.

Two games that differ by a cyclic renaming of the building types and the clock (twins) look the
same, and the same relative actions lead to the same relative rows and masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from busenv import EDITIONS, Batch, Game, ObservationLayout, bus_v0, decode, encode, load_board
from busenv.core.state import FIRST_BUILD, Phase
from busenv.envs.gymnasium import BusEnv
from busenv.envs.vector import BusVectorEnv
from busenv.observation import (
    absolute_action,
    absolute_actions,
    observe,
    observe_games,
    relative_action,
    relative_actions,
    relative_games,
)
from tests.support.play import paid, picks, played
from tests.support.positions import relabelled

CITY = load_board("city")


def twin_of(game: Game, steps: int) -> Game:
    return Game.from_state(relabelled(game.arrays()[0], steps), game.rules, game.board)


@pytest.mark.parametrize("clock", range(3))
def test_action_ids_convert_there_and_back(clock: int) -> None:
    game = twin_of(Game(3, seed=1), clock)  # a new game shows clock 0
    ids = range(-1, CITY.num_actions + 1)
    absolute = [absolute_action(game, action) for action in ids]
    assert sorted(absolute) == [*ids]
    assert [relative_action(game, action) for action in absolute] == [*ids]
    for site in (0, 46):
        for steps in range(3):
            action = absolute_action(game, encode(CITY, "build", site, steps))
            assert decode(CITY, action) == ("build", site, (clock + steps) % 3)
    first, end = FIRST_BUILD, encode(CITY, "grow", 0, 0)
    others = [*range(first), *range(end, CITY.num_actions), 2**70]
    assert [absolute_action(game, action) for action in others] == others
    with pytest.raises(TypeError, match=r"action is 8\.5"):
        absolute_action(game, 8.5)  # type: ignore[arg-type]


def test_actions_of_a_batch_convert_like_those_of_games() -> None:
    games = [
        twin_of(Game(3, seed=1), steps) for steps in (0, 1, 2) for _ in range(CITY.num_actions)
    ]
    states = np.concatenate([game.arrays()[0] for game in games])
    actions = np.tile(np.arange(CITY.num_actions), 3)
    absolute = absolute_actions(states, CITY, actions)
    assert absolute.tolist() == [*map(absolute_action, games, actions.tolist())]
    assert (relative_actions(states, CITY, absolute) == actions).all()
    with pytest.raises(ValueError, match=r"shape \(2,\) and dtype int64"):
        absolute_actions(states, CITY, actions[:2])
    with pytest.raises(ValueError, match=r"float64; allowed: whole numbers of shape \(1125,\)"):
        absolute_actions(states, CITY, actions / 2)
    with pytest.raises(ValueError, match="allowed: 0 to 374"):
        relative_actions(states[:1], CITY, np.array([375]))


@pytest.mark.parametrize("steps", [1, 2])
def test_twins_have_the_same_observations_masks_and_relative_actions(steps: int) -> None:
    for seed in range(6):
        game = played(3 + seed % 3, seed, rules=[*EDITIONS][seed % 4], plies=40 * seed)
        twin = twin_of(game, steps)
        assert (twin.action_mask() == game.action_mask()).all()
        relative = [relative_games(one.arrays()[0]).tobytes() for one in (game, twin)]
        assert relative == [relabelled(game.arrays()[0], -game.position().clock % 3).tobytes()] * 2
        for seat in range(game.num_players):
            row = observe(game, seat, relative_types=True)
            assert (row == observe(twin, seat, relative_types=True)).all()
            assert (observe(game, seat) != observe(twin, seat)).any()
        rows, masks = observe_games(game.arrays()[0], CITY, relative_types=True)
        assert (rows[0] == observe(game, relative_types=True)).all() or game.is_over
        assert (masks[0] == game.action_mask()).all()
        while not game.is_over:
            legal = game.legal_actions()
            action = legal[11 * len(game.history) % len(legal)]
            for one in (game, twin):
                one.step(absolute_action(one, action))
            assert twin.arrays()[0].tobytes() == relabelled(game.arrays()[0], steps).tobytes()


class SymmetricAgent:
    """Chooses by relative ids: the same in a game and its twins."""

    def act(self, game: Game) -> int:
        legal = game.legal_actions()
        return absolute_action(game, legal[11 * len(game.history) % len(legal)])


def final_rows(batch: Batch) -> list[np.ndarray]:
    """The relative observations of the games that the last step ended, by their last seats."""
    return [
        observe(
            Game.from_state(batch.final_games[i : i + 1], batch.rules, CITY),
            int(batch.acting_seats[i]),
            relative_types=True,
        )
        for i in np.flatnonzero(batch.terminations)
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"opponents": "greedy", "num_players": (3, 4, 5)},
        {"opponents": None, "threads": 2, "reward": "margin"},
        {"opponents": SymmetricAgent(), "num_players": 3, "illegal": "replace"},
        {"opponents": None, "illegal": "lose", "autoreset_mode": "SameStep"},
    ],
)
def test_vector_environments_play_the_games_of_absolute_ones(settings: Any) -> None:
    relative = BusVectorEnv(6, relative_types=True, **settings)
    absolute = BusVectorEnv(6, **settings)
    rng, ended = np.random.default_rng(3), 0
    for env in (relative, absolute):
        env.reset(seed=2)
    while ended < 8:
        games = absolute.batch.games
        assert relative.batch.games.tobytes() == games.tobytes()
        rows, masks = observe_games(games, CITY, relative_types=True)
        running = games["phase"] != Phase.OVER
        assert (relative.batch.observations == rows)[running].all()
        assert (relative.batch.masks == masks)[running].all()
        actions = picks(absolute.batch.masks, rng)
        if "illegal" in settings and rng.random() < 0.2:
            actions[:3] = rng.integers(0, CITY.num_actions, 3)
        _, *results, info = relative.step(relative_actions(games, CITY, actions))
        _, *expected, absolute_info = absolute.step(actions)
        for ours, theirs in zip(results, expected, strict=True):
            assert (ours == theirs).all()
        for key in ("seat", "acting_seat", "rewards", "action_mask", "illegal_action"):
            assert key not in absolute_info or (info[key] == absolute_info[key]).all()
        finals = final_rows(absolute.batch)
        ended += len(finals)
        given = [*relative.batch.final_observations()[0]]
        if "final_obs" in info:
            given = [row for row in info["final_obs"] if row is not None]
        for row, final in zip(given, finals, strict=True):
            assert (row == final).all()


def test_environments_of_one_game_play_the_game_of_an_absolute_one() -> None:
    settings: dict[str, Any] = {"illegal": "replace", "reward": "margin"}
    rng, over = np.random.default_rng(0), False
    relative, absolute = (BusEnv(3, relative_types=on, **settings) for on in (True, False))
    row, _ = relative.reset(seed=1)
    absolute.reset(seed=1)
    while not over:
        game = absolute.game
        assert relative.game is not None
        assert game is not None
        assert relative.game.history == game.history
        assert (row == observe(game, absolute.seat, relative_types=True)).all()
        action = int(rng.choice(game.legal_actions()) if rng.random() < 0.9 else rng.integers(375))
        row, *results, info = relative.step(relative_action(game, action))
        _, *expected, plain = absolute.step(action)
        assert results == expected
        assert info["illegal_action"] == plain["illegal_action"]
        assert (info["action_mask"] == plain["action_mask"]).all()
        over = results[1]

    turns = bus_v0.raw_env(3, relative_types=True)
    turns.reset(seed=1)
    game = turns.game.clone()
    while not game.is_over:
        for seat, agent in enumerate(turns.agents):
            expected_row = observe(game, seat, relative_types=True)
            assert (turns.observe(agent)["observation"] == expected_row).all()
        assert (turns.state() == observe(game, 0, relative_types=True)).all()
        action = int(rng.choice(game.legal_actions()))
        turns.step(relative_action(game, action))
        game.step(action)
        assert turns.game.history == game.history


def test_openspiel_observes_and_acts_in_relative_types() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    import busenv.envs.openspiel  # noqa: F401  # registers the game

    spiel = pyspiel.load_game("busenv(players=3,relative_types=True)")
    pyspiel.random_sim_test(spiel, num_sims=1, serialize=True, verbose=False)
    state, game = spiel.new_initial_state(), Game(3, first_player=0)
    scale = ObservationLayout(CITY).scale
    while not game.is_over:
        seat, legal = game.current_player, game.legal_actions()
        assert state.legal_actions() == legal
        expected = np.minimum(observe(game, relative_types=True) * scale, 1)
        assert (np.array(state.observation_tensor(seat), np.float32) == expected).all()
        action = legal[7 * len(game.history) % len(legal)]
        relative = relative_action(game, action)
        assert state.action_to_string(relative) == game.describe(action)
        state.apply_action(relative)
        game.step(action)
    assert state.returns() == pytest.approx(paid(game, "win"))
