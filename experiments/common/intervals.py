"""Confidence intervals of shares."""

from __future__ import annotations

import math


def wilson(successes: float, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of a share (Wilson 1927), 95% by default."""
    n, share = trials, successes / trials
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At a share of 0 or 1 rounding could move the limit slightly to either side of it.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
