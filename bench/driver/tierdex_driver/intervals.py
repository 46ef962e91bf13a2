"""Intervals of ratios: of the bootstrap for the mean of logarithms, or of Student's t where that is wider.

Percentiles of resampled means are expanded for few rounds (Hesterberg, "What teachers should know about the bootstrap",
2015, section 3.3). They cannot lie outside the range of the rounds, however small the rate of errors, as those of
Student's t can.
"""

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
    least, rounds = min(map(len, cells)), max(map(len, cells))
    if least < 2:
        return 0.0, math.inf
    drawn = np.random.default_rng(1).random((RESAMPLES, rounds))
    logs = [np.log(ratios) for ratios in cells]
    means = np.zeros(RESAMPLES)
    for ratios in logs:
        means += ratios[(drawn[:, : len(ratios)] * len(ratios)).astype(int)].mean(axis=1)
    student = float(stats.t.ppf(1 - error_rate / 2, least - 1))
    tail = float(stats.norm.cdf(-student * math.sqrt(least / (least - 1))))
    low, high = np.quantile(means / len(cells), [tail, 1 - tail])
    mean = float(np.mean([ratios.mean() for ratios in logs]))
    # The standard error is that of the means over the cells in each round.
    by_round = np.mean([ratios[:least] for ratios in logs], axis=0)
    margin = student * float(by_round.std(ddof=1) / math.sqrt(least))
    return float(np.exp(min(low, mean - margin))), float(np.exp(max(high, mean + margin)))
