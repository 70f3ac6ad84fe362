"""Ratings on a cluster equal those of one machine, also when nodes are lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from busenv import cluster
from busenv.cluster import ClusterError, connected
from busenv.common.runs import RunError
from busenv.evaluation import rating
from busenv.evaluation.distributed_games import play_on_cluster
from busenv.evaluation.game_log import GAMES
from busenv.evaluation.rating import run_rating
from busenv.evaluation.schedule import Schedule
from busenv.networks.model_files import BUNDLED
from busenv.train.expert_iteration.expert_config import ExpertConfig
from busenv.train.run_training import run_training
from tests.support.clusters import with_nodes
from tests.support.ratings import THREE_AGENTS, games_of, stored_games, without_times

LONG = Schedule(("uct:20", "random", "random"), players=3, games=90)


pytestmark = pytest.mark.usefixtures("few_resamples")


def test_a_rating_resumes_on_and_off_a_cluster_that_loses_a_node(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, removed = rating.append_lines, []
    with with_nodes(nodes, 2) as both, connected(nodes.address):

        def remove(*arguments: Any) -> None:
            append(*arguments)
            if not removed and len(stored_games(tmp_path)) >= 30:
                removed.append(both[0])
                nodes.remove_node(both[0], allow_graceful=False)

        run_rating(LONG, tmp_path, console=Console(quiet=True), ray="auto")
        lines = (tmp_path / GAMES).read_bytes().splitlines(keepends=True)
        (tmp_path / GAMES).write_bytes(b"".join(lines[:10]))
        monkeypatch.setattr(rating, "append_lines", remove)
        run_rating(LONG, tmp_path, ray="auto")
    assert removed
    assert stored_games(tmp_path)[:10] == [json.loads(line) for line in lines[:10]]
    assert without_times(stored_games(tmp_path)) == without_times(games_of(LONG))
    lines = (tmp_path / GAMES).read_bytes().splitlines(keepends=True)
    (tmp_path / GAMES).write_bytes(b"".join(lines[:-5]))
    run_rating(LONG, tmp_path)
    assert without_times(stored_games(tmp_path)) == without_times(games_of(LONG))


def test_models_are_sent_to_nodes_and_versions_are_compared(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "mine.safetensors"
    for suffix in (".safetensors", ".json"):
        shutil.copy(BUNDLED / f"city-2{suffix}", model.with_suffix(suffix))
    models = Schedule((f"net:{model}", "random"), players=3, games=18)
    wanted = without_times(games_of(models))
    with with_nodes(nodes, 1), connected(nodes.address):
        games = play_on_cluster(models, [*range(models.total)])
        some = next(games)  # the model has been sent
        model.unlink()
        assert without_times([*some, *(game for more in games for game in more)]) == wanted
        monkeypatch.setattr(cluster, "_code_version", lambda: "0.0.9")
        message = r"has another busenv .* than the caller \(0\.0\.9\); install the same"
        with pytest.raises(RunError, match=message) as error:
            run_rating(THREE_AGENTS, tmp_path / "run", ray="auto")
        assert f"the same command with --out {tmp_path / 'run'} resumes" in str(error.value)


def test_a_local_cluster_stores_no_token(tmp_path: Path) -> None:
    """A later `ray start --head` would require it of all nodes."""
    code = "from busenv.cluster import *\nwith connected('local', 1): print(num_cpus(), 'core')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "1 core" in done.stdout, done.stderr
    assert not (tmp_path / ".ray").exists()


@pytest.mark.parametrize("spec", ["exec:python3 player.py", "py:player.py:Player", "llm:model"])
def test_programs_python_code_and_language_models_are_refused(spec: str, tmp_path: Path) -> None:
    schedule = Schedule((spec, "random"), players=3, games=18)
    with pytest.raises(RunError, match="play on this machine only; leave out --ray"):
        run_rating(schedule, tmp_path / "run", ray="local")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "no cluster at '127.0.0.1:1': .*; allowed: auto, local, or HOST:PORT"),
        ("ray://head:10001", "no cluster at 'ray://head:10001': .*; allowed: auto, local"),
        ("head", "no cluster at 'head': .*; allowed: auto"),
    ],
)
def test_an_invalid_address_is_refused_without_a_folder(
    address: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match=words):
        run_rating(THREE_AGENTS, tmp_path / "run", ray=address)
    with pytest.raises(ClusterError, match=words):
        run_training(ExpertConfig(), tmp_path / "run", Console(quiet=True), address)
    assert not (tmp_path / "run").exists()
