"""What a careless caller does with what an environment hands out."""

from __future__ import annotations

import numpy as np


def scribble(given: object) -> None:
    """Write nonsense into every array, dict and list, however deep."""
    if isinstance(given, dict):
        for value in given.values():
            scribble(value)
        given.clear()
    elif isinstance(given, (tuple, list)):
        for value in given:
            scribble(value)
    elif isinstance(given, np.ndarray):
        given[...] = 77
