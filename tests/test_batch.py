"""Batches of games: alike however they are cut, paid by seat, begun anew, never silently wrong."""

from __future__ import annotations

import numpy as np
import pytest

from busenv import Game, IllegalActionError
from busenv.batch import Batch
from busenv.core.state import OVER
from busenv.observation import observe
from busenv.rewards import REWARDS
from tests.support.play import picks


def test_a_batch_is_single_games_and_begins_anew_at_once() -> None:
    batch = Batch(6, same_step=True, reward="margin", rules="capstone-2019")
    batch.reset(3)
    rng = np.random.default_rng(0)
    alone = [Game(4, "capstone-2019", first_player=int(g["first"]), seed=0) for g in batch.games]
    ended = 0
    while ended < 20:
        for i, game in enumerate(alone):
            assert batch.seats[i] == game.current_player
            assert (batch.masks[i] == game.action_mask()).all()
            assert (batch.observations[i] == observe(game)).all()
        actions = picks(batch.masks, rng)
        batch.step(actions)
        for i, game in enumerate(alone):
            before = np.array(game.points)
            game.step(actions[i])
            gain = np.array(game.points) - before
            margin = gain - (gain.sum() - gain) / 3
            np.testing.assert_allclose(batch.rewards[i, :4], margin, atol=1e-6)
            assert batch.rewards[i, 4] == 0
            assert batch.over[i] == game.is_over
            if game.is_over:
                ended += 1
                assert batch.finals[i].tobytes() == game.arrays()[0][0].tobytes()
                first = int(batch.games[i]["first"])
                alone[i] = Game(4, "capstone-2019", first_player=first, seed=0)


def test_next_step_reset_ignores_one_action() -> None:
    batch = Batch(8)
    batch.reset(1)
    rng = np.random.default_rng(1)
    resets = 0
    for _ in range(600):
        was_over = batch.over.copy()
        batch.step(picks(batch.masks, rng))
        assert (batch.games["round"][was_over] == 0).all()
        assert (batch.rewards[was_over] == 0).all()
        assert not batch.over[was_over].any()
        assert (batch.over == (batch.games["phase"] == OVER)).all()
        assert batch.masks[batch.over].all()
        assert batch.masks.any(axis=1).all()
        resets += was_over.sum()
    assert resets > 10


def test_the_same_seed_gives_the_same_games_however_the_batch_is_cut() -> None:
    whole = Batch(10, [3, 4, 5], same_step=True)
    parts = [Batch(4, [3, 4, 5], same_step=True), Batch(6, [3, 4, 5], same_step=True, first_game=4)]
    for batch in (whole, *parts):
        batch.reset(9)
    assert len(set(whole.games["players"])) > 1
    rng = np.random.default_rng(2)
    for _ in range(500):
        actions = picks(whole.masks, rng)
        whole.step(actions)
        parts[0].step(actions[:4])
        parts[1].step(actions[4:])
        assert whole.games.tobytes() == parts[0].games.tobytes() + parts[1].games.tobytes()
    other = Batch(10, [3, 4, 5])
    other.reset(10)
    whole.reset(9)
    assert (other.games["first"] != whole.games["first"]).any()


def test_player_counts_and_first_players_are_drawn_evenly() -> None:
    batch = Batch(6000, [3, 5])
    batch.reset(4)
    fives = batch.games["players"] == 5
    assert 2800 < fives.sum() < 3200
    for players, chosen in ((3, ~fives), (5, fives)):
        counts = np.bincount(batch.games["first"][chosen], minlength=players)
        assert counts.shape == (players,)
        assert (abs(counts - counts.mean()) < 150).all()


@pytest.mark.parametrize("reward", [*REWARDS])
@pytest.mark.parametrize("players", [3, 4, 5])
def test_rewards(reward: str, players: int) -> None:
    batch = Batch(30, players, reward=reward, rules="splotter-1999")
    batch.reset(7)
    rng = np.random.default_rng(3)
    totals = np.zeros((30, 5))
    checked = 0
    for _ in range(1200):
        batch.step(picks(batch.masks, rng))
        totals += batch.rewards
        if reward != "deliveries":
            np.testing.assert_allclose(batch.rewards.sum(axis=1), 0, atol=1e-5)
        if reward in ("win", "place"):
            assert (batch.rewards[~batch.over] == 0).all()
        for i in np.flatnonzero(batch.over):
            final = batch.finals[i]
            np.testing.assert_allclose(totals[i, :players], expected(reward, final), atol=1e-4)
            totals[i] = 0
            checked += 1
    assert checked > 60
    assert (batch.rewards[:, players:] == 0).all()


def expected(reward: str, final: np.void) -> list[float]:
    """What the seats of a finished game are paid, from its result."""
    players = int(final["players"])
    deliveries = final["deliveries"][:players].astype(int)
    stones, last = final["stones"].astype(int), final["delivery_order"].astype(int)
    first, points = int(final["first"]), deliveries - stones[:players]
    if reward == "deliveries":
        return deliveries.tolist()
    if reward == "margin":
        return [p - (points.sum() - p) / (players - 1) for p in points]
    keys = [
        (
            points[s],
            stones[s],
            -last[s] if deliveries[s] else -((s - first) % players),
        )
        for s in range(players)
    ]
    places = [sum(other > key for other in keys) for key in keys]
    if reward == "place":
        return [1 - 2 * place / (players - 1) for place in places]
    return [1.0 if place == 0 else -1 / (players - 1) for place in places]


def test_an_illegal_action_is_named_and_changes_nothing() -> None:
    batch = Batch(5)
    batch.reset(0)
    before = batch.games.tobytes(), batch.observations.copy()
    actions = picks(batch.masks, np.random.default_rng(0))
    actions[3] = 7
    with pytest.raises(
        IllegalActionError,
        match=r"action 7 \(pass\) of game 3 is illegal for seat \d in phase SETUP_BUILDINGS",
    ):
        batch.step(actions)
    assert batch.games.tobytes() == before[0]
    assert (batch.observations == before[1]).all()


@pytest.mark.parametrize("actions", [np.zeros(4, int), np.zeros((5, 1), int), np.zeros(5), [8] * 6])
def test_actions_of_another_shape_or_kind_are_refused(actions: object) -> None:
    batch = Batch(5)
    batch.reset(0)
    with pytest.raises(ValueError, match=r"allowed: whole numbers of shape \(5,\)"):
        batch.step(actions)  # type: ignore[arg-type]


def test_a_batch_must_be_reset_first() -> None:
    with pytest.raises(ValueError, match="call reset"):
        Batch(2).step(np.zeros(2, int))
    batch = Batch(2)
    batch.reset(0)
    with pytest.raises(IllegalActionError, match="action 18446744073709551615 of game 1"):
        batch.step(np.array([8, 2**64 - 1], np.uint64))


def test_observations_of_two_steps_stand_side_by_side() -> None:
    batch = Batch(3)
    batch.reset(0)
    first = batch.observations
    copy = first.copy()
    batch.step(picks(batch.masks, np.random.default_rng(0)))
    assert (first == copy).all()
    assert not np.shares_memory(first, batch.observations)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_games": 0}, "num_games is 0"),
        ({"num_games": 2.0}, "num_games is 2.0; allowed: 1 or more"),
        ({"threads": 3}, "threads is 3; allowed: 1 to 2"),
        ({"first_game": 0.5}, "first_game is 0.5; allowed: 0 or more"),
        ({"opponent": ["greedy"]}, r"unknown opponent \['greedy'\]; allowed: None or one of"),
        ({"opponent": "greedy", "learner_seat": 1.0}, "learner_seat is 1.0; allowed: 0 to 3"),
        ({"reward": ["win"]}, "unknown reward"),
        ({"num_players": 4.0}, "num_players is 4.0; allowed: 3, 4 or 5"),
        ({"num_players": None}, "num_players is None; allowed: 3, 4 or 5"),
        ({"num_players": []}, "num_players is empty"),
        ({"num_players": [3, 6]}, "num_players is 6"),
        ({"reward": "gold"}, r"unknown reward 'gold'; allowed: a function or one of \['win'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(**{"num_games": 2, **wrong})
