"""End a command-line program on Ctrl-C, with one line and exit status 130."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

STATUS = 130  # exit status that shells report for a program ended by SIGINT
STOPPED = "busenv: stopped"


def run_command(command: Callable[[], object]) -> None:
    """Run the main function of a command-line program.

    Ctrl-C raises KeyboardInterrupt in the main thread, as always in Python. The program then prints
    `STOPPED` and exits with `STATUS`. A second Ctrl-C ends the process at once, even in compiled
    code.

    Where SIGINT is ignored, as in a shell's background, or has another handler, nothing changes.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _exit_at_second_interrupt()
    try:
        command()
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        sys.exit(STATUS)


def _exit_at_second_interrupt() -> None:
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    # Python writes the number of each signal to this descriptor at once, while KeyboardInterrupt
    # waits until compiled code returns.
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        received = b""
        while received.count(signal.SIGINT) < 2:
            received += reader.recv(64)
        writer.close()
        os._exit(STATUS)

    threading.Thread(target=watch, daemon=True).start()
