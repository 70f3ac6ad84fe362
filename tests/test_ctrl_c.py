"""Ctrl-C ends a command with one line, at any moment and when it is repeated."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import busenv
from busenv.common.keyboard_interrupt import STATUS
from tests.support.bursts import COMMANDS, STOPPED, Outcome, attack, check_files

LIMIT = 10.0  # seconds; two are documented, for an idle machine

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc"
)


def burst(name: str, seed: int, folder: Path) -> Outcome:
    folder.mkdir()
    outcome = attack(name, folder, random.Random(seed))
    assert outcome.good or outcome.early, outcome
    assert outcome.seconds < LIMIT, outcome
    check_files(folder)
    return outcome


def test_bursts_end_a_command_in_one_line_8_tries(tmp_path: Path) -> None:
    names = ("show", "replay", "rate", "rate, to its end") * 2
    with ThreadPoolExecutor(3) as pool:
        tries = [
            pool.submit(burst, name, seed, tmp_path / str(seed)) for seed, name in enumerate(names)
        ]
    outcomes = [one.result() for one in tries]
    assert sum(outcome.status == STATUS for outcome in outcomes) >= 2


@pytest.mark.slow
def test_bursts_end_every_command_in_one_line_210_tries(tmp_path: Path) -> None:
    outcomes = [burst(name, 14 * k + n, tmp_path / f"{k}-{n}")
                for k in range(15) for n, name in enumerate(COMMANDS)]  # fmt: skip
    assert len(outcomes) == 210
    assert sum(outcome.early for outcome in outcomes) < 20
    assert sum(outcome.status == STATUS for outcome in outcomes) > 150


CASES = {  # name: code of the command, and the end of the line
    "in compiled code": ("compiled()", ""),
    "in a text that is run": ("exec('press(); time.sleep(60)')", ""),
    "with a semaphore": (
        """import multiprocessing
    lock = multiprocessing.get_context("spawn").Lock()
    try:
        press(); time.sleep(60)
    finally:
        time.sleep(60)""",
        "",
    ),
    "in a destructor": ("destructor(); time.sleep(60)", ""),
    "on its way out": (
        """try:
        press(); time.sleep(60)
    finally:
        time.sleep(60)""",
        "",
    ),
    "an error after it": (
        """try:
        press(); time.sleep(60)
    finally:
        print("a traceback", file=sys.stderr)
        1 / 0""",
        "",
    ),
    "with a message": ("raise KeyboardInterrupt('not saved') if not press() else None", ""),
    "again and again": (
        """try:
        press(); time.sleep(60)
    except KeyboardInterrupt:
        for _ in range(9): press()
        raise KeyboardInterrupt("saved")""",
        ": saved",
    ),
}

COMMAND = """
import ctypes, os, signal, sys, time

import types
sys.modules["busenv"] = types.ModuleType("busenv")  # avoids its slow imports
sys.modules["busenv"].__path__ = {folders!r}
from busenv.common.keyboard_interrupt import run_command

def press():
    os.kill(os.getpid(), signal.SIGINT)

def compiled():
    press_soon()
    ctypes.CDLL(None).sleep(60)  # a signal ends the first one
    ctypes.CDLL(None).sleep(60)

def press_soon():
    import threading
    threading.Timer(0.2, press).start()

class Fragile:
    def __del__(self):
        press()
        time.sleep(1)

def destructor():
    Fragile()

def command():
    {body}

signal.signal(signal.SIGINT, signal.{handler})
run_command(command)
"""


def process(
    folder: Path, body: str, handler: str = "default_int_handler"
) -> subprocess.CompletedProcess[str]:
    """A command run as a module."""
    folders = [str(Path(busenv.__file__).parent)]
    code = COMMAND.format(body=body, handler=handler, folders=folders)
    (folder / "program.py").write_text(code)
    command = [sys.executable, "-m", "program"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50)


@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_ends_a_command_in_one_line(case: str, tmp_path: Path) -> None:
    body, words = CASES[case]
    done = process(tmp_path, body)
    assert (done.returncode, done.stderr) == (STATUS, STOPPED.replace("\n", f"{words}\n"))


def test_an_ignored_ctrl_c_has_no_effect(tmp_path: Path) -> None:
    done = process(tmp_path, "press(); print('on')", "SIG_IGN")
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")


def test_importing_busenv_changes_no_signal_handler_and_no_thread() -> None:
    code = """
import signal, threading
before = signal.getsignal(signal.SIGINT), threading.active_count()
import busenv
assert (signal.getsignal(signal.SIGINT), threading.active_count()) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
