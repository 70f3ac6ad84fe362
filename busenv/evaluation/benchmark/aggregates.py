"""Interquartile means with stratified bootstrap intervals over a few runs.

Follows Agarwal et al. 2021 (Deep Reinforcement Learning at the Edge of the Statistical Precipice).
Their library rliable depends on statsmodels, seaborn and arch, so numpy and scipy replace it here.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import trim_mean

RESAMPLES = 2000


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """Mean of the middle half of the scores along the last axis.

    Of n scores the int(n / 4) lowest and highest are dropped: of five one each.
    """
    return trim_mean(scores, 0.25, axis=-1)


def bootstrap_interval(scores: np.ndarray) -> tuple[float, float]:
    """95% percentile interval of the interquartile mean of all scores.

    scores: (runs, tasks). Runs are resampled with replacement within each task.
    """
    runs, tasks = scores.shape
    indices = np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs, tasks))
    resampled = scores[indices, np.arange(tasks)].reshape(RESAMPLES, -1)
    low, high = np.percentile(interquartile_mean(resampled), (2.5, 97.5))
    return float(low), float(high)
