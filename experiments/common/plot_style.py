"""Pictures look the same everywhere: they are drawn by no settings but matplotlib's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path


@contextmanager
def default_style() -> Iterator[None]:
    """Within it, or in a function that it decorates, matplotlib's defaults hold.

    A file `matplotlibrc` in the current folder is not even read: it may be a stranger's, and
    evaluates what it holds.
    """
    _import_elsewhere()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def _import_elsewhere() -> None:
    """Import matplotlib from the folder of its own matplotlibrc.

    When it is imported it reads that of the current folder first, whatever else it is told.
    """
    found = find_spec("matplotlib")
    if "matplotlib" in sys.modules or found is None or found.origin is None:
        return
    here = os.getcwd()
    os.chdir(Path(found.origin).parent / "mpl-data")
    try:
        import matplotlib  # noqa: F401
    finally:
        os.chdir(here)
