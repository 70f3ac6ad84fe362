"""Ctrl-C during long commands."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from busenv.common.keyboard_interrupt import STATUS
from busenv.evaluation.game_log import GAMES, read_games

STOPPED = "busenv: stopped\n"
MARK = "BUSENV_BURST"  # in the environment of all processes of a command
LIMIT = 10.0  # seconds in which a command ends, on a busy machine

SMALL = "width=16 games=4 batch_size=256 threads=1 rate_games=4 rated=random"
# OUT is a folder.
COMMANDS = {
    "rate": "rate random greedy --games 900000 --workers 2 --out OUT",
    "rate, one process": "rate random greedy --games 900000 --workers 1 --out OUT",
    "rate, long decisions": "rate uct:2000000 --against greedy --workers 2 --out OUT",
    "train": f"train quick --out OUT --set decisions=90000000 {SMALL}",
    "train, on a cluster": f"train expert --ray local --out OUT --set decisions=90000000 {SMALL}",
    "bench, two versions": "bench --against HEAD --only playouts --repeats 9999",
}


def interrupt(name: str, folder: Path, rng: random.Random) -> None:
    """Start a command of COMMANDS, send Ctrl-C after its first output, and check how it ends."""
    words = [word.replace("OUT", str(folder / "out")) for word in COMMANDS[name].split()]
    mark = f"{rng.getrandbits(64):x}"
    with open(folder / "errors", "w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "busenv", *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, MARK: mark},
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(rng.uniform(0, 5))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        end = time.monotonic() + LIMIT
        process.communicate(timeout=LIMIT)
        while (running := [*marked(f"{MARK}={mark}")]) and time.monotonic() < end:
            time.sleep(0.05)
        errors.seek(0)
        assert (process.returncode, errors.read(), running) == (STATUS, STOPPED, [])
    for path in folder.rglob("*"):
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
