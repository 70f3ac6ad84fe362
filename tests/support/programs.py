"""Programs that play by the protocol of EXEC.md, and the processes of programs."""

import os
import shlex
import sys
from pathlib import Path

from busenv.agents.external import example_client

EXAMPLE = Path(example_client.__file__)

HELPERS = """
import os, signal, subprocess, sys, time
def say(line):
    print(line, flush=True)
def asked(word="go"):
    for line in sys.stdin:
        if line.split()[0] == word:
            return line
"""
READY = HELPERS + "asked('hello'); say('ready')\n"


def command(path: Path) -> str:
    return shlex.join([sys.executable, str(path)])


def children(pid: int) -> set[int]:
    """The running processes that a process has started."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for path in files for child in path.read_text().split()}


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and has not been waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def is_gone(pid: int) -> bool:
    """Whether a child process has ended and has been waited for."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False
