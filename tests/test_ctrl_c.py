"""Ctrl-C ends a command with one line."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from busenv.cli import INTERRUPTED
from busenv.evaluation.game_log import GAMES, read_games
from tests.support.programs import EXAMPLE, command

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc"
)


STOPPED = "busenv: stopped\n"
MARK = "BUSENV_BURST"  # in the environment of all processes of a command
LIMIT = 10.0  # seconds in which a command ends, on a busy machine


def test_ctrl_c_ends_a_rating_in_one_line(tmp_path: Path) -> None:
    """Ctrl-C after the first output."""
    program = f"exec:{command(EXAMPLE)}"
    words = ["rate", "random", program, "--games", "900000", "--workers", "2"]
    words += ["--out", str(tmp_path / "out")]
    mark = str(tmp_path)
    with open(tmp_path / "errors", "w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "busenv", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, MARK: mark},
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(random.uniform(0, 2))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        end = time.monotonic() + LIMIT
        process.communicate(timeout=LIMIT)
        while (running := [*marked(f"{MARK}={mark}")]) and time.monotonic() < end:
            time.sleep(0.05)
        errors.seek(0)
        assert (process.returncode, errors.read(), running) == (INTERRUPTED, STOPPED, [])
    for path in tmp_path.rglob("*"):
        assert not re.fullmatch(r"\..+\.[0-9a-f]{16}", path.name), path
        if path.name == GAMES:
            read_games(path)


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """The processes that have a mark in their environment, and their commands."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes().split(b"\0"):
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield int(path.name), words
        except OSError:
            pass


def test_importing_busenv_changes_no_signal_handler_and_no_thread() -> None:
    code = """
import signal, threading
before = signal.getsignal(signal.SIGINT), threading.active_count()
import busenv
assert (signal.getsignal(signal.SIGINT), threading.active_count()) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
