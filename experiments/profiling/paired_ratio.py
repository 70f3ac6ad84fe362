"""The ratio of two versions' speeds, from runs in pairs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import quantile_test

FASTER, SLOWER, SAME, UNCLEAR = "faster", "slower", "no difference", "unclear"


@dataclass(frozen=True)
class SpeedRatio:
    """The second version's speed divided by the first's.

    ratio: median over the pairs. low, high: its 95% interval by the sign test, for any
    distribution; NaN for fewer than 6 pairs. verdict: FASTER, SLOWER, SAME or UNCLEAR.
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
    low, high = quantile_test(ratios).confidence_interval()
    if ratio < 1 - tolerance and high < 1:
        verdict = SLOWER
    elif ratio > 1 + tolerance and low > 1:
        verdict = FASTER
    elif 1 - tolerance <= low and high <= 1 + tolerance:
        verdict = SAME
    else:
        verdict = UNCLEAR
    return SpeedRatio(ratio, low, high, verdict)
