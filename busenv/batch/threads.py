"""Worker threads that share the steps of a batch with the calling thread.

Between steps a worker spins for a fraction of a millisecond, since waking a thread takes a good
part of a step's time, and then sleeps on a lock of its own. Pools of Python's library are not used:
Ctrl-C could leave their locks taken, and fixed slices on a ThreadPoolExecutor ran at 0.82 to 0.93
times this speed (two threads, N = 1024).
"""

from __future__ import annotations

import _thread
import time
import weakref
from typing import Any

import numpy as np

from busenv.core import thread_kernels
from busenv.core.batch_kernels import Arrays
from busenv.core.bots import BotWorkspace, make_bot_workspace
from busenv.core.thread_kernels import LATE


class WorkerThreads:
    """Runs the steps of a batch on `count` threads, including the calling one."""

    def __init__(self, arrays: Arrays, count: int) -> None:
        games, actions = arrays.masks.shape
        self._arrays, self._num_games = arrays, games
        self._workspaces = [make_bot_workspace(actions) for _ in range(count)]
        # One row of 64 bytes per thread, since all threads write them. No step is open at first.
        self._claimed = np.full((count, 8), games)
        self._finished = np.full(8, games)
        self._wake_locks: list[_thread.LockType] = []  # per worker; releasing it wakes the worker
        self._in_use = _thread.allocate_lock()

    @property
    def workspace(self) -> BotWorkspace:
        """The calling thread's workspace."""
        return self._workspaces[0]

    def exclusive(self) -> _thread.LockType:
        """Return a lock to hold (`with`) during a step or reset.

        Raises RuntimeError while another thread holds it. Entering a plain lock is one instruction
        of Python's, so Ctrl-C cannot leave it taken; of two threads that get here at the same
        moment, one waits.
        """
        if self._in_use.locked():
            raise RuntimeError(
                "this batch is in use by another thread; give each thread a batch of its own"
            )
        return self._in_use

    def wake(self) -> None:
        """Start the workers if they do not exist yet, and wake them for the next steps."""
        if len(self._workspaces) == 1:
            return
        if not self._wake_locks:
            locks = [_thread.allocate_lock() for _ in self._workspaces[1:]]
            thread_kernels.help_steps(*self._kernel_arguments(0))  # compiles it in this thread
            closed: list[bool] = []
            weakref.finalize(self, _end_workers, locks, closed)
            for thread, lock in enumerate(locks, 1):
                lock.acquire()
                arguments = lock, closed, self._kernel_arguments(thread)
                _thread.start_new_thread(_work, arguments)
            self._wake_locks = locks
        for lock in self._wake_locks:
            if lock.locked():
                lock.release()

    def step(self, stages: int) -> None:
        """Run stages (`busenv.core.batch_kernels`) of a step in every game."""
        thread_kernels.open_step(self._claimed, self._finished, self._arrays.stages, stages)
        thread_kernels.advance(*self._kernel_arguments(0))
        self._wait()

    def step_checked(self, stages: int) -> int:
        """Run stages unless an action is illegal.

        Returns the index of the first game with an illegal action, without any change, or -1.
        """
        while True:
            first_illegal = thread_kernels.advance_checked(*self._kernel_arguments(0)[:4], stages)
            self._wait()
            if first_illegal != LATE:
                return int(first_illegal)

    def close_step(self) -> None:
        """Wait for workers that still run an interrupted step."""
        thread_kernels.close_step(self._claimed, self._finished, self._num_games)
        self._wait()

    def _kernel_arguments(self, thread: int) -> tuple[Any, ...]:
        return self._arrays, self._claimed, self._finished, self._workspaces[thread], thread

    def _wait(self) -> None:
        """Wait until the step is done in all games."""
        while not thread_kernels.wait_for(self._finished, self._num_games):
            time.sleep(0)  # a worker may need this core

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_wake_locks": [], "_in_use": None}  # locks cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _in_use=_thread.allocate_lock())


def _work(
    wake_lock: _thread.LockType, closed: list[bool], kernel_arguments: tuple[Any, ...]
) -> None:
    """Run a worker: sleep until woken, then share steps until none has come for a while."""
    while True:
        wake_lock.acquire()
        if closed:
            return
        thread_kernels.help_steps(*kernel_arguments)


def _end_workers(wake_locks: list[_thread.LockType], closed: list[bool]) -> None:
    closed.append(True)
    for lock in wake_locks:
        if lock.locked():
            lock.release()
