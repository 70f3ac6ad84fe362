"""Batches of games: rewards, resets, illegal actions, independence of the batch size."""

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from busenv import Game
from busenv.batch.batch import Batch
from busenv.core.state import GAME
from busenv.rewards import REWARDS
from tests.support.play import paid, picks, seen_by

SAME_STEP, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


@pytest.mark.parametrize("opponents", [None, "random"])
def test_the_same_seed_gives_the_same_games_for_any_batch_size(opponents: str | None) -> None:
    settings: Any = {"opponents": opponents, "illegal": "replace", "autoreset_mode": SAME_STEP}
    whole = Batch(10, num_players=[3, 4, 5], **settings)
    part = Batch(4, num_players=[3, 4, 5], **settings)
    for batch in (whole, part):
        batch.reset(9)
    assert len(set(whole.games["players"])) > 1
    rng = np.random.default_rng(2)
    for step in range(500):
        actions = picks(whole.masks if step % 10 else ~whole.masks, rng)
        whole.step(actions)
        assert whole.illegal_actions.all() == (step % 10 == 0)
        part.step(actions[:4])
        assert whole.games[:4].tobytes() == part.games.tobytes()
    other = Batch(10, num_players=[3, 4, 5])
    other.reset(10)
    whole.reset(9)
    assert (other.games["first"] != whole.games["first"]).any()


@pytest.mark.parametrize("reward", [*REWARDS])
@pytest.mark.parametrize("players", [3, 4, 5])
def test_rewards(reward: str, players: int) -> None:
    batch = Batch(30, num_players=players, reward=reward, rules="splotter-1999")
    batch.reset(7)
    rng = np.random.default_rng(3)
    totals = np.zeros((30, 5))
    checked = 0
    for _ in range(400):
        batch.step(picks(batch.masks, rng))
        totals += batch.rewards
        if reward != "deliveries":
            np.testing.assert_allclose(batch.rewards.sum(axis=1), 0, atol=1e-5)
        if reward in ("win", "rank"):
            assert (batch.rewards[~batch.terminations] == 0).all()
        for i in np.flatnonzero(batch.terminations):
            final = Game.from_state(batch.final_games[i : i + 1], batch.rules, batch.board)
            expected = paid(final, reward)
            np.testing.assert_allclose(totals[i, :players], expected, atol=1e-4)
            totals[i] = 0
            checked += 1
    assert checked >= 30
    assert (batch.rewards[:, players:] == 0).all()


@pytest.mark.parametrize("actions", [np.zeros(4, int), np.zeros((5, 1), int), np.zeros(5), [8] * 6])
def test_actions_of_another_shape_or_kind_are_refused(actions: object) -> None:
    batch = Batch(5)
    batch.reset(0)
    with pytest.raises(ValueError, match=r"allowed: whole numbers of shape \(5,\)"):
        batch.step(actions)  # type: ignore[arg-type]


def test_a_batch_must_be_reset_first() -> None:
    with pytest.raises(ValueError, match="call reset"):
        Batch(2).step(np.zeros(2, int))


def test_a_game_of_a_batch_is_named_by_its_index() -> None:
    batch = Batch(9)
    with pytest.raises(ValueError, match=r"call reset\(seed\) before game"):
        batch.game(8)
    batch.reset(0)
    assert batch.game(8).num_players == 4
    for index in (-1, 9, 1.0):
        with pytest.raises(ValueError, match=f"index is {index}; allowed: 0 to 8"):
            batch.game(index)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_games": 0}, "num_games is 0"),
        ({"threads": 3}, "threads is 3; allowed: 1 to 2"),
        ({"opponents": ["greedy"]}, "1 opponents; allowed: one for all, or one for each of the 3"),
        ({"opponents": "greedier"}, "unknown agent 'greedier'"),
        ({"opponents": "greedy", "learner_seat": 1.0}, "learner_seat is 1.0; allowed: 0 to 3"),
        ({"learner_seat": 1}, "learner_seat requires opponents"),
        ({"illegal": "ignore"}, r"illegal is 'ignore'; allowed: one of \['raise', 'lose', 'repla"),
        ({"autoreset_mode": "never"}, "autoreset_mode is 'never'; allowed: one of"),
        ({"reward": ["win"]}, "unknown reward"),
        ({"num_players": None}, "num_players is None; allowed: 3, 4 or 5"),
        ({"num_players": []}, "num_players is empty"),
        ({"num_players": [3, 6]}, "num_players is 6"),
        ({"reward": "gold"}, r"unknown reward 'gold'; allowed: a function or one of \['win'"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batch(**{"num_games": 2, **wrong})


def test_an_illegal_action_may_lose_the_game() -> None:
    def pay(before: np.ndarray, after: np.ndarray, rewards: np.ndarray) -> None:
        rewards[:] = 3

    batch = Batch(4, illegal="lose", reward=pay, autoreset_mode=DISABLED)
    batch.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        batch.step(picks(batch.masks, rng))
    actions, acted, before = picks(batch.masks, rng), batch.seats.copy(), batch.games.copy()
    actions[1], actions[3] = batch.masks[1].argmin(), -1
    batch.step(actions)
    assert (
        batch.illegal_actions.tolist() == batch.terminations.tolist() == [False, True, False, True]
    )
    for i in (1, 3):
        assert batch.rewards[i].tolist() == [-1.0 if seat == acted[i] else 0 for seat in range(5)]
        assert batch.final_games[i].tobytes() == before[i].tobytes()
    rows, masks = batch.final_observations()
    assert (rows == seen_by(before[[1, 3]], batch.board, acted[[1, 3]])).all()
    assert masks.any(axis=1).all()
    assert not masks.all(axis=1).any()
    with pytest.raises(ValueError, match=r"games \[1, 3\] have ended; reset them first"):
        batch.step(actions)
    batch.reset(mask=batch.terminations)
    assert (batch.acting_seats[[1, 3]] == batch.seats[[1, 3]]).all()
    batch.step(picks(batch.masks, rng))
    assert not batch.terminations.any()


def test_an_illegal_action_may_be_replaced_by_any_legal_one() -> None:
    drawn = set()
    for seed in range(40):
        batch = Batch(2, illegal="replace")
        batch.reset(seed)
        before = Game(4, first_player=int(batch.games["first"][1]), seed=0)
        batch.step(np.array([before.legal_actions()[0], 374]))
        assert batch.illegal_actions.tolist() == [False, True]
        assert not batch.terminations.any()
        after = {}
        for action in before.legal_actions():
            game = before.clone()
            game.step(action)
            after[game.arrays()[0].tobytes()] = action
        drawn.add(after[batch.games[1].tobytes()])
    assert len(drawn) > 10


def test_resets_of_some_games() -> None:
    batch, twin = Batch(6), Batch(6)
    for one in (batch, twin):
        with pytest.raises(ValueError, match="call reset"):
            one.reset(3, np.arange(6) < 2)
        one.reset(3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = picks(batch.masks, rng)
        batch.step(actions)
        twin.step(actions)
    mask = np.array([1, 0, 0, 1, 1, 0], bool)
    batch.reset(8, mask)
    assert (batch.games[~mask] == twin.games[~mask]).all()
    assert (batch.observations[~mask] == twin.observations[~mask]).all()
    assert (batch.masks[~mask] == twin.masks[~mask]).all()
    twin.reset(8)
    assert (batch.games[mask] == twin.games[mask]).all()
    assert (batch.observations[mask] == twin.observations[mask]).all()
    for wrong in ([True] * 5, np.ones(5, bool), np.ones(6, int)):
        with pytest.raises(ValueError, match=r"games to reset.*; allowed"):
            batch.reset(8, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
def test_games_continue_from_a_state(autoreset_mode: str) -> None:
    """Restored into another batch: the same rows, masks, rewards and records in every step."""
    settings: dict[str, Any] = {
        "num_players": (3, 4, 5), "opponents": "greedy", "reward": "margin",
        "relative_types": True, "skip_forced": True, "autoreset_mode": autoreset_mode,
        "board": "generated:small:train:4", "illegal": "replace",
    }  # fmt: skip
    one, other = (Batch(12, **settings) for _ in range(2))
    one.reset(5)
    other.reset(6)
    rng, ends = np.random.default_rng(0), 0
    for step in range(240):
        if step % 60 == 7:
            other.restore(one.state())
        actions = rng.integers(0, one.board.num_actions, 12)
        for name in ("observations", "masks", "seats", "seat_owners"):
            if step >= 7:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
        one.step(actions)
        other.step(actions)
        if step >= 7:
            np.testing.assert_array_equal(one.rewards, other.rewards)
            np.testing.assert_array_equal(one.terminations, other.terminations)
            assert one.games.tobytes() == other.games.tobytes()
            ends += int(one.terminations.sum())
    assert ends > 12


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("acting_seats", np.full(3, 5), "acting_seats of the state has a value outside of 0 to 4"),
        ("board_index", np.full(3, 1), "board_index of the state has a value outside of 0 to 0"),
        ("streams", np.zeros(2, np.uint64), r"streams of the state has shape \(2,\)"),
        ("games", np.zeros(3, GAME), "games of another board"),
        ("episodes", None, "the state has the arrays .*; allowed: "),
    ],
)
def test_states_of_other_batches_are_refused(
    name: str, value: np.ndarray | None, message: str
) -> None:
    batch = Batch(3)
    batch.reset(1)
    state = batch.state()
    before = batch.games.tobytes()
    if value is None:
        del state[name]
    else:
        state[name] = value
    with pytest.raises(ValueError, match=message):
        batch.restore(state)
    assert batch.games.tobytes() == before


def test_states_with_other_players_are_refused() -> None:
    batch = Batch(6)
    batch.reset(1)
    state = batch.state()
    with pytest.raises(ValueError, match="other rules or numbers of players"):
        Batch(6, num_players=3).restore(state)
    with pytest.raises(ValueError, match="other rules or numbers of players"):
        Batch(6, rules="condensed").restore(state)
    with pytest.raises(ValueError, match="with one seat of 0 in each game"):
        Batch(6, opponents="greedy").restore(state)
    batch = Batch(6, opponents="greedy")
    batch.reset(1)
    state, rows = batch.state(), np.arange(6)
    state["seat_owners"][rows, batch.seats] = 2
    state["seat_owners"][rows, (batch.seats + 1) % 4] = 0
    with pytest.raises(ValueError, match="interrupted step: an opponent decides next"):
        batch.restore(state)
