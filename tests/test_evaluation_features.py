"""The handcrafted evaluation features of a network."""

from pathlib import Path

import numpy as np
import pytest
import torch

from busenv.core.state import GAME, MAX_PLAYERS
from busenv.heuristics.evaluation import AT, OWN, WEIGHTS, evaluate, find_chances, make_evaluation
from busenv.heuristics.playout import playout
from busenv.networks.evaluation_features import (
    CHANCE_SCALE,
    COLUMNS,
    EVALUATION_COLUMNS,
    FEATURE_PLAYOUTS,
    FEATURE_SCALE,
    FEATURES_SIZE,
    LOG_CHANCE_SCALE,
    MIN_CHANCE,
    PLAYOUT_CHANCE_SCALE,
    PLAYOUT_ROUNDS,
    POINTS_SCALE,
)
from busenv.networks.factory import build_network
from busenv.networks.inference import make_policy
from busenv.networks.inputs import Inputs, observe_inputs
from busenv.networks.model_files import load_model, save_model
from busenv.observation import observe_games
from tests.support.networks import CITY, positions


@pytest.mark.parametrize("players", [3, 4, 5])
def test_evaluation_features_are_the_evaluation_of_the_seat_to_decide(players: int) -> None:
    games, evaluated = positions(200, players=(players,)), make_evaluation()
    rows, masks = observe_inputs(games, CITY.array, Inputs(eval_weights=WEIGHTS))
    plain, legal = observe_games(games, CITY)
    assert (rows[:, :-FEATURES_SIZE] == plain).all()
    assert (masks == legal).all()
    blocks = rows[:, -FEATURES_SIZE:].reshape(-1, MAX_PLAYERS, COLUMNS).astype(float)
    assert not blocks[:, players:].any()
    for game, block in zip(games, blocks, strict=True):
        evaluate(game, CITY.array[0], WEIGHTS, evaluated)
        seats = (int(game["seat"]) + np.arange(players)) % players
        features = evaluated.features[seats, :OWN]
        expected = np.floor(np.clip(FEATURE_SCALE * features, 0, 255))
        assert (block[:players, :OWN] == expected).all()
        below = np.floor(np.clip(-FEATURE_SCALE * features[:, AT.points], 0, 255))
        assert (block[:players, OWN] == below).all()
        for column, numbers in ((OWN + 1, evaluated.win_logits), (OWN + 3, evaluated.values)):
            off = FEATURE_SCALE * (numbers[seats] - numbers[:players].mean())
            signed = block[:players, column] - block[:players, column + 1]
            np.testing.assert_allclose(signed, np.clip(off, -255, 255), atol=1)
        chances = np.exp(evaluated.win_logits[seats] - evaluated.win_logits[:players].max())
        np.testing.assert_allclose(
            block[:players, OWN + 5], CHANCE_SCALE * chances / chances.sum(), atol=1
        )
    assert blocks[..., OWN].any()
    assert blocks[..., OWN + 2].any()


@pytest.mark.parametrize("players", [3, 4, 5])
def test_playout_features_are_means_over_playouts(players: int) -> None:
    """Their mean is that of more playouts with other random choices; rows are independent."""
    games, inputs = positions(120, players=(players,)), Inputs(eval_weights=WEIGHTS)
    evaluated, ahead = make_evaluation(), np.zeros(1, GAME)
    rows, _ = observe_inputs(games, CITY.array, inputs)
    assert (observe_inputs(games[::-1], CITY.array, inputs)[0][::-1] == rows).all()
    columns = rows[:, -FEATURES_SIZE:].reshape(-1, MAX_PLAYERS, COLUMNS).astype(float)
    assert not columns[:, players:].any()
    features = columns[:, :players, EVALUATION_COLUMNS:]
    assert len(np.unique(features[:, 0, 0])) > 40
    chances, points = np.zeros((2, len(games), players))
    many = 10 * FEATURE_PLAYOUTS
    for i, game in enumerate(games):
        seats = (int(game["seat"]) + np.arange(players)) % players
        for k in range(many):
            ahead[0] = game
            playout(ahead[0], CITY.array[0], PLAYOUT_ROUNDS, np.uint64(1000 * i + k))
            evaluate(ahead[0], CITY.array[0], WEIGHTS, evaluated)
            find_chances(ahead[0], evaluated)
            chances[i] += evaluated.chances[seats] / many
            made = ahead["deliveries"][0].astype(float) - ahead["stones"][0]
            points[i] += (made[seats] - made[:players].mean()) / many
    estimates = features[..., 0] / PLAYOUT_CHANCE_SCALE
    np.testing.assert_allclose(estimates.sum(axis=1), 1, atol=players / PLAYOUT_CHANCE_SCALE)
    assert np.abs(estimates - chances).mean() < 0.12
    assert np.corrcoef(estimates.ravel(), chances.ravel())[0, 1] > 0.8
    assert np.abs((features[..., 2] - features[..., 3]) / POINTS_SCALE - points).mean() < 0.25
    logarithms = -LOG_CHANCE_SCALE * np.log(np.maximum(estimates, MIN_CHANCE))
    precise = estimates > 1 / 4  # the byte of a smaller chance is too coarse
    np.testing.assert_allclose(features[..., 1][precise], logarithms[precise], atol=3)


def test_a_model_file_stores_its_evaluation_weights(tmp_path: Path) -> None:
    """It plays the same when the handcrafted weights are tuned again."""
    network = build_network("features", CITY, 16, seed=1)
    games = positions(40, players=(4,))
    with torch.no_grad():
        network.policy[2].weight *= 100  # a fresh network hardly distinguishes actions
    before = make_policy(network)(games, CITY, 1.0)
    network.eval_weights.mul_(2.0)
    path = tmp_path / "tuned.safetensors"
    save_model(network, CITY, path, {"network": "features", "width": 16})
    loaded, *_ = load_model(path, CITY)
    assert torch.equal(loaded.get_buffer("eval_weights"), 2.0 * torch.tensor(WEIGHTS))
    after = make_policy(loaded)(games, CITY, 1.0)
    assert np.abs(after - before).max() > 1e-3
    rows, masks = observe_inputs(games, CITY.array, Inputs(eval_weights=2.0 * WEIGHTS))
    with torch.no_grad():
        logits = network(torch.from_numpy(rows))[0].masked_fill(
            ~torch.from_numpy(masks), -torch.inf
        )
    np.testing.assert_allclose(after, logits.softmax(dim=1).numpy(), atol=1e-3)
