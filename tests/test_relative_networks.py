"""Networks that count building types from the clock."""

from pathlib import Path

import numpy as np
import pytest

from busenv.core.state import FIRST_BUILD
from busenv.networks.compiled_network import (
    clear_previous_rows,
    evaluate,
    make_workspace,
    read_weights,
)
from busenv.networks.factory import build_network
from busenv.networks.inference import make_policy
from busenv.networks.inputs import Inputs
from busenv.networks.model_files import load_model, save_model
from busenv.train.expert_iteration.samples import make_batch
from tests.support.networks import CITY, positions, random_network
from tests.support.positions import relabelled
from tests.support.training import network_samples

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


@pytest.mark.parametrize("kind", KINDS)
def test_relabelled_types_change_no_policy_or_value(kind: str) -> None:
    network, games = random_network(kind, 24, relative_types=True), positions(150)
    policies = make_policy(network)(games, CITY, 1.0)
    columns = relabelled_ids(np.arange(CITY.num_actions))
    turned = make_policy(network)(relabelled(games, 1), CITY, 1.0)
    np.testing.assert_allclose(turned[:, columns], policies, atol=1e-6)
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
    samples = network_samples()
    turned = relabelled_samples(samples)
    for relative in (False, True):
        one, two = (make_batch(rows, CITY, 0.5, Inputs(relative)) for rows in (samples, turned))
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True)) == relative


def test_model_files_hold_relative_types(tmp_path: Path) -> None:
    path, games = tmp_path / "model.safetensors", positions(30)
    network = build_network("seats", CITY, 8, relative_types=True)
    save_model(network, CITY, path, {"network": "seats", "width": 8})
    loaded, card, _ = load_model(path, CITY)
    assert card.relative_types is loaded.relative_types is True
    expected = make_policy(network)(games, CITY, 1.0)
    np.testing.assert_array_equal(make_policy(loaded)(games, CITY, 1.0), expected)
