"""The ratio of two versions' speeds, from runs in pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FASTER, SLOWER, SAME, UNCLEAR = "faster", "slower", "no difference", "unclear"


@dataclass(frozen=True)
class SpeedRatio:
    """The second version's speed divided by the first's.

    ratio: median over the pairs. low, high: its 95% interval (`median_interval`). verdict: FASTER,
    SLOWER, SAME or UNCLEAR.
    """

    ratio: float
    low: float
    high: float
    verdict: str


def speed_ratio(
    baseline: Sequence[float], current: Sequence[float], tolerance: float
) -> SpeedRatio:
    """Compare the speeds of two versions, measured pair by pair.

    tolerance: a share, such as 0.03. FASTER or SLOWER: the median ratio differs from 1 by more than
    the tolerance, and the interval excludes 1. SAME: the whole interval is within the tolerance.
    Otherwise UNCLEAR: more pairs are needed.
    """
    ratios = [new / old for old, new in zip(baseline, current, strict=True)]
    ratio = statistics.median(ratios)
    low, high = median_interval(ratios)
    if ratio < 1 - tolerance and high < 1:
        verdict = SLOWER
    elif ratio > 1 + tolerance and low > 1:
        verdict = FASTER
    elif 1 - tolerance <= low and high <= 1 + tolerance:
        verdict = SAME
    else:
        verdict = UNCLEAR
    return SpeedRatio(ratio, low, high, verdict)


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return a confidence interval of the median by the sign test, for any distribution.

    Its limits are the k-th smallest and the k-th largest value, for the largest k that reaches the
    confidence. With fewer than 6 values there is none for 95%: the limits are 0 and infinity.
    """
    ordered, n = sorted(values), len(values)
    k, tail = 0, 0.5**n  # tail: probability that at most k of n values are below the median
    while 2 * tail <= 1 - confidence:
        k += 1
        tail += math.comb(n, k) * 0.5**n
    return (ordered[k - 1], ordered[n - k]) if k else (0.0, math.inf)
