"""Processes that work for this one and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection, parent_process, util


def worker_pool(workers: int, at_end: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """A pool of fresh processes (spawned, so that no lock or thread of ours is copied).

    at_end: a function of a module, called in each worker before it ends.
    """
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin, initargs=(at_end,))


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool in the middle of what they do; the pool is broken then."""
    for process in list(pool._processes.values()):  # Python 3.14 has a method for it
        process.terminate()


def _begin(at_end: Callable[[], None] | None) -> None:
    """Leave Ctrl-C to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: _end(at_end))
    if at_end is not None:
        util.Finalize(None, at_end, exitpriority=1)  # atexit is not heeded in such a process
    threading.Thread(target=_end_with_parent, args=(at_end,), daemon=True).start()


def _end_with_parent(at_end: Callable[[], None] | None) -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        _end(at_end)  # a killed parent cannot stop us, and the pool's queues would wait for ever


def _end(at_end: Callable[[], None] | None) -> None:
    try:
        if at_end is not None:
            at_end()
    finally:
        os._exit(1)
