"""Plots that look the same on every machine: matplotlib's defaults, not the user's settings."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from busenv.io import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def default_style() -> Iterator[None]:
    """Apply matplotlib's default settings in a block or, as a decorator, in a function.

    Texts contain no mathematics: names of agents may contain dollar signs.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["text.parse_math"] = False
        yield


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure as a PNG picture, atomically."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130)
    write_whole(path, buffer.getvalue())
