"""Verdicts: ratios of pairs of rounds, the coverage of intervals, and what decides a claim."""

from pathlib import Path

import numpy as np
import pytest
from test_definitions import read

from tierdex_driver import verdicts
from tierdex_driver.definitions import Figure
from tierdex_driver.store import Row
from tierdex_driver.verdicts import Ratio

POINT = (("mode", "base"),)


def rows(values: dict[tuple[str, int], list[float]]) -> list[Row]:
    return [
        {"mode": mode, "size": size, "qps": value, "round": round}
        for (mode, size), measured in values.items()
        for round, value in enumerate(measured, 1)
    ]


@pytest.fixture
def figure(tmp_path: Path) -> Figure:
    return read(tmp_path)[0]


def test_ratios_pair_the_rounds_of_points_that_differ_in_the_selected_field(figure: Figure) -> None:
    measured = rows({("base", 5): [1, 2, 4], ("direct", 5): [2, 2, 2], ("direct", 10): [1, 1, 1]})
    found = verdicts.ratios(figure, figure.claims[0], measured)
    assert [(ratio.of, ratio.rounds) for ratio in found] == [((("mode", "base"), ("size", "5")), (0.5, 1.0, 2.0))]


def test_the_verdict_follows_from_the_interval(figure: Figure) -> None:
    def judged(base: list[float]) -> str:
        measured = rows({("base", 5): base, ("direct", 5): [10.0] * len(base)})
        return verdicts.judge(figure, figure.claims[0], measured).name

    assert judged([5, 5.2, 4.9, 5.1, 5, 5.3]) == verdicts.AGREES
    assert judged([15, 15.2, 14.9, 15.1, 15, 15.3]) == verdicts.DIFFERS
    assert judged([9, 10.5, 9.5, 11, 10.4, 9.2]) == verdicts.UNDECIDED
    # Few rounds say nothing of a rate.
    assert judged([5, 5, 5, 5, 5]) == verdicts.UNDECIDED
    assert verdicts.judge(figure, figure.claims[0], []).name == verdicts.NOT_MEASURABLE


@pytest.mark.parametrize("rounds", [6, 12])
def test_the_interval_of_noisy_rounds_contains_the_ratio_as_often_as_it_says(rounds: int) -> None:
    generator = np.random.default_rng(7)
    trials = 400
    hits = 0
    for _ in range(trials):
        noisy = np.exp(generator.normal(0.0, 0.1, rounds))
        low, high = Ratio(POINT, POINT, tuple(noisy), False).interval()
        hits += low <= 1.0 <= high
    # 95%, less three standard deviations of 400 trials.
    assert hits / trials >= 0.915


def test_claims_with_several_ratios_at_the_bound_seldom_differ(figure: Figure) -> None:
    generator = np.random.default_rng(3)
    trials, ratios = 200, 5
    differ = 0
    for _ in range(trials):
        noisy = np.exp(generator.normal(0.0, 0.1, (ratios, 6)))
        measured = [
            {"mode": mode, "size": size, "qps": float(value) if mode == "base" else 1.0, "round": round}
            for mode in ("base", "direct")
            for size, values in enumerate(noisy)
            for round, value in enumerate(values, 1)
        ]
        differ += verdicts.judge(figure, figure.claims[0], measured).name == verdicts.DIFFERS
    # 1.25% above the bound in one of two looks, and three standard deviations.
    assert differ / trials <= 0.04


def test_exact_measures_need_one_round() -> None:
    assert Ratio(POINT, POINT, (0.5,), True).interval() == (0.5, 0.5)
    assert verdicts.is_exact("sizes", "docs_bytes") and verdicts.is_exact("intersect", "pages_read")
    assert not verdicts.is_exact("queries", "qps")
