"""The outlook that a network may be told, and playouts beside what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from busenv import Game, load_board
from busenv.agents.mcts.guided import Settings, begin_search, make_guide
from busenv.agents.mcts.tree import make_tree, set_root
from busenv.agents.neural.compiled import read_weights
from busenv.agents.neural.files import load_model, save_model
from busenv.agents.neural.inference import make_policy
from busenv.agents.neural.networks import SeatsMlp, build_network
from busenv.agents.neural.outlook import COLUMNS, SIZE, STEPS, SURE, see_games
from busenv.agents.planner.evaluation import (
    AT,
    COUNT,
    OWN,
    WEIGHTS,
    evaluate,
    make_evaluation,
)
from busenv.core.state import GAME, MAX_PLAYERS
from busenv.observation import observe_games

CITY = load_board("city")


def positions(players: int, count: int = 40) -> np.ndarray:
    """Positions of random play that are not over."""
    found, rng = np.zeros(count, GAME), np.random.default_rng(players)
    game = Game(players, seed=players)
    for k in range(count):
        for _ in range(7):
            game.step(int(rng.choice(game.legal_actions())))
            if game.is_over:
                game = Game(players, seed=100 + k)
        found[k] = game.arrays()[0][0]
    return found


def network_of(width: int = 16) -> SeatsMlp:
    network = build_network("outlook", CITY, width, seed=1)
    assert isinstance(network, SeatsMlp)
    return network


@pytest.mark.parametrize("players", [3, 4, 5])
def test_the_outlook_is_the_evaluation_seen_by_who_decides(players: int) -> None:
    games, found = positions(players), make_evaluation()
    rows, masks = see_games(games, CITY, WEIGHTS)
    plain, legal = observe_games(games, CITY)
    assert (rows[:, :-SIZE] == plain).all()
    assert (masks == legal).all()
    outlooks = rows[:, -SIZE:].reshape(-1, MAX_PLAYERS, COLUMNS).astype(float)
    assert not outlooks[:, players:].any()
    for game, outlook in zip(games, outlooks, strict=True):
        evaluate(game, CITY.array[0], WEIGHTS, found)
        seats = (int(game["seat"]) + np.arange(players)) % players
        features = found.features[seats, :OWN]
        expected = np.floor(np.clip(STEPS * features, 0, 255))
        assert (outlook[:players, :OWN] == expected).all()
        below = np.floor(np.clip(-STEPS * features[:, AT.points], 0, 255))
        assert (outlook[:players, OWN] == below).all()
        for column, numbers in ((OWN + 1, found.win_logits), (OWN + 3, found.values)):
            off = STEPS * (numbers[seats] - numbers[:players].mean())
            signed = outlook[:players, column] - outlook[:players, column + 1]
            np.testing.assert_allclose(signed, np.clip(off, -255, 255), atol=1)
        chances = np.exp(found.win_logits[seats] - found.win_logits[:players].max())
        np.testing.assert_allclose(
            outlook[:players, OWN + 5], SURE * chances / chances.sum(), atol=1
        )
    assert outlooks[..., OWN].any()
    assert outlooks[..., OWN + 2].any()


def test_without_a_plan_there_is_the_observation_alone() -> None:
    games = positions(4)
    rows, _ = see_games(games, CITY, np.zeros((0, COUNT)))
    assert (rows == observe_games(games, CITY)[0]).all()


def test_a_model_keeps_the_weights_of_its_outlook(tmp_path: Path) -> None:
    """So that it plays the same when the hand-made ones are tuned anew."""
    network, games = network_of(), positions(4)
    with torch.no_grad():
        network.policy[2].weight *= 100  # a fresh network hardly tells actions apart
    before = make_policy(network, CITY)(games, 1.0)
    network.plan *= 2.0
    path = tmp_path / "tuned.safetensors"
    save_model(network, CITY, path, {"network": "outlook", "width": 16})
    loaded, _ = load_model(path, CITY)
    assert torch.equal(loaded.get_buffer("plan"), 2.0 * torch.tensor(WEIGHTS))
    after = make_policy(loaded, CITY)(games, 1.0)
    assert np.abs(after - before).max() > 1e-3
    rows, masks = see_games(games, CITY, 2.0 * WEIGHTS)
    with torch.no_grad():
        logits = network(torch.from_numpy(rows))[0].masked_fill(
            ~torch.from_numpy(masks), -torch.inf
        )
    np.testing.assert_allclose(after, logits.softmax(dim=1).numpy(), atol=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_playouts_are_mixed_with_what_the_network_says(share: float) -> None:
    """A playout of no rounds ends where it begins: there the evaluation speaks."""
    network, found = network_of(), make_evaluation()
    games = positions(4, 1)
    rows, _ = see_games(games, CITY, WEIGHTS)
    with torch.no_grad():
        says = network(torch.from_numpy(rows))[1][0, :4].softmax(dim=0).numpy()
    seat = int(games["seat"][0])
    evaluate(games[0], CITY.array[0], WEIGHTS, found)
    judged = np.exp(found.win_logits[:4] - found.win_logits[:4].max())
    tree = make_tree(10, 1000)
    set_root(tree, games)
    settings = Settings(playouts=share, rounds=0)
    begin_search(tree, make_guide(settings, read_weights(network)), CITY.array)
    expected = (1 - share) * np.roll(says, seat) + share * judged / judged.sum()
    np.testing.assert_allclose(tree.wins[:4], expected, atol=1e-5)
