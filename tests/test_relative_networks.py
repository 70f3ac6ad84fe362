"""Networks that count building types from the clock."""

import numpy as np
import pytest

from busenv.core.state import FIRST_BUILD
from busenv.networks.compiled_network import (
    clear_previous_rows,
    evaluate,
    make_workspace,
    read_weights,
)
from busenv.networks.inference import make_policy
from busenv.networks.inputs import Inputs
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
