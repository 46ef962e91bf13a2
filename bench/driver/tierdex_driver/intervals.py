"""Intervals of ratios: the expanded percentile interval of the bootstrap for the mean of logarithms.

Percentiles of resampled means are taken so far out that the interval is as wide as that of Student's t for this number of
rounds (Hesterberg, "What teachers should know about the bootstrap", 2015, section 3.3): plain percentiles of six rounds
are too narrow by a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

ERROR_RATE = 0.05
RESAMPLES = 10_000


def geometric_mean(ratios: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def interval(cells: Sequence[Sequence[float]], error_rate: float = ERROR_RATE) -> tuple[float, float]:
    """The interval of the geometric mean of the geometric means of cells, each with a ratio for each of its rounds.

    A resample draws rounds, the same for all cells that have equally many: what is measured in one round shares the state
    of the machine. From 0 to infinity if a cell has one round.
    """
    rounds = max(len(ratios) for ratios in cells)
    least = min(len(ratios) for ratios in cells)
    if least < 2:
        return 0.0, math.inf
    drawn = np.random.default_rng(1).random((RESAMPLES, rounds))
    means = np.zeros(RESAMPLES)
    for ratios in cells:
        logs = np.log(ratios)
        means += logs[(drawn[:, : len(logs)] * len(logs)).astype(int)].mean(axis=1)
    wide = stats.t.ppf(error_rate / 2, least - 1) * math.sqrt(least / (least - 1))
    tail = float(stats.norm.cdf(wide))
    low, high = np.quantile(means / len(cells), [tail, 1 - tail])
    return float(np.exp(low)), float(np.exp(high))
