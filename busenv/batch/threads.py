"""The threads that take a batch's steps: the caller's, and helpers that sleep between the steps.

Helpers spin for a fraction of a millisecond after a step, since to be woken costs a thread a good
part of the time of a step, and sleep when none comes. No lock of Python's own pools is taken here,
which Ctrl-C could leave taken: each helper is woken by a plain lock. Fixed slices on a
ThreadPoolExecutor were measured at 0.82 to 0.93 times the speed of this (two threads, N = 1024).
"""

from __future__ import annotations

import _thread
import os
import time
import weakref
from typing import Any

import numpy as np

from busenv.core import thread_kernels
from busenv.core.batch_kernels import ALL, Arrays
from busenv.core.bots import BotWorkspace, make_bot_workspace
from busenv.core.thread_kernels import LATE


class Helpers:
    """Takes the steps of a batch (core.batch_kernels.Arrays) on so many threads, the caller's included."""

    def __init__(self, arrays: Arrays, count: int) -> None:
        games, actions = arrays.masks.shape
        self._arrays, self._games = arrays, games
        self._workspaces = [make_bot_workspace(actions) for _ in range(count)]
        # A row a thread, 64 bytes apart, since all threads write them. No step is open at first.
        self._claimed = np.full((count, 8), games)
        self._finished = np.full(8, games)
        self._wakes: list[_thread.LockType] = []  # one for each helper; released to wake it
        self._failures: list[BaseException] = []  # of helpers
        self._process = 0  # that has the helpers: one that is forked has none
        self._busy = _thread.allocate_lock()  # held by the thread that steps or resets

    @property
    def workspace(self) -> BotWorkspace:
        """That of the caller's thread."""
        return self._workspaces[0]

    def alone(self) -> _thread.LockType:
        """Enter (`with`) to step or reset; RuntimeError while another thread does.

        It is entered in one instruction of Python's, so no Ctrl-C can leave it taken. Of two
        threads that get here at the very same moment one waits for the other.
        """
        if self._busy.locked():
            raise RuntimeError(
                "this batch is in use by another thread; give each thread a batch of its own"
            )
        return self._busy

    def call(self) -> None:
        """See that all helpers wait for the step that comes and for those that follow soon."""
        if len(self._workspaces) == 1:
            return
        if self._process != os.getpid():
            wakes = [_thread.allocate_lock() for _ in self._workspaces[1:]]
            thread_kernels.help_steps(*self._share(0))  # compiled here, not beside the caller
            ended: list[bool] = []
            weakref.finalize(self, _dismiss, wakes, ended)
            for thread, wake in enumerate(wakes, 1):
                wake.acquire()
                arguments = wake, ended, self._failures, self._share(thread)
                _thread.start_new_thread(_help, arguments)
            self._wakes, self._process = wakes, os.getpid()
        self._raise_failures()
        for wake in self._wakes:
            if wake.locked():
                wake.release()

    def step(self, stages: int = ALL) -> None:
        """Take the stages (core.batch_kernels) of a step in every game; the actions are in place."""
        thread_kernels.open_step(self._claimed, self._finished, self._arrays.stages, stages)
        thread_kernels.advance(*self._share(0))
        self._wait()

    def step_checked(self, stages: int = ALL) -> int:
        """The same, unless an action is illegal: the first such game, nothing changed, else -1."""
        arrays, claimed, finished, work, _ = self._share(0)
        while (
            found := thread_kernels.advance_checked(arrays, claimed, finished, work, stages)
        ) == LATE:
            self._wait()
        self._wait()
        return int(found)

    def close(self) -> None:
        """Wait for helpers that are still at a step, since it was interrupted."""
        thread_kernels.close_step(self._claimed, self._finished, self._games)
        self._wait()

    def _share(self, thread: int) -> tuple[Any, ...]:
        """What a thread is called with."""
        return self._arrays, self._claimed, self._finished, self._workspaces[thread], thread

    def _wait(self) -> None:
        """Wait until a step is done in all games. Raises what a helper has failed with."""
        while not thread_kernels.wait_for(self._finished, self._games):
            self._raise_failures()
            time.sleep(0)  # a helper may need this core

    def _raise_failures(self) -> None:
        if self._failures:
            raise self._failures.pop()

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_wakes": [], "_failures": [], "_process": 0}
        del state["_busy"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _busy=_thread.allocate_lock())


def _help(
    wake: _thread.LockType,
    ended: list[bool],
    failures: list[BaseException],
    share: tuple[Any, ...],
) -> None:
    """What a helper does: sleep until it is woken, then help until no step comes for a while."""
    while True:
        wake.acquire()
        if ended:
            return
        try:
            thread_kernels.help_steps(*share)
        except BaseException as error:
            failures.append(error)


def _dismiss(wakes: list[_thread.LockType], ended: list[bool]) -> None:
    """End the helpers of a batch that is no more."""
    ended.append(True)
    for wake in wakes:
        if wake.locked():
            wake.release()
