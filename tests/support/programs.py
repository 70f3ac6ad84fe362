"""Programs that tests play by the protocol of EXEC.md."""

from __future__ import annotations

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


def is_gone(pid: int) -> bool:
    """Whether a child process has ended and has been waited for."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False
