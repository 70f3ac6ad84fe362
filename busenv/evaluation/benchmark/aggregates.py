"""Means over a few runs, with bootstrap intervals.

Follows Agarwal et al. 2021 (Deep Reinforcement Learning at the Edge of the Statistical Precipice)
in resampling runs, but takes plain means: an interquartile mean of five runs or fewer is the mean
of at most three.
"""

from __future__ import annotations

import numpy as np

from busenv.common.intervals import format_bounds

RESAMPLES = 2000


def bootstrap_interval(scores: np.ndarray) -> tuple[float, float]:
    """95% percentile interval of the mean of the runs' scores: (runs,)."""
    runs = len(scores)
    indices = np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs))
    low, high = np.percentile(scores[indices].mean(axis=1), (2.5, 97.5))
    return float(low), float(high)


def format_mean(scores: np.ndarray) -> str:
    """Format the mean of the runs' scores in percent, with its interval if there are several.

    scores: (runs,), from 0 to 1.
    """
    mean = f"{scores.mean():.1%}"
    return mean if len(scores) == 1 else f"{mean} {format_bounds(*bootstrap_interval(scores))}"
