"""Numbers over a few runs: interquartile means with stratified bootstrap intervals, as Agarwal et
al. 2021 (Deep Reinforcement Learning at the Edge of the Statistical Precipice) advise.

A few lines of numpy, since their library rliable brings statsmodels, seaborn and arch along.
"""

from __future__ import annotations

import numpy as np

RESAMPLES = 2000
TRIMMED = 0.25  # share of the scores that is left out at either end


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """The mean of the middle half of the scores along the last axis.

    Of n scores int(n / 4) are left out at either end: of five the best and the worst.
    """
    ordered = np.sort(scores, axis=-1)
    left_out = int(TRIMMED * ordered.shape[-1])
    return ordered[..., left_out : ordered.shape[-1] - left_out].mean(axis=-1)


def bootstrap_interval(scores: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Where the interquartile mean of all scores lies, with 95% confidence, by percentiles.

    scores: (runs, tasks). Runs are drawn anew with replacement, for each task by itself.
    """
    runs, tasks = scores.shape
    drawn = np.random.default_rng(seed).integers(runs, size=(RESAMPLES, runs, tasks))
    resampled = scores[drawn, np.arange(tasks)].reshape(RESAMPLES, -1)
    low, high = np.percentile(interquartile_mean(resampled), (2.5, 97.5))
    return float(low), float(high)
