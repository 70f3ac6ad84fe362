"""Speeds of things that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


def speeds(plays: Sequence[Callable[[], int]], repeats: int) -> list[list[float]]:
    """What each of `plays` did a second, in each of its runs; a play returns how much it did.

    They take turns, so that a slow minute of the machine falls on all alike, and each is run once
    before, uncounted, so that nothing is compiled or cold.
    """
    found: list[list[float]] = [[] for _ in plays]
    for repeat in range(-1, repeats):
        for play, speed in zip(plays, found, strict=True):
            began = time.perf_counter()
            count = play()
            if repeat >= 0:
                speed.append(count / (time.perf_counter() - began))
    return found
