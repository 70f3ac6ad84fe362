"""Bursts of Ctrl-C at random moments to long commands."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from busenv.common.keyboard_interrupt import STATUS
from busenv.evaluation.game_log import GAMES, parse_games
from busenv.game.board_specs import load_board
from busenv.networks.factory import build_network
from busenv.train.checkpoint import CHECKPOINT_FILE, load_checkpoint
from tests.support.play import played
from tests.support.programs import EXAMPLE

STOPPED = "busenv: stopped\n"
MARK = "BUSENV_BURST"  # in the environment of all processes of a command
TICK = 0.01
MAX_WAIT = 30.0  # a command that runs longer hangs

SMALL = "width=16 games=4 batch_size=256 threads=1 rate_games=4 rated=random"

# By name: the command and its arguments, and the seconds from its start within which
# the signals begin. OUT is a folder of its own, GAME a recorded game, PROGRAM a spec.
COMMANDS: dict[str, tuple[str, float]] = {
    "rate": ("rate random greedy --games 900000 --workers 2 --out OUT", 9),
    "rate, to its end": (
        "rate random greedy --players 3 --games 9 --workers 2 --out OUT", 12
    ),
    "rate, programs": (
        "rate PROGRAM random --players 3 --games 90000 --workers 2 --out OUT", 9
    ),
    "rate, long decisions": ("rate uct:2000000 --against greedy --workers 2 --out OUT", 12),
    "ladder": ("ladder --games 2 --workers 2 --out OUT", 20),
    "train": ("train quick --set seconds=90000 rate_every=1 --out OUT", 15),
    "train, small steps": (f"train quick --out OUT --set decisions=90000000 {SMALL}", 12),
    "train, on a cluster": (
        f"train quick --ray local --out OUT --set decisions=90000000 {SMALL}", 25
    ),
    "train, expert": (
        f"train expert --out OUT --set decisions=90000000 {SMALL}", 15
    ),
    "demo": ("demo --seconds 1 --games 40 --out OUT", 20),
    "bench": ("bench --only playouts --repeats 9999", 8),
    "bench, two versions": ("bench --against HEAD --only playouts --repeats 9999", 8),
    "replay": ("replay GAME --agent uct:300 -o OUT.html", 5),
    "show": ("show GAME", 3),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The end of a command.

    seconds: from the first signal to the end. status: None if it had to be killed. errors: its
    standard error. left: its processes that still run.
    """

    command: str
    seconds: float
    status: int | None
    errors: str
    left: list[str]

    @property
    def early(self) -> bool:
        """Whether the signal came while Python imported the command."""
        importing = STOPPED not in self.errors and "in run_command" not in self.errors
        return self.status in (1, -signal.SIGINT) and importing and not self.left

    @property
    def good(self) -> bool:
        finished = self.status == 0 and not self.errors
        stopped = self.status == STATUS and self.errors == STOPPED
        return (finished or stopped) and not self.left


def attack(name: str, folder: Path, rng: random.Random) -> Outcome:
    """Run a command of COMMANDS in an empty folder, and send it a burst of signals."""
    command, longest = COMMANDS[name]
    played(seed=1).save(folder / "game.json")
    places = {f"OUT{suffix}": str(folder / f"out{suffix}") for suffix in ("", ".html", ".json")}
    places |= {"GAME": str(folder / "game.json"), "PROGRAM": f"exec:{sys.executable} {EXAMPLE}"}
    words = command.split()
    moments = [rng.uniform(0, longest)]
    for _ in range(rng.randrange(6)):
        moments.append(moments[-1] + rng.uniform(0, 0.3))
    group, mark = rng.random() < 0.5, f"{MARK}={rng.getrandbits(64):x}"
    with open(folder / "errors", "w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "busenv.cli"] + [places.get(word, word) for word in words],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, MARK: mark.partition("=")[2]},
            start_new_session=True,
        )
        start, first = time.monotonic(), 0.0
        while process.poll() is None and (spent := time.monotonic() - start) < longest + MAX_WAIT:
            if moments and spent >= moments[0]:
                moments.pop(0)
                first = first or time.monotonic()
                if group:
                    os.killpg(process.pid, signal.SIGINT)
                else:
                    process.send_signal(signal.SIGINT)
            time.sleep(TICK)
        seconds, status = time.monotonic() - first if first else 0.0, process.poll()
        end = time.monotonic() + 3
        while (left := [*marked(mark)]) and status is not None and time.monotonic() < end:
            time.sleep(TICK)
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        process.wait()
        errors.seek(0)
        return Outcome(name, seconds, status, errors.read(), [words for _, words in left])


def check_files(folder: Path) -> None:
    """Check that games and checkpoint in a folder are complete, without temporary files."""
    for path in folder.rglob("*"):
        assert not re.fullmatch(r"\..+\.[0-9a-f]{16}", path.name), path
        if path.name == GAMES:
            content = path.read_bytes()
            assert parse_games(content)[1] == len(content)
        if path.name == CHECKPOINT_FILE:
            config = json.loads((path.parent / "run.json").read_text())
            network = build_network(config["network"], load_board("city"), config["width"])
            load_checkpoint(path.parent, network, torch.optim.Adam(network.parameters()), {})


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """The processes that have a mark in their environment, and their commands."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes().split(b"\0"):
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield int(path.name), words
        except OSError:
            pass
