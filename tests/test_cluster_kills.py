"""Killed commands with a local cluster: they resume without loss and leave no process."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from busenv.experiments.common.keyboard_interrupt import STATUS
from busenv.experiments.ratings.game_log import GAMES
from busenv.experiments.ratings.rating import run_rating
from tests.support.bursts import attack, check_files, marked
from tests.support.ratings import THREE_AGENTS, games_of, stored_games, without_times

MARK = "BUSENV_KILLED"  # in the environment of all processes of the command
LIMIT = 90.0  # seconds until all processes have ended; Ray's agents wait 60 for its head
KILLS, LONGEST = 10, 25.0  # number of kills; seconds from a command's start to the latest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc"
    ),
]


def shared_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "plasma" in name.lower()}


def kill(command: list[str], seconds: float) -> None:
    """Start a command, kill it after some seconds, and check that no process is left."""
    pytest.importorskip("ray")
    before, mark = shared_memory(), f"{os.getpid()}-{time.monotonic()}"
    run = subprocess.Popen(
        command,
        env={**os.environ, MARK: mark, "RAY_TMPDIR": "/tmp"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
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
    command = [sys.executable, "-m", "busenv.experiments.cli", "rate", *THREE_AGENTS.agents]
    command += ["--players", "3", "--games", "90", "--workers", "1", "--out", str(tmp_path)]
    games: list[dict] = []
    for _ in range(KILLS):
        kill([*command, "--ray", "local"], rng.uniform(2, LONGEST))
        if (tmp_path / GAMES).exists():
            before, games = games, stored_games(tmp_path)
            assert games[: len(before)] == before
    run_rating(THREE_AGENTS, tmp_path)
    assert without_times(stored_games(tmp_path)) == without_times(games_of(THREE_AGENTS))


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
