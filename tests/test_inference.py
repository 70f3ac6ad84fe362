"""Compiled networks agree with torch; actions are drawn by their probabilities."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from busenv import Board, Game
from busenv.agents import make_agent
from busenv.core.state import MAX_PLAYERS, Phase
from busenv.game.board import make_board
from busenv.networks.compiled_network import (
    clear_previous_rows,
    evaluate,
    make_workspace,
    read_weights,
)
from busenv.networks.factory import build_network
from busenv.networks.inference import draw_actions, make_policy
from busenv.networks.inputs import observe_inputs
from busenv.networks.logits import action_probabilities
from busenv.networks.network import Network
from busenv.observation import observe_games
from busenv.train.policies import compiled_policy
from tests.support.networks import CITY, positions, random_network
from tests.support.worlds import random_board


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("kind", "width"), [("mlp", 384), ("seats", 384), ("features", 384), ("seats", 13)]
)
def test_compiled_networks_agree_with_torch(kind: str, width: int) -> None:
    network, games = random_network(kind, width), positions()
    rows, masks = observe_inputs(games, CITY.array, network.inputs)
    with torch.no_grad():
        logits, values = (part.numpy() for part in network(torch.from_numpy(rows)))
    assert np.abs(logits[masks]).max() > 1
    weights = read_weights(network)
    work = make_workspace(weights)
    for i, game in enumerate(games):
        clear_previous_rows(work)
        count = evaluate(game, CITY.array[0], weights, work)
        np.testing.assert_allclose(work.logits[:count], logits[i, work.actions[:count]], atol=1e-4)
        np.testing.assert_allclose(work.values, values[i], atol=1e-4)
    for temperature in (0.1, 1.0):
        shares = make_policy(network)(games, CITY, temperature)
        expected = action_probabilities(logits, masks, temperature)
        np.testing.assert_allclose(shares, expected, atol=1e-4)
        assert not shares[~masks].any()


def test_compiled_networks_follow_weight_updates() -> None:
    network, games = random_network("seats", 32), positions(50)
    rows, masks = observe_games(games, CITY)
    policy, optimizer = make_policy(network), torch.optim.Adam(network.parameters(), 0.01)
    before = policy(games, CITY, 1.0)
    for _ in range(3):
        logits, values = network(torch.from_numpy(rows))
        optimizer.zero_grad()
        (logits.square().mean() + values.square().mean()).backward()
        optimizer.step()
    network.load_state_dict({k: 0.9 * v for k, v in network.state_dict().items()})
    after = policy(games, CITY, 1.0)
    logits = network(torch.from_numpy(rows))[0].detach().numpy()
    np.testing.assert_allclose(after, action_probabilities(logits, masks, 1.0), atol=1e-4)
    assert np.abs(after - before).max() > 0.01


@pytest.mark.parametrize("kind", ["seats", "features"])
def test_incremental_first_layer_equals_a_full_pass(kind: str) -> None:
    """Consecutive positions; a row that differs little from the previous one updates it."""
    network = random_network(kind, 384)
    rng, game, played = np.random.default_rng(3), Game(5, seed=3), []
    for _ in range(400):
        played.append(game.arrays()[0].copy())
        game.step(int(rng.choice(game.legal_actions())))
        game = Game(3, seed=3) if game.is_over else game
    games = np.concatenate(played)
    rows, masks = observe_inputs(games, CITY.array, network.inputs)
    weights = read_weights(network)
    work = make_workspace(weights)

    def check(k: int, logits: np.ndarray, values: np.ndarray) -> bool:
        """Whether the previous row was updated."""
        previous = work.layers.previous_rows[games[k]["seat"]].copy()
        count = evaluate(games[k], CITY.array[0], weights, work)
        np.testing.assert_allclose(work.logits[:count], logits[k, work.actions[:count]], atol=1e-4)
        np.testing.assert_allclose(work.values, values[k], atol=1e-4)
        assert count == masks[k].sum()
        return bool((work.layers.previous_rows[games[k]["seat"]] == previous).all())

    with torch.no_grad():
        before = tuple(part.numpy() for part in network(torch.from_numpy(rows)))
    clear_previous_rows(work)
    added = [check(k, *before) for k in range(400)]
    assert 100 < sum(added) < 395 - MAX_PLAYERS  # some have changed by too much
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 0.9
        after = tuple(part.numpy() for part in network(torch.from_numpy(rows)))
    with pytest.raises(AssertionError):
        check(399, *after)
    clear_previous_rows(work)
    check(399, *after)


def test_policies_do_not_depend_on_the_other_rows() -> None:
    policy, games = make_policy(random_network("seats", 64)), positions(100)
    assert (policy(games, CITY, 1.0) == policy(games[::-1], CITY, 1.0)[::-1]).all()


def test_weights_of_another_layout_are_refused() -> None:
    scattered = build_network("mlp", CITY, 8)
    scattered.shared.weight.data = scattered.shared.weight.data.contiguous()
    with pytest.raises(ValueError, match="are not stored by input"):
        read_weights(scattered)


def test_draws_follow_the_probabilities_and_the_seed() -> None:
    shares = np.zeros((40_000, 7), np.float32)
    shares[:, [1, 2, 5]] = 0.2, 0.7, 0.1
    drawn, again, other = (draw_actions(shares, np.array([k], np.uint64)) for k in (3, 3, 4))
    counts = np.bincount(drawn, minlength=7) / len(shares)
    np.testing.assert_allclose(counts, shares[0], atol=0.01)
    assert not counts[[0, 3, 4, 6]].any()
    assert (drawn == again).all()
    assert (drawn != other).any()


def test_act_and_choose_return_the_same_actions() -> None:
    game, seen = Game(5, seed=2), []
    agent, twin = make_agent("net:city-2", seed=5), make_agent("net:city-2", seed=5)
    while not game.is_over:
        seen.append(game.arrays()[0].copy())
        game.step(agent.act(game))
    assert game.arrays()[0]["phase"] == Phase.OVER
    assert twin.choose(np.concatenate(seen), CITY).tolist() == game.history


def test_the_layer_of_bytes_agrees_with_a_dense_one() -> None:
    network, games = random_network("mlp", 24), positions()
    rows, _ = observe_inputs(games, CITY.array, network.inputs)
    rows[1] = 0
    results = []
    for inputs in (torch.from_numpy(rows), torch.from_numpy(rows).float()):
        network.zero_grad()
        logits, values = network(inputs)
        (logits.square().sum() + values.sum()).backward()
        results.append((logits.detach(), network.shared.weight.grad, network.shared.bias.grad))
    for sparse, dense in zip(*results, strict=True):
        torch.testing.assert_close(sparse, dense, rtol=1e-4, atol=1e-3)
    every_second, _ = network(torch.from_numpy(rows)[::2])  # not contiguous
    torch.testing.assert_close(every_second, results[0][0][::2])


def act_on(network: Network, *arrays: np.ndarray, seed: int = 5) -> list[np.ndarray]:
    """Actions, their log-probabilities and values, drawn in compiled code."""
    policy = compiled_policy(network, torch.Generator().manual_seed(seed))
    return [tensor.numpy() for tensor in policy(*map(torch.from_numpy, arrays))]


@pytest.mark.parametrize(
    ("kind", "board"), [("mlp", CITY), ("seats", make_board(random_board(random.Random(3))))]
)
def test_row_policies_draw_as_torch_computes(kind: str, board: Board) -> None:
    network = random_network(kind, 24, board)
    rows, masks = observe_inputs(positions(board=board), board.array, network.inputs)
    rows[:, -9:] = 3  # the last bytes are read too
    index = np.repeat(np.arange(0, len(rows), 3), 4)
    with torch.no_grad():
        logits, values = network(torch.from_numpy(rows))
    log_probs = torch.where(torch.from_numpy(masks), logits, -torch.inf).log_softmax(dim=1).numpy()
    actions, drawn, estimates = act_on(network, rows, masks, index)
    assert masks[index, actions].all()
    np.testing.assert_allclose(drawn, log_probs[index, actions], atol=1e-4)
    np.testing.assert_allclose(estimates, values[index, 0], atol=1e-4)
    repeated = act_on(network, rows, masks, index)[0]
    other = act_on(network, rows, masks, index, seed=6)[0]
    assert (repeated == actions).all()
    assert (other != actions).any()
    many = np.zeros(20_000, np.int64)
    drawn_actions = act_on(network, rows, masks, many, seed=7)[0]
    shares = np.bincount(drawn_actions, minlength=masks.shape[1])
    np.testing.assert_allclose(shares / len(many), np.exp(log_probs[0]), atol=0.02)
