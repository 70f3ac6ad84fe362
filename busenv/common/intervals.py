"""Confidence intervals of shares and of ratings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from busenv.common.cores import available_cores
from busenv.common.worker_pool import worker_pool

RESAMPLES = 100
FEW_GAMES = 1000  # resampled in about the time in which workers start
LIMITS = (2.5, 97.5)  # percentiles


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """95% interval of a share (Wilson 1927)."""
    n, share, z = trials, successes / trials, 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At a share of 0 or 1 rounding could move the limit slightly to either side of it.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def format_bounds(low: float, high: float) -> str:
    """Format an interval of shares in percent: [12.3, 45.6]."""
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def bootstrap(
    rate: Callable[[np.ndarray], np.ndarray], games: np.ndarray, seed: int, workers: int | None = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return 95% bootstrap intervals of ratings over games.

    rate: a picklable function from an array like `games`, with one row per game, to ratings of any
    shape. Returns low and high in that shape, the same for any number of worker processes.
    workers: None for as many as there are cores, if there are more than FEW_GAMES.
    """
    draw = partial(_resample, rate, games, seed)
    workers = workers or (available_cores() if len(games) > FEW_GAMES else 1)
    if workers == 1:
        samples = [draw(index) for index in range(RESAMPLES)]
    else:
        with worker_pool(workers) as pool:
            samples = list(pool.map(draw, range(RESAMPLES)))
    low, high = np.percentile(samples, LIMITS, axis=0)
    return low, high


def _resample(
    rate: Callable[[np.ndarray], np.ndarray], games: np.ndarray, seed: int, index: int
) -> np.ndarray:
    drawn = np.random.default_rng((seed, index)).integers(len(games), size=len(games))
    return rate(games[drawn])
