"""`skip_forced` and `seat_owners` of batches and vector environments."""

import numpy as np
import pytest

from busenv import Game
from busenv.batch.batch import Batch
from busenv.core.bots import GREEDY, RANDOM
from busenv.core.state import Phase
from busenv.observation import absolute_action
from tests.support.play import picks


@pytest.mark.parametrize("relative_types", [False, True])
@pytest.mark.parametrize("players", [3, 4, 5])
def test_skip_forced_plays_the_games_of_the_plain_rules(players: int, relative_types: bool) -> None:
    """After each action of a random game, `Game` takes the decisions with one legal action."""
    batch = Batch(
        8, num_players=players, skip_forced=True, reward="margin", autoreset_mode="SameStep",
        relative_types=relative_types,
    )  # fmt: skip
    batch.reset(4)
    games = [batch.game(i) for i in range(8)]
    rng, skipped, ended = np.random.default_rng(0), 0, 0
    while ended < 20:
        assert (batch.masks.sum(axis=1) > 1).all()
        actions = picks(batch.masks, rng)
        absolute = [*map(absolute_action, games, actions)] if relative_types else [*actions]
        batch.step(actions)
        for i, game in enumerate(games):
            before = _margins(game)
            game.step(absolute[i])
            while not game.is_over and len(game.legal_actions()) == 1:
                game.step(game.legal_actions()[0])
                skipped += 1
            np.testing.assert_allclose(
                batch.rewards[i, :players], _margins(game) - before, atol=1e-5
            )
            assert batch.terminations[i] == game.is_over
            states = batch.final_games if game.is_over else batch.games
            assert states[i].tobytes() == game.arrays()[0][0].tobytes()
            if game.is_over:
                games[i] = batch.game(i)
                ended += 1
    assert skipped > 20


def _margins(game: Game) -> np.ndarray:
    """Points of each player minus the mean of the others'."""
    points = np.array(game.points, np.float64)
    return points - (points.sum() - points) / (len(points) - 1)


def test_owners_of_seats_are_set_game_by_game() -> None:
    """A batch whose caller gives seats to bots plays as one with these opponents does."""
    with_opponents = Batch(6, opponents=["random", "greedy", "random"], learner_seat=2)
    by_owners = Batch(6)
    by_owners.seat_owners[:, [3, 0, 1]] = RANDOM, GREEDY, RANDOM
    with_opponents.reset(5)
    by_owners.reset(5)
    assert (with_opponents.seat_owners == by_owners.seat_owners).all()
    rng, ended = np.random.default_rng(2), 0
    while ended < 10:
        assert with_opponents.games.tobytes() == by_owners.games.tobytes()
        assert (by_owners.seats[~by_owners.terminations] == 2).all()
        actions = picks(by_owners.masks, rng)
        with_opponents.step(actions)
        by_owners.step(actions)
        ended += int(by_owners.terminations.sum())


@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
def test_a_game_that_bots_play_alone_ends_in_the_step_after_its_start(autoreset_mode: str) -> None:
    batch = Batch(5, autoreset_mode=autoreset_mode)
    batch.seat_owners[:3] = RANDOM
    batch.reset(0)
    ended = np.zeros(5, np.int64)
    for _ in range(6):
        batch.step(batch.masks.argmax(axis=1))
        ended += batch.terminations
        for i in np.flatnonzero(batch.terminations):
            assert sorted(batch.rewards[i, :4]) == pytest.approx([-1 / 3] * 3 + [1])
            assert batch.final_games[i]["phase"] == Phase.OVER
    assert ended.tolist() == [3 if autoreset_mode == "NextStep" else 6] * 3 + [0, 0]


def test_a_game_that_bots_play_alone_is_seen_from_a_seat_that_it_has() -> None:
    batch = Batch(32, num_players=[3, 5])
    batch.reset(0)
    for _ in range(20):
        batch.step(batch.masks.argmax(axis=1))
    assert batch.acting_seats.max() > 2
    batch.seat_owners[:] = RANDOM
    batch.reset(1)
    batch.step(batch.masks.argmax(axis=1))
    assert (batch.seats < batch.games["players"]).all()
    rows, _ = batch.final_observations()
    assert len(rows) == 32
