"""Ctrl-C: held back from what must not be left half done, and the end of our own commands.

Python raises KeyboardInterrupt wherever its main thread is, and again while the first is dealt
with: in an import, in a destructor, at the interpreter's exit; not while compiled code runs. Our
commands end within two seconds instead, with one line and exit status 130:

- as long as nothing has begun that would have to be ended (`run_command`), at once;
- then by one KeyboardInterrupt. Those after it are ignored, what other threads and packages say of
  it is not shown, and what it takes longer than GRACE to come to is not waited for.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NoReturn, Protocol

from busenv.bootstrap import STATUS, STOPPED, end_at_once, is_ours

GRACE = 1.5  # seconds from Ctrl-C on in which a command may end by itself
SHOW_CURSOR = b"\x1b[?25h\n"  # which a progress bar hides


class Child(Protocol):
    """A process of `subprocess` or `multiprocessing`."""

    def kill(self) -> None: ...


class _Ctrl:
    """What has come of Ctrl-C in this process, which has but one."""

    begun = False  # there is something to be ended in order
    pressed = False
    raised = False  # as KeyboardInterrupt, and not lost
    lost = threading.Event()  # it was raised where nobody can catch it
    told = False
    telling = threading.Lock()
    errors = 2  # where people read
    children: ClassVar[weakref.WeakSet[Child]] = weakref.WeakSet()


@contextmanager
def interrupts_deferred() -> Iterator[list[int]]:
    """Hold back Ctrl-C until the end of a block that it would leave half done.

    Gives a list that is empty as long as none has come.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread is interrupted, and may say what happens then
        return
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def deaf_children() -> Iterator[Callable[[Child], None]]:
    """For a block that begins a process: it does not hear of Ctrl-C, which a terminal sends to all.

    Gives a function to tell of the process, so that it does not outlive a command that has to be
    cut off. (Windows has no signals to block.)
    """
    with interrupts_deferred():
        if not hasattr(signal, "pthread_sigmask"):
            yield _Ctrl.children.add
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield _Ctrl.children.add
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def own_process() -> bool:
    """Let Ctrl-C end this process in one line from now on.

    False, and nothing changes, where it is not heeded (in the background of a shell) or somebody
    else deals with it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler not in (signal.default_int_handler, end_at_once):
        return handler is _interrupt
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _once_more
    atexit.register(_exit)  # before others do so, and thus called after them
    import socket  # late, since it takes some milliseconds

    heard, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard, woken), daemon=True).start()
    return True


def run_command(command: Callable[[], object]) -> None:
    """Run all that this process is there for; at Ctrl-C it is told by one KeyboardInterrupt.

    Whatever is raised after that ends the process as Ctrl-C does. What a KeyboardInterrupt says is
    added to the line.
    """
    owned = own_process()
    try:
        try:
            _Ctrl.begun = True
            command()
        finally:
            _Ctrl.begun = False
            if owned:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python's own end is not disturbed
    except BaseException as error:
        if not _Ctrl.pressed:
            raise
        words = str(error) if isinstance(error, KeyboardInterrupt) else ""
        _tell(f"{STOPPED}{words and ': '}{words}")
        sys.exit(STATUS)


def _interrupt(*_: Any) -> None:
    """What Ctrl-C calls, in the main thread."""
    _hush()
    if not _Ctrl.begun:
        _end()
    if not _Ctrl.raised:
        _Ctrl.raised = True
        raise KeyboardInterrupt


def _once_more(found: sys.UnraisableHookArgs) -> None:
    """An exception that nobody can catch, such as one in a destructor."""
    if _Ctrl.pressed and isinstance(found.exc_value, KeyboardInterrupt):
        _Ctrl.lost.set()
    sys.__unraisablehook__(found)


def _watch(heard: Any, _: Any) -> None:
    """End the process GRACE after Ctrl-C, in a thread of its own."""
    while signal.SIGINT not in heard.recv(64):
        pass
    end = time.monotonic() + GRACE
    while (left := end - time.monotonic()) > 0:
        if _Ctrl.lost.wait(left):
            _Ctrl.lost.clear()
            _Ctrl.raised = False
            signal.raise_signal(signal.SIGINT)  # which Python deals with in the main thread
    _end()


def _exit() -> None:
    """End a process that Ctrl-C ended, without taking everything apart: torch alone takes a second.

    All else that is to be done at the end has been done.
    """
    if _Ctrl.told:
        with suppress(OSError, ValueError):  # who reads it may have ended before us
            sys.stdout.flush()
        os._exit(STATUS)


def _hush() -> None:
    """From now on nothing is shown on standard error but what is told here."""
    if not _Ctrl.pressed:
        _Ctrl.pressed = True
        with suppress(OSError):  # it may be closed
            _Ctrl.errors = os.dup(2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _tell(words: str, before: bytes = b"") -> None:
    """Say what people are to read at the end, once."""
    with _Ctrl.telling, suppress(OSError):
        if not _Ctrl.told:
            _Ctrl.told = True
            os.write(_Ctrl.errors, before + words.encode(errors="replace") + b"\n")


def _end() -> NoReturn:
    """End the process and its children, whatever they are doing."""
    _hush()
    for child in list(_Ctrl.children):
        with suppress(Exception):  # it may have ended
            child.kill()
    _tell(STOPPED, SHOW_CURSOR if _Ctrl.begun and os.isatty(_Ctrl.errors) else b"")
    os._exit(STATUS)


if is_ours():
    own_process()
