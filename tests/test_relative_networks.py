"""Networks that count building types from the clock, and their auxiliary targets."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from busenv import Game
from busenv.agents.networks.compiled_network import (
    clear_previous_rows,
    evaluate,
    make_workspace,
    read_weights,
)
from busenv.agents.networks.inference import make_policy
from busenv.agents.networks.inputs import Inputs
from busenv.agents.networks.mlp import Mlp, build_network
from busenv.agents.networks.model_files import load_model, save_model
from busenv.core.state import FIRST_BUILD
from busenv.train.expert_iteration.samples import auxiliary_targets, make_batch, write_outcome
from tests.support.networks import CITY, positions, random_network
from tests.support.positions import relabelled
from tests.support.training import teacher_samples

SITES = len(CITY.sites)
KINDS = ("mlp", "seats", "features")


def relabelled_ids(ids: np.ndarray) -> np.ndarray:
    """Action ids after house becomes office, office pub, and pub house."""
    builds = (ids >= FIRST_BUILD) & (ids < FIRST_BUILD + 3 * SITES)
    offsets = ids.astype(np.int64) - FIRST_BUILD
    return np.where(builds, FIRST_BUILD + offsets // 3 * 3 + (offsets + 1) % 3, ids)


def relabelled_samples(samples: np.ndarray) -> np.ndarray:
    twins = samples.copy()
    twins["game"] = relabelled(samples["game"], 1)
    twins["actions"] = relabelled_ids(samples["actions"])
    return twins


class ByTorch(nn.Module):
    """A network that is evaluated by torch instead of compiled code."""

    def __init__(self, network: Mlp) -> None:
        super().__init__()
        self.network, self.inputs = network, network.inputs

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        policy, values = self.network(rows)
        return policy, values


@pytest.mark.parametrize("kind", KINDS)
def test_relabelled_types_change_no_policy_or_value(kind: str) -> None:
    network, games = random_network(kind, 24, relative_types=True), positions(150)
    policies = make_policy(network)(games, CITY, 1.0)
    columns = relabelled_ids(np.arange(CITY.num_actions))
    turned = make_policy(network)(relabelled(games, 1), CITY, 1.0)
    np.testing.assert_allclose(turned[:, columns], policies, atol=1e-6)
    by_torch = make_policy(ByTorch(network))(games, CITY, 1.0)  # type: ignore[arg-type]
    np.testing.assert_allclose(by_torch, policies, atol=1e-4)
    plain = make_policy(random_network(kind, 24))
    assert (
        np.abs(plain(relabelled(games, 1), CITY, 1.0)[:, columns] - plain(games, CITY, 1.0)).max()
        > 0.01
    )
    weights = read_weights(network)
    work = make_workspace(weights)
    for game, other in zip(games[:20], relabelled(games, 1)[:20], strict=True):
        values = []
        for state in (game, other):
            clear_previous_rows(work)
            evaluate(state, CITY.array[0], weights, work)
            values.append(work.values.copy())
        np.testing.assert_allclose(*values, atol=1e-6)


def test_relabelled_types_change_no_sample() -> None:
    samples = teacher_samples()
    turned = relabelled_samples(samples)
    turned["final_buildings"] = np.roll(samples["final_buildings"], 1, axis=1)
    for relative in (False, True):
        one, two = (make_batch(rows, CITY, 0.5, Inputs(relative)) for rows in (samples, turned))
        ends = [auxiliary_targets(rows, CITY, relative) for rows in (samples, turned)]
        equal = [
            np.array_equal(a, b) for a, b in zip((*one, ends[0]), (*two, ends[1]), strict=True)
        ]
        assert all(equal) == relative


def test_auxiliary_targets_are_lines_and_buildings_at_the_end() -> None:
    game, rng = Game(3, seed=5), np.random.default_rng(1)
    states = []
    while not game.is_over:
        states.append(game.arrays()[0].copy())
        game.step(int(rng.choice(game.legal_actions())))
    samples = teacher_samples()[: len(states)].copy()
    samples["game"] = np.concatenate(states)[: len(samples)]
    write_outcome(samples, game.arrays()[0][0])
    for relative in (False, True):
        targets = auxiliary_targets(samples, CITY, relative)
        end, streets = game.position(), len(CITY.streets)
        for final, state in zip(targets, samples["game"], strict=True):
            lines, sites = final[: 5 * streets].reshape(5, streets), final[5 * streets :]
            for slot in range(3):
                line = end.streets[(int(state["seat"]) + slot) % 3]
                assert np.flatnonzero(lines[slot]).tolist() == sorted(line)
            assert not lines[3:].any()
            turn = int(state["clock"]) if relative else 0
            expected = [[k >= 0 and (k - turn) % 3 == n for n in range(3)] for k in end.buildings]
            assert (sites.reshape(-1, 3) == np.array(expected)).all()


def test_model_files_hold_relative_types_and_no_auxiliary_head(tmp_path: Path) -> None:
    path, games = tmp_path / "model.safetensors", positions(30)
    network = build_network("seats", CITY, 8, relative_types=True, auxiliary=True)
    save_model(network, CITY, path, {"network": "seats", "width": 8})
    loaded, card = load_model(path, CITY)
    assert card["relative_types"] is loaded.relative_types is True
    assert network.state_dict().keys() - loaded.state_dict().keys() == {
        "auxiliary.weight", "auxiliary.bias",
    }  # fmt: skip
    expected = make_policy(network)(games, CITY, 1.0)
    np.testing.assert_array_equal(make_policy(loaded)(games, CITY, 1.0), expected)
