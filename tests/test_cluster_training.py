"""Training on a cluster gives the parameters of one machine, also when nodes are lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from busenv import cluster
from busenv.cluster import connected
from busenv.experiments import cli
from busenv.experiments.training import demo, training_run
from busenv.train.config import PPOConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.ppo_run import PPORun
from tests.support.clusters import with_nodes
from tests.support.training import SMALL_EXPERT, SMALL_PPO, parameters, same_tensors

PPO = SMALL_PPO.changed({
    "games": 6, "num_workers": 3, "snapshot_every": 1, "warm_start": "greedy",
    "imitation_share": 0.0001, "bots": ("random",), "decisions": 10**6,
})  # fmt: skip
SEARCH = SMALL_EXPERT.changed({
    "games": 6, "replay_size": 500_000, "snapshot_every": 1, "decisions": 10**6,
})  # fmt: skip
STEPS = 4


def trained(
    config: PPOConfig | ExpertConfig, folder: Path, on_cluster: bool = False
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """Parameters after some steps, and the scalars of each step."""
    kind: Any = PPORun if isinstance(config, PPOConfig) else ExpertRun
    run = kind(config, folder, on_cluster)
    scalars = [run.step().scalars for _ in range(STEPS)]
    return parameters(run), scalars


def after(calls: int, then: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Call a function when a number of results has been requested from the cluster."""
    result, seen = cluster.result, []

    def counted(reference: Any) -> Any:
        seen.append(reference)
        if len(seen) == calls:
            then()
        return result(reference)

    patch.setattr(cluster, "result", counted)


def test_ppo_does_not_depend_on_the_nodes_of_a_cluster(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, scalars = trained(PPO, tmp_path / "here")
    assert not same_tensors(wanted, trained(PPO.changed({"num_workers": 2}), tmp_path / "other")[0])
    assert any("train/imitation_loss" in one for one in scalars)
    assert any("train/policy_gradient_loss" in one for one in scalars)
    with with_nodes(nodes, 1), connected(nodes.address):
        assert same_tensors(wanted, trained(PPO, tmp_path / "one", True)[0])
        loaded = cluster.call(eval, "'torch' in __import__('sys').modules")
        assert cluster.result(loaded) is False
        with with_nodes(nodes, 2) as more:
            after(8, lambda: nodes.remove_node(more[0], allow_graceful=False), monkeypatch)
            assert same_tensors(wanted, trained(PPO, tmp_path / "two", True)[0])
            assert more[0] not in nodes.worker_nodes


def test_expert_iteration_does_not_depend_on_the_nodes_of_a_cluster(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, scalars = trained(SEARCH, tmp_path / "here")
    assert [one["games/staleness"] for one in scalars] == [0, 0, 0, 0]
    ahead = SEARCH.changed({"staleness": 2})
    stale, scalars = trained(ahead, tmp_path / "stale")
    assert [one["games/staleness"] for one in scalars] == [0, 1, 2, 2]
    assert not same_tensors(wanted, stale)
    with with_nodes(nodes, 2) as both, connected(nodes.address):
        assert same_tensors(wanted, trained(SEARCH, tmp_path / "two", True)[0])
        after(3, lambda: nodes.remove_node(both[0], allow_graceful=False), monkeypatch)
        assert same_tensors(stale, trained(ahead, tmp_path / "ahead", True)[0])
        assert both[0] not in nodes.worker_nodes


def test_a_model_that_does_not_fit_is_refused(nodes: Any, tmp_path: Path) -> None:
    config = PPO.changed({"init_from": "city-2"})
    with connected(nodes.address), pytest.raises(ValueError, match="the settings have 'mlp' of w"):
        training_run.run_training(config, tmp_path / "run", Console(quiet=True), nodes.address)
    assert [*(tmp_path / "run").glob("*.json")] == []


@pytest.mark.parametrize(
    ("more", "num_workers"),
    [([], 2), (["--ray", "auto"], 4), (["--ray", "auto", "--set", "num_workers=3"], 3),
     (["--ray", "auto", "--set", "games=20"], 1)],
)  # fmt: skip
def test_a_new_run_on_a_cluster_has_more_workers(
    more: list[str], num_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(demo, "train_and_report", lambda *arguments: calls.append(arguments))
    cli.main(["train", "quick", *more])
    ((config, _, _, ray),) = calls
    assert (config.num_workers, ray) == (num_workers, "auto" if more else "")
