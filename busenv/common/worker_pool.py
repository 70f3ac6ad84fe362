"""Worker processes that end when their parent process ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, parent_process, util
from multiprocessing.context import SpawnContext, SpawnProcess

from busenv.common.keyboard_interrupt import sigint_blocked

GRACE = 0.7  # seconds that a worker has to end by itself


class _Worker(SpawnProcess):
    def start(self) -> None:
        with sigint_blocked():
            super().start()


class _Context(SpawnContext):
    """Spawned processes, which inherit no lock or thread of this process."""

    Process = _Worker


@contextmanager
def worker_pool(
    workers: int, at_end: Callable[[], None] | None = None
) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool of processes; an exception in the block ends them in the middle of their work.

    at_end: a module-level function, called in each worker before it ends.
    """
    pool = ProcessPoolExecutor(
        workers, mp_context=_Context(), initializer=_begin, initargs=(at_end,)
    )
    try:
        yield pool
    except BaseException:
        end_workers(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool in the middle of their work; the pool is unusable afterwards."""
    processes = list(pool._processes.values())  # Python 3.14 has a public method
    for process in processes:
        process.terminate()
    waiting, end = {process.sentinel for process in processes}, time.monotonic() + GRACE
    while waiting and (left := end - time.monotonic()) > 0:
        waiting -= {*connection.wait(waiting, left)}
    for process in processes:
        process.kill()  # compiled code does not react to SIGTERM


def _begin(at_end: Callable[[], None] | None) -> None:
    """Ignore Ctrl-C, which the parent handles, and end when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: _end(at_end))
    if at_end is not None:
        util.Finalize(None, at_end, exitpriority=1)  # worker processes skip atexit
    threading.Thread(target=_end_with_parent, args=(at_end,), daemon=True).start()


def _end_with_parent(at_end: Callable[[], None] | None) -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        _end(at_end)  # a killed parent sends no signal, and the queues would wait forever


def _end(at_end: Callable[[], None] | None) -> None:
    try:
        if at_end is not None:
            at_end()
    finally:
        os._exit(1)
