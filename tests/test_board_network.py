"""The network of kind `board`: one network plays every board."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from busenv import Board, Game, load_board
from busenv.agents import make_agent
from busenv.agents.az_agent import AzAgent
from busenv.core.map_rows import find_offsets
from busenv.core.state import FIRST_BUILD
from busenv.game.board import assemble_board, make_board
from busenv.networks.compiled_network import (
    clear_previous_rows,
    copy_weights,
    evaluate,
    make_workspace,
    read_weights,
)
from busenv.networks.evaluation_features import FEATURES_SIZE
from busenv.networks.inference import make_policy
from busenv.networks.inputs import observe_inputs
from busenv.networks.logits import SEAT_VALUES, action_probabilities
from busenv.networks.model_files import load_model, save_model
from tests.support.networks import positions, random_network
from tests.support.play import played
from tests.support.worlds import largest, random_board

BOARDS = ["city", "generated:small:3", "generated:city:3", "generated:large:3"]


@pytest.mark.parametrize("name", [*BOARDS, "largest"])
def test_compiled_outputs_agree_with_torch_on_boards_of_all_sizes(name: str) -> None:
    board = make_board(largest()) if name == "largest" else load_board(name)
    network = random_network("board", 24)
    games = positions(150, board)
    rows, masks = observe_inputs(games, board.array, network.inputs)
    with torch.no_grad():
        logits, values = (output.numpy() for output in network(torch.from_numpy(rows)))
    assert logits.shape == masks.shape
    assert values.shape == (len(rows), SEAT_VALUES)
    weights = copy_weights(read_weights(network))
    work = make_workspace(weights)
    for i in range(len(games)):
        num_legal = evaluate(games[i], board.array[0], weights, work)
        expected = logits[i, work.actions[:num_legal]]
        np.testing.assert_allclose(work.logits[:num_legal], expected, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(work.values, values[i], rtol=1e-3, atol=1e-3)
    policies = make_policy(network)(games, board, 0.7)
    expected = action_probabilities(logits, masks, 0.7)
    np.testing.assert_allclose(policies, expected, atol=1e-3)


def test_one_workspace_evaluates_several_boards() -> None:
    network = random_network("board", 8)
    weights = read_weights(network)
    work = make_workspace(weights)
    for name in (*BOARDS, *BOARDS[:1]):
        board = load_board(name)
        game = positions(1, board)[0]
        clear_previous_rows(work)
        legal = evaluate(game, board.array[0], weights, work)
        expected = make_policy(network)(positions(1, board), board, 1.0)[0]
        logits = work.logits[:legal] - work.logits[:legal].max()
        probabilities = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(expected[work.actions[:legal]], probabilities, rtol=1e-5)


def renumbered(board: Board, rng: np.random.Generator) -> tuple[Board, np.ndarray]:
    """The same map with other numbers for everything, and the new id of each action."""
    nodes, streets, sites = (
        rng.permutation(len(part)) for part in (board.intersections, board.streets, board.sites)
    )
    while (
        np.diff(nodes[board.array[0]["station"]]) < 0
    ):  # the first station is the one with the lower id
        nodes = rng.permutation(len(nodes))
    moved = np.arange(board.num_actions)
    record = board.array[0]
    street, pick, put = (int(record[f"first_{name}"]) for name in ("street", "pick", "set"))
    moved[FIRST_BUILD:street] = FIRST_BUILD + (3 * sites[:, None] + np.arange(3)).ravel()
    moved[street : record["first_split"]] = street + (2 * streets[:, None] + np.arange(2)).ravel()
    moved[pick:put], moved[put:] = pick + nodes, put + nodes
    back = np.argsort(nodes), np.argsort(streets), np.argsort(sites)
    return (
        assemble_board(
            "renumbered",
            tuple(board.intersections[i] for i in back[0]),
            tuple((int(nodes[a]), int(nodes[b])) for a, b in (board.streets[i] for i in back[1])),
            tuple(
                replace(board.sites[i], intersection=int(nodes[board.sites[i].intersection]))
                for i in back[2]
            ),
        ),
        moved,
    )


def test_renumbering_a_board_changes_no_policy() -> None:
    network, rng = random_network("board", 24), np.random.default_rng(5)
    with torch.no_grad():  # playouts are random, and their stream depends on the numbers
        network.position[-FEATURES_SIZE:] = 0
    policy = make_policy(network)
    board = load_board("generated:city:8")
    other, moved = renumbered(board, rng)
    one, two = Game(4, board=board, first_player=0), Game(4, board=other, first_player=0)
    phases = set()
    while not one.is_over:
        phases.add(one.phase)
        before = policy(one.arrays()[0], board, 1.0)[0]
        after = policy(two.arrays()[0], other, 1.0)[0]
        np.testing.assert_allclose(after[moved], before, atol=1e-4)
        action = int(rng.choice(one.legal_actions()))
        one.step(action)
        two.step(int(moved[action]))
    assert len(phases) >= 8
    assert two.is_over


def test_a_model_file_plays_every_board(tmp_path: Path) -> None:
    network, path = random_network("board", 8, relative_types=True), tmp_path / "model.safetensors"
    save_model(network, load_board("city"), path, {"network": "board", "width": 8})
    assert load_model(path, load_board("generated:small:1"))[1].board is None
    city = load_board("city")  # has no effect
    searches = (make_agent(f"az:{path}:8", seed=3), AzAgent(network, city, 8, seed=3))
    for agent in (make_agent(f"net:{path}", seed=3), *searches):
        for name in BOARDS:
            game = played(4, seed=3, plies=40, board=name)
            for _ in range(8):
                game.step(agent.act(game))  # raises for an illegal action


def test_rows_begin_with_the_map() -> None:
    board = make_board(random_board(random.Random(3)))
    rows, _ = observe_inputs(positions(2, board), board.array, random_network("board", 8).inputs)
    size = find_offsets(len(board.intersections), len(board.streets), len(board.sites)).node
    assert rows[0, :3].tolist() == [len(board.intersections), len(board.streets), len(board.sites)]
    assert (rows[0, :size] == rows[1, :size]).all()
    zones = [site.zone - 1 for site in board.sites]
    assert rows[0, size - len(zones) : size].tolist() == zones
    marks = rows[0, 3 : 3 + 7 * len(board.intersections)].reshape(7, -1)
    assert marks[0].tolist() == [entry.roundabout for entry in board.intersections]
    assert marks[1:3].sum(axis=0).tolist() == [entry.train_station for entry in board.intersections]
    assert marks[3:].sum() == len(board.sites)
