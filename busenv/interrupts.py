"""Defer Ctrl-C until a block of code that must not be interrupted has ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_deferred() -> Iterator[list[int]]:
    """Defer SIGINT until the end of the block, and deliver it then.

    Yields a list that stays empty until the first SIGINT arrives. In other threads than the main
    one, which Python never interrupts, the block runs unchanged.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        signal.raise_signal(signal.SIGINT)
