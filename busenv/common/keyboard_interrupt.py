"""End a command-line program on Ctrl-C, with one line and exit status 130.

Python alone raises KeyboardInterrupt in the main thread, which waits for compiled code to return,
and prints a traceback. A program that `run_command` runs ends within two seconds instead.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import util

from busenv.interrupts import interrupts_deferred

STATUS = 130  # exit status that shells report for a program ended by SIGINT
STOPPED = "busenv: stopped"
GRACE = 1.5  # seconds from the first Ctrl-C after which the process is killed
SHOW_CURSOR = b"\x1b[?25h\n"  # restores the terminal after a progress bar


def run_command(command: Callable[[], object]) -> None:
    """Run the main function of a command-line program.

    The first Ctrl-C raises KeyboardInterrupt in the main thread. The process then prints
    `STOPPED`, with the exception's text if it has one, and exits with `STATUS`. Later Ctrl-C and
    all other output to standard error are discarded. After `GRACE` seconds the process and its
    worker processes are killed.

    Where SIGINT is ignored, as in a shell's background, or has another handler, nothing changes.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        command()
        return
    interruption = _Interruption()
    message = ""
    try:
        try:
            command()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # may raise a pending KeyboardInterrupt
    except BaseException as error:
        if not interruption.received:
            raise
        message = str(error) if isinstance(error, KeyboardInterrupt) else ""
    if interruption.received:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # again: the first call may have raised
        # Resets CPython's mark of a KeyboardInterrupt in `exec`, which would kill `python -m`.
        exec("")
        _kill_children()
        interruption.report(message)
        sys.exit(STATUS)  # not at once: multiprocessing's semaphores are cleaned up on the way


@contextmanager
def sigint_blocked() -> Iterator[None]:
    """Block SIGINT, which a terminal sends to a whole process group, for processes started here.

    They inherit the block. Windows has no signal masks: there only this process defers Ctrl-C.
    """
    with interrupts_deferred():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Interruption:
    """The SIGINT handler of a process, and a thread that enforces `GRACE`."""

    def __init__(self) -> None:
        self.received = False
        self._stderr = 2
        self._unreported = threading.Semaphore()
        # Python writes to this descriptor at once, even while the main thread is in compiled code.
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._watch, daemon=True).start()
        signal.signal(signal.SIGINT, self._interrupt)

    def report(self, message: str = "", prefix: bytes = b"") -> None:
        """Print the last line of the command, once."""
        if not self._unreported.acquire(blocking=False):
            return
        line = f"{STOPPED}: {message}\n" if message else f"{STOPPED}\n"
        with suppress(OSError, ValueError):  # the reader of a pipe may have ended
            os.write(self._stderr, prefix + line.encode(errors="replace"))
            sys.stdout.flush()

    def _interrupt(self, *_: object) -> None:
        if self.received:
            return
        self.received = True
        with suppress(OSError):  # standard error may be closed
            self._stderr = os.dup(2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        raise KeyboardInterrupt

    def _watch(self) -> None:
        while signal.SIGINT not in self._reader.recv(64):
            pass
        time.sleep(GRACE)
        _kill_children()
        with suppress(Exception):  # otherwise multiprocessing warns about leaked semaphores
            util._run_finalizers(0)  # type: ignore[attr-defined]
        self.report(prefix=SHOW_CURSOR if os.isatty(self._stderr) else b"")
        os._exit(STATUS)


def _kill_children() -> None:
    """Kill worker processes that still run: one that is just starting would print a traceback."""
    for child in multiprocessing.active_children():
        child.kill()
