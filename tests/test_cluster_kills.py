"""Killed commands with a local cluster: they resume without loss and leave no process."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from busenv.common.keyboard_interrupt import STATUS
from busenv.evaluation.game_log import GAMES
from busenv.evaluation.rating import run_rating
from busenv.train.checkpoint import CHECKPOINT_FILE, NETWORK
from busenv.train.config_files import read_config
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.ppo_run import PPORun
from tests.support.bursts import attack, check_files, marked
from tests.support.ratings import THREE_AGENTS, games_of, stored_games, without_times
from tests.support.training import saved_iteration

MARK = "BUSENV_KILLED"  # in the environment of all processes of the command
LIMIT = 90.0  # seconds until all processes have ended; Ray's agents wait 60 for its head
KILLS, LONGEST = 10, 25.0  # number of kills; seconds from a command's start to the latest

# `busenv train`, which saves every iteration and then writes its number to a file.
TRAIN = """
import sys
from busenv import cli
from busenv.train import training_run
from busenv.train.expert_iteration.expert_run import ExpertRun
from busenv.train.ppo_run import PPORun

def noting(save):
    def noted(run):
        save(run)
        with open(NOTES, "a") as file:
            file.write(f"{run.iteration}\\n")
    return noted

NOTES = sys.argv.pop(1)
training_run.SAVE_EVERY = 0.0
for kind in (PPORun, ExpertRun):
    kind.save = noting(kind.save)
cli.main(sys.argv[1:])
"""
TINY: dict[str, Any] = {
    "width": 8, "games": 6, "seconds": None, "decisions": 10**9, "rated": ["random"],
    "rate_games": 4, "rate_every": 1e6, "threads": 1,
}  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    "ppo": {
        **TINY, "method": "ppo", "games": 24, "batch_size": 256, "bots": ["random"],
        "snapshot_every": 2, "device": "cpu",
    },
    "expert": {
        **TINY, "method": "expert", "batch_size": 32, "num_simulations": 4, "fast_simulations": 2,
    },
}  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc"
    ),
]


def shared_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "plasma" in name.lower()}


def kill(command: list[str], seconds: float, begun: Callable[[], bool] = lambda: True) -> None:
    """Start a command, kill it some seconds after `begun`, and check that no process is left."""
    pytest.importorskip("ray")
    before, mark = shared_memory(), f"{os.getpid()}-{time.monotonic()}"
    run = subprocess.Popen(
        command,
        env={**os.environ, MARK: mark, "RAY_TMPDIR": "/tmp"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not begun() and run.poll() is None:
        time.sleep(0.02)
    end = time.monotonic() + seconds
    while time.monotonic() < end and run.poll() is None:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    gone = time.monotonic() + LIMIT
    while left := [*marked(f"{MARK}={mark}")]:
        assert time.monotonic() < gone, left
        time.sleep(0.1)
    assert shared_memory() <= before


def test_a_rating_killed_ten_times_resumes_without_loss(tmp_path: Path) -> None:
    rng = random.Random(0)
    command = [sys.executable, "-m", "busenv", "rate", *THREE_AGENTS.agents]
    command += ["--players", "3", "--games", "90", "--workers", "1", "--out", str(tmp_path)]
    games: list[dict] = []
    for _ in range(KILLS):
        kill([*command, "--ray", "local"], rng.uniform(2, LONGEST))
        if (tmp_path / GAMES).exists():
            before, games = games, stored_games(tmp_path)
            assert games[: len(before)] == before
    run_rating(THREE_AGENTS, tmp_path)
    assert without_times(stored_games(tmp_path)) == without_times(games_of(THREE_AGENTS))


@pytest.mark.parametrize("method", METHODS)
def test_a_training_run_killed_ten_times_resumes_without_loss(method: str, tmp_path: Path) -> None:
    rng, folder, notes = random.Random(0), tmp_path / "run", tmp_path / "notes"
    (tmp_path / "settings.json").write_text(json.dumps(METHODS[method]))
    command = [sys.executable, "-c", TRAIN, str(notes), "train", str(tmp_path / "settings.json")]
    command += ["--out", str(folder), *(["--ray", "local"] if method == "expert" else [])]
    saved, noted = [0], [0]

    def goes_on() -> bool:
        return notes.exists() and int(("0 " + notes.read_text()).split()[-1]) > noted[-1]

    for number in range(KILLS):
        if number % 2:
            kill(command, rng.uniform(0, 5), goes_on)
        else:
            kill(command, rng.uniform(2, LONGEST))
        noted = [*map(int, notes.read_text().split())] if notes.exists() else [0]
        saved.append(saved_iteration(folder) if (folder / CHECKPOINT_FILE).exists() else 0)
        assert noted == sorted(noted)
        assert saved[-1] >= noted[-1]
    assert len({*saved}) > KILLS // 2  # it made progress in between
    assert torch.equal(*map(parameters, (folder, undisturbed(saved[-1], folder, tmp_path / "one"))))


def undisturbed(iterations: int, folder: Path, other: Path) -> Path:
    """A folder with the run of another folder, made without a cluster and without a kill."""
    config: Any = read_config(str(folder / "run.json"))
    run = (PPORun if config.method == "ppo" else ExpertRun)(config, other)
    while run.iteration < iterations:
        run.step()
    run.save()
    return other


def parameters(folder: Path) -> torch.Tensor:
    """All parameters of the network in a checkpoint, as one vector."""
    state = load_file(folder / CHECKPOINT_FILE)
    return torch.cat([state[name].ravel() for name in sorted(state) if name.startswith(NETWORK)])


def test_ctrl_c_ends_training_on_a_cluster_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    before, stopped = shared_memory(), 0
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = attack("train, on a cluster", folder, random.Random(seed))
        assert outcome.good or outcome.early, outcome
        check_files(folder)
        stopped += outcome.status == STATUS
    assert stopped > 2
    assert shared_memory() <= before
