"""What a command of ours does first: from here on Ctrl-C ends it in one line.

Numpy, numba and torch take a second and more to import. This needs nothing that takes a while;
`busenv.interrupts` takes over.
"""

import os
import signal
import sys

STOPPED = "busenv: stopped"
STATUS = 130  # as a shell has it of a program that Ctrl-C ended


def is_ours() -> bool:
    """Whether this process is `busenv`, or a module of `busenv.experiments` that -m runs."""
    first, second = (*sys.orig_argv[1:3], "", "")[:2]
    started = os.path.basename(first) in ("busenv", "busenv.exe")
    return started or (first == "-m" and second.startswith("busenv.experiments."))


def end_at_once(*_: object) -> None:
    """What Ctrl-C calls as long as nothing has begun."""
    os.write(2, f"{STOPPED}\n".encode())
    os._exit(STATUS)


if is_ours() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, end_at_once)
