"""A command with a cluster of its own is killed: what is done is kept, and nothing lives on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from busenv.experiments.ratings.rating import run_rating
from busenv.experiments.ratings.store import GAMES, parse_games
from tests.support.ratings import SMALL, alone, bare

MARK = "BUSENV_KILLED"  # in the environment of all that the command starts
LIMIT = 60.0  # seconds in which all of it has to be gone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc"
    ),
]


def marked(mark: str) -> list[int]:
    """Processes that a command with a mark has started, itself included."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


def shared_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "plasma" in name.lower()}


def test_ten_kills_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    rng, before = random.Random(0), shared_memory()
    command = [sys.executable, "-m", "busenv.experiments.cli", "rate", *SMALL.agents]
    command += ["--players", "3", "--games", "90", "--workers", "1", "--out", str(tmp_path)]
    kept: list[dict] = []
    for number in range(10):
        environment = {**os.environ, MARK: f"{os.getpid()}-{number}", "RAY_TMPDIR": "/tmp"}
        run = subprocess.Popen(
            [*command, "--ray", "local"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + rng.uniform(2, 25)
        while time.monotonic() < end and run.poll() is None:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        gone = time.monotonic() + LIMIT
        while left := marked(environment[MARK]):
            assert time.monotonic() < gone, [
                Path(f"/proc/{pid}/cmdline").read_text() for pid in left
            ]
            time.sleep(0.1)
        assert shared_memory() <= before
        if (tmp_path / GAMES).exists():
            found = parse_games((tmp_path / GAMES).read_bytes())[0]
            assert found[: len(kept)] == kept
            kept = found
    run_rating(SMALL, tmp_path)
    assert bare(parse_games((tmp_path / GAMES).read_bytes())[0]) == bare(alone(SMALL))
