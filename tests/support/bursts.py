"""Ctrl-C, several times and at random moments, to the commands that run long.

`python -m tests.support.bursts TRIES SEED [COMMAND ...]` tells what became of each try.
"""

from __future__ import annotations

import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from busenv import Game
from busenv.agents.networks.mlp import weights_of
from busenv.experiments.common.keyboard_interrupt import STATUS
from busenv.experiments.ratings.rating_store import GAMES, parse_games
from busenv.game.board import load_board
from busenv.train.checkpoint import NAME, read_state, read_tensors
from tests.support.programs import EXAMPLE

STOPPED = "busenv: stopped\n"
MARK = "BUSENV_BURST"  # in the environment of all that a command starts
TICK = 0.01
MOST = 30.0  # seconds after which a command is said to hang

BUSENV = [sys.executable, "-m", "busenv.experiments.cli"]
TUNE = [sys.executable, "-m", "busenv.experiments.studies.tune"]
SMALL = "width=16 games=4 batch_size=256 threads=1 rate_games=4 rated=random".split()

# By name: the command, and the seconds from its start within which the signals begin. OUT is a
# folder of its own, GAME a recorded game.
COMMANDS: dict[str, tuple[list[str], float]] = {
    "rate": ([*BUSENV, *"rate random greedy --games 900000 --workers 2 --out OUT".split()], 9),
    "rate, to its end": (
        [*BUSENV, *"rate random greedy --players 3 --games 9 --workers 2 --out OUT".split()],
        12,
    ),
    "rate, programs": (
        [
            *BUSENV,
            *["rate", f"exec:{sys.executable} {EXAMPLE}", "random", "--players", "3"],
            *"--games 90000 --workers 2 --out OUT".split(),
        ],
        9,
    ),
    "rate, long decisions": (
        [*BUSENV, *"rate uct:2000000 --against greedy --workers 2 --out OUT".split()],
        12,
    ),
    "ladder": ([*BUSENV, *"ladder --games 2 --workers 2 --out OUT".split()], 20),
    "train": (
        [*BUSENV, *"train quick --set seconds=90000 rate_every=1 --out OUT".split()],
        15,
    ),
    "train, small steps": (
        [*BUSENV, *"train quick --out OUT --set decisions=90000000".split(), *SMALL],
        12,
    ),
    "train, on a cluster": (
        [*BUSENV, *"train quick --ray local --out OUT --set decisions=90000000".split(), *SMALL],
        25,
    ),
    "demo": ([*BUSENV, *"demo --seconds 1 --games 40 --out OUT".split()], 20),
    "bench": ([*BUSENV, *"bench --only playouts --repeats 9999".split()], 8),
    "bench, two versions": (
        [*BUSENV, *"bench --against HEAD --only playouts --repeats 9999".split()],
        8,
    ),
    "replay": ([*BUSENV, *"replay GAME --agent uct:300 -o OUT.html".split()], 5),
    "show": ([*BUSENV, "show", "GAME"], 3),
    "tune": ([*TUNE, "value", "--seconds", "900", "--out", "OUT.json"], 6),
}


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    began: seconds from its start to the first signal; seconds: from there to its end. left: the
    processes that it left. early: the signal came while Python imported the command.
    """

    command: str
    began: float
    signals: int
    group: bool
    seconds: float
    status: int | None
    errors: str
    left: list[str]

    @property
    def early(self) -> bool:
        importing = STOPPED not in self.errors and "in run_command" not in self.errors
        return self.status in (1, -signal.SIGINT) and importing and not self.left

    @property
    def good(self) -> bool:
        finished = self.status == 0 and not self.errors
        stopped = self.status == STATUS and self.errors == STOPPED
        return (finished or stopped) and not self.left


class Clock:
    """Seconds in which this process could run: those in which it was stopped do not count."""

    def __init__(self) -> None:
        self.seconds, self._last = 0.0, time.monotonic()

    def tick(self) -> float:
        time.sleep(TICK)
        now = time.monotonic()
        self.seconds, self._last = self.seconds + min(now - self._last, 5 * TICK), now
        return self.seconds


def attack(name: str, folder: Path, rng: random.Random) -> Outcome:
    """Run a command of COMMANDS in an empty folder, and send it a burst of signals."""
    words, longest = COMMANDS[name]
    game = Game(seed=1)
    while not game.is_over:
        game.step(rng.choice(game.legal_actions()))
    game.save(folder / "game.json")
    places = {"OUT": str(folder / "out"), "OUT.html": str(folder / "out.html")}
    places |= {"OUT.json": str(folder / "out.json"), "GAME": str(folder / "game.json")}
    moments = [rng.uniform(0, longest)]
    for _ in range(rng.randrange(6)):
        moments.append(moments[-1] + rng.uniform(0, 0.3))
    group, mark = rng.random() < 0.5, f"{MARK}={rng.getrandbits(64):x}"
    with open(folder / "errors", "w+") as errors:
        process = subprocess.Popen(
            [places.get(word, word) for word in words],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**os.environ, MARK: mark.partition("=")[2]},
            start_new_session=True,
            preexec_fn=_hear,
        )
        clock = Clock()
        first, sent = 0.0, 0
        while process.poll() is None and clock.seconds < longest + MOST:
            if moments and clock.seconds >= moments[0]:
                moments.pop(0)
                sent += 1
                first = first or clock.seconds
                if group:
                    os.killpg(process.pid, signal.SIGINT)
                else:
                    process.send_signal(signal.SIGINT)
            clock.tick()
        seconds, status = clock.seconds - first, process.poll()
        clock = Clock()
        while (left := [*_marked(mark)]) and status is not None and clock.seconds < 3:
            clock.tick()
        for pid, _ in left:
            os.kill(pid, signal.SIGKILL)
        process.wait()
        errors.seek(0)
        told = errors.read()
    return Outcome(
        name, first, sent, group, seconds if sent else 0.0, status, told, [what for _, what in left]
    )


def check_files(folder: Path) -> None:
    """What a command leaves is whole: every line of its games, its checkpoint, and no drafts."""
    for path in folder.rglob("*"):
        assert not re.fullmatch(r"\..+\.[0-9a-f]{16}", path.name), path
        if path.name == GAMES:
            content = path.read_bytes()
            assert parse_games(content)[1] == len(content)
        if path.name == NAME:
            state = read_state(path.parent)
            network, width = state.config["network"], state.config["width"]
            read_tensors(path.parent, weights_of(network, load_board("city"), width))


def _hear() -> None:
    """Be told of Ctrl-C, which what a shell runs in the background is not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _marked(mark: str) -> Iterator[tuple[int, str]]:
    """The processes that have a mark in their environment, and their commands."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes().split(b"\0"):
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield int(path.name), words
        except OSError:
            pass


def main() -> None:
    tries, seed = map(int, sys.argv[1:3])
    names = sys.argv[3:] or list(COMMANDS)
    rng = random.Random(seed)
    outcomes = []
    for k in range(tries):
        with tempfile.TemporaryDirectory() as place:
            outcome = attack(names[k % len(names)], Path(place), rng)
            check_files(Path(place))
        outcomes.append(outcome)
        verdict = "good" if outcome.good else "early" if outcome.early else "BAD"
        print(
            f"{k:3} {verdict:5} {outcome.command:22} at {outcome.began:5.2f} x{outcome.signals}"
            f" {'group' if outcome.group else 'one':5} {outcome.seconds:5.2f} s"
            f" status {outcome.status} {outcome.left or ''}",
            flush=True,
        )
        if not outcome.good:
            print("    " + "\n    ".join(outcome.errors.splitlines()[-12:]), flush=True)
    spans = sorted(o.seconds for o in outcomes if o.signals)
    print(f"{len(outcomes)} tries, {sum(o.good for o in outcomes)} good, "
          f"{sum(o.early for o in outcomes)} during imports")  # fmt: skip
    print(f"median {statistics.median(spans):.2f} s, 95% {spans[len(spans) * 95 // 100]:.2f}, "
          f"longest {spans[-1]:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
