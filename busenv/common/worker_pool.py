"""Worker processes that end when their parent process ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, parent_process, util
from multiprocessing.context import SpawnContext, SpawnProcess

GRACE = 0.7  # seconds that a worker has to end by itself
DIED = (
    "a worker process died: it crashed or was killed, perhaps for lack of memory (a script that "
    "starts workers needs to be a file and to call them under "
    'if __name__ == "__main__":, or to play with workers=1)'
)


class _Worker(SpawnProcess):
    def start(self) -> None:
        """Start with SIGINT blocked: a terminal sends it to workers too, but their parent acts."""
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            super().start()
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    except BrokenProcessPool as error:
        raise BrokenProcessPool(DIED) from error
    except BaseException:
        end_workers(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool in the middle of their work; the pool is unusable afterwards."""
    processes = [*pool._processes.values()]
    for process in processes:
        process.terminate()
    waiting, end = {process.sentinel for process in processes}, time.monotonic() + GRACE
    while waiting and (seconds := end - time.monotonic()) > 0:
        waiting -= {*connection.wait(waiting, seconds)}
    for process in processes:
        process.kill()  # compiled code does not react to SIGTERM


def _begin(at_end: Callable[[], None] | None) -> None:
    """Let a worker call `at_end` when it ends, and end when its parent ends."""
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
    # `at_end` may wait for a lock that the main thread takes again and again.
    threading.Timer(GRACE, os._exit, [1]).start()
    try:
        if at_end is not None:
            at_end()
    finally:
        os._exit(1)
