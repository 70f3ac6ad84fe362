"""Training on a cluster gives the parameters of one machine, also when nodes are lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from busenv import cluster
from busenv.cluster import connected
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.run_training import run_training
from tests.support.clusters import with_nodes
from tests.support.training import SMALL_EXPERT, SMALL_PPO, parameters, same_tensors

SEARCH = SMALL_EXPERT.changed({
    "games": 6, "replay_size": 500_000, "decisions": 10**6,
})  # fmt: skip
STEPS = 4


def trained(
    config: ExpertConfig, folder: Path, on_cluster: bool = False
) -> dict[str, torch.Tensor]:
    """Parameters after some steps."""
    run = ExpertRun(config, folder, on_cluster)
    for _ in range(STEPS):
        run.step()
    return parameters(run)


def after(calls: int, then: Callable[[], None], patch: pytest.MonkeyPatch) -> None:
    """Call a function when a number of results has been requested from the cluster."""
    result, seen = cluster.result, []

    def counted(reference: Any) -> Any:
        seen.append(reference)
        if len(seen) == calls:
            then()
        return result(reference)

    patch.setattr(cluster, "result", counted)


def test_expert_iteration_does_not_depend_on_the_nodes_of_a_cluster(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = trained(SEARCH, tmp_path / "here")
    with with_nodes(nodes, 2) as both, connected(nodes.address):
        after(3, lambda: nodes.remove_node(both[0], allow_graceful=False), monkeypatch)
        assert same_tensors(wanted, trained(SEARCH, tmp_path / "two", True))
        assert both[0] not in nodes.worker_nodes


def test_ppo_runs_on_one_machine(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="PPO and fitting run on one machine: remove --ray"):
        run_training(SMALL_PPO, tmp_path / "run", Console(quiet=True), "local")
    assert not (tmp_path / "run").exists()
