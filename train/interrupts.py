"""Ctrl-C, held back while a run must not stop half-way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Hold back Ctrl-C until the end of a block that it would leave half done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted, and may say what happens then
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        signal.raise_signal(signal.SIGINT)
