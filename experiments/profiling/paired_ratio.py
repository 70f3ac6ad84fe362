"""Whether one of two versions is faster, from speeds that were measured in pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FASTER, SLOWER, ALIKE, UNCLEAR = "faster", "slower", "no difference", "unclear"


@dataclass(frozen=True)
class Comparison:
    """How many times as fast the second version is: the median of the pairs, its 95% interval
    (`median_interval`), and the verdict, one of FASTER, SLOWER, ALIKE and UNCLEAR."""

    ratio: float
    low: float
    high: float
    verdict: str


def compare(before: Sequence[float], now: Sequence[float], tolerance: float) -> Comparison:
    """Compare speeds of two versions, run beside each other pair by pair.

    tolerance: a share, such as 0.03. FASTER and SLOWER: the median of the ratios differs from 1 by
    more, and the interval has 1 outside. ALIKE: the whole interval is within the tolerance. Where
    neither holds, more pairs are wanted.
    """
    ratios = [new / old for old, new in zip(before, now, strict=True)]
    ratio = statistics.median(ratios)
    low, high = median_interval(ratios)
    if ratio < 1 - tolerance and high < 1:
        verdict = SLOWER
    elif ratio > 1 + tolerance and low > 1:
        verdict = FASTER
    elif 1 - tolerance <= low and high <= 1 + tolerance:
        verdict = ALIKE
    else:
        verdict = UNCLEAR
    return Comparison(ratio, low, high, verdict)


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of the median by the sign test, whatever the distribution.

    Its limits are the k-th smallest and the k-th largest value, with the largest k that the number
    of values allows. Fewer than 6 values allow none for 95%: then they are 0 and infinity.
    """
    ordered, n = sorted(values), len(values)
    k, tail = 0, 0.5**n  # the chance that at most k of n values lie below the median
    while 2 * tail <= 1 - confidence:
        k += 1
        tail += math.comb(n, k) * 0.5**n
    return (ordered[k - 1], ordered[n - k]) if k else (0.0, math.inf)
