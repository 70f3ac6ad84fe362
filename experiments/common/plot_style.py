"""Plots that look the same on every machine: matplotlib's defaults, not the user's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def default_style() -> Iterator[None]:
    """Apply matplotlib's default settings in a block or, as a decorator, in a function."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield
