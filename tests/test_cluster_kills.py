"""Killed commands, also with a local cluster: they resume without loss and leave no process."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from busenv.evaluation.game_log import GAMES
from busenv.evaluation.rating import run_rating
from tests.support.bursts import interrupt, marked
from tests.support.ratings import THREE_AGENTS, games_of, stored_games, without_times

MARK = "BUSENV_KILLED"  # in the environment of all processes of the command
LIMIT = 90.0  # seconds until all processes have ended; Ray's agents wait 60 for its head
KILLS, LONGEST = 10, 25.0  # number of kills; seconds from a command's start to the latest

SMALL: dict[str, Any] = {
    "width": 8, "seconds": None, "decisions": 20_000, "rated": ["random"], "rate_games": 4,
    "rate_every": 1e6, "threads": 1,
}  # fmt: skip
METHODS: dict[str, dict[str, Any]] = {
    "ppo": {
        **SMALL, "method": "ppo", "games": 24, "batch_size": 256, "bots": ["random"],
        "device": "cpu",
    },
    "expert": {
        **SMALL, "method": "expert", "games": 6, "batch_size": 32, "num_simulations": 4,
        "fast_simulations": 2,
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


def kill(command: list[str], seconds: float) -> bool:
    """Start a command and kill it after some seconds; return whether it had ended by itself."""
    pytest.importorskip("ray")
    before, mark = shared_memory(), f"{os.getpid()}-{time.monotonic()}"
    run = subprocess.Popen(
        [sys.executable, "-m", "busenv", *command],
        env={**os.environ, MARK: mark, "RAY_TMPDIR": "/tmp"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
    gone = time.monotonic() + LIMIT
    while running := [*marked(f"{MARK}={mark}")]:
        assert time.monotonic() < gone, running
        time.sleep(0.1)
    assert shared_memory() <= before
    return run.wait() == 0


def test_a_rating_killed_ten_times_resumes_without_loss(tmp_path: Path) -> None:
    rng = random.Random(0)
    command = ["rate", *THREE_AGENTS.agents, "--players", "3", "--games", "90", "--workers", "1"]
    games: list[dict] = []
    for _ in range(KILLS):
        kill([*command, "--ray", "local", "--out", str(tmp_path)], rng.uniform(2, LONGEST))
        if (tmp_path / GAMES).exists():
            before, games = games, stored_games(tmp_path)
            assert games[: len(before)] == before
    run_rating(THREE_AGENTS, tmp_path)
    assert without_times(stored_games(tmp_path)) == without_times(games_of(THREE_AGENTS))


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_training_run_ends_like_an_undisturbed_one(method: str, tmp_path: Path) -> None:
    rng, settings = random.Random(0), tmp_path / "settings.json"
    settings.write_text(json.dumps(METHODS[method]))
    weights = []
    for name, shortest, longest in (("killed", 2, LONGEST), ("whole", 900, 900)):
        command = ["train", str(settings), "--out", str(tmp_path / name)]
        command += ["--ray", "local"] if method == "expert" else []
        while not kill(command, rng.uniform(shortest, longest)):
            longest *= 1.2
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_ctrl_c_ends_training_on_a_cluster_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    before = shared_memory()
    interrupt("train, on a cluster", tmp_path, random.Random(0))
    assert shared_memory() <= before
