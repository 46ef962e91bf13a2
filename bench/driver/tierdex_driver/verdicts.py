"""Verdicts: whether ratios of measurements lie within the bounds of a claim.

Each ratio is measured in several rounds, in which its two cells alternate, so that a slow minute of the machine
affects both. It has the interval of `intervals`.

A claim with several ratios agrees if the interval of each lies within the bounds. It differs if that of one lies outside,
at a level corrected for the number of ratios (Bonferroni). Verdicts are looked at twice, after 6 rounds and after 12, so
each look has half of the rate of errors of 5%. With fewer than 6 rounds a claim about times is undecided.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

from tierdex_driver import intervals
from tierdex_driver.definitions import Claim, Figure, as_text, as_texts
from tierdex_driver.errors import Failed
from tierdex_driver.store import Row

AGREES = "agrees"
DIFFERS = "differs"
UNDECIDED = "undecided"
NOT_MEASURABLE = "not measurable"

ROUNDS_MIN = 6
ROUNDS_MAX = 12
LOOKS = 2

# Measures that are counts: one round is exact.
EXACT_EXPERIMENTS = ("sizes", "explored")
EXACT_MEASURES = ("pages_read", "indexed_postings")

Point = tuple[tuple[str, str], ...]


def is_exact(experiment: str, measure: str) -> bool:
    return experiment in EXACT_EXPERIMENTS or measure in EXACT_MEASURES or measure.startswith("simulated_")


@dataclass(frozen=True)
class Ratio:
    """A measure at one point, divided by that at another: a value for each round that has both."""

    of: Point
    to: Point
    rounds: tuple[float, ...]
    exact: bool

    @property
    def mean(self) -> float:
        """The geometric mean over the rounds; 0 or infinite if one of them is."""
        special = [ratio for ratio in self.rounds if ratio in (0, math.inf)]
        return special[0] if special else intervals.geometric_mean(self.rounds)

    def interval(self, error_rate: float = intervals.ERROR_RATE) -> tuple[float, float]:
        """The interval that contains the ratio, but for this rate of errors."""
        if self.exact or {0, math.inf} & set(self.rounds):
            return min(self.rounds), max(self.rounds)
        return intervals.interval([self.rounds], error_rate)


@dataclass(frozen=True)
class Verdict:
    name: str
    ratios: tuple[Ratio, ...]
    # Ratios whose interval contains a bound: more rounds may decide them.
    open_ratios: tuple[Ratio, ...] = ()
    # The ratios outside the bounds, for which the claim differs.
    outside: tuple[Ratio, ...] = ()


def point_of(figure: Figure, row: Row) -> Point | None:
    """The value of a row for each dimension of a figure, but for a measured axis. None if one is missing."""
    plot = figure.plot
    names = [name for name in figure.dimensions if not (plot.get("measured-x") and name == plot["x"])]
    return tuple((name, as_text(row[name])) for name in names) if all(name in row for name in names) else None


def points(figure: Figure, measure: str, rows: list[Row]) -> dict[Point, dict[int, float]]:
    """The values of a measure by point and round. Rows without the measure or a dimension give none."""
    found: dict[Point, dict[int, float]] = {}
    for row in rows:
        value, point = row.get(measure), point_of(figure, row)
        if isinstance(value, int | float) and point is not None:
            values = found.setdefault(point, {})
            if values.setdefault(row["round"], float(value)) != value:
                raise Failed(f"{figure.name}: two cells have the point {dict(point)}; name what differs as a dimension")
    return found


def is_selected(point: Point, selector: dict[str, Any]) -> bool:
    values = dict(point)
    return all(values.get(name) in as_texts("", name, value) for name, value in selector.items())


def ratios(figure: Figure, claim: Claim, rows: list[Row]) -> list[Ratio]:
    """The ratios of a claim: of each two points that differ only in what the selectors of the claim name."""
    measured = points(figure, claim.measure, rows)
    among = [point for point in measured if is_selected(point, claim.where)]
    free = {*claim.of, *claim.to}
    exact = is_exact(figure.data["experiment"], claim.measure)
    found = []
    for of, to in itertools.permutations(among, 2):
        is_alike = all(one == other or one[0] in free for one, other in zip(of, to, strict=True))
        if is_alike and is_selected(of, claim.of) and is_selected(to, claim.to):
            both = sorted(measured[of].keys() & measured[to].keys())
            if both:
                rounds = tuple(quotient(measured[of][round], measured[to][round]) for round in both)
                found.append(Ratio(of, to, rounds, exact))
    return found


def quotient(one: float, other: float) -> float:
    """A ratio of two amounts: 1 of two zeros, infinite if only the second is zero."""
    if other:
        return one / other
    return math.inf if one else 1.0


def judge(figure: Figure, claim: Claim, rows: list[Row]) -> Verdict:
    """The verdict on a claim from the rows that were measured."""
    found = tuple(ratios(figure, claim, rows))
    if not found:
        return Verdict(NOT_MEASURABLE, ())
    rate = intervals.ERROR_RATE / LOOKS
    decided = [ratio for ratio in found if ratio.exact or len(ratio.rounds) >= ROUNDS_MIN]
    outside = tuple(ratio for ratio in decided if claim.excludes(*ratio.interval(rate / len(found))))
    if outside:
        return Verdict(DIFFERS, found, outside=outside)
    inside = [ratio for ratio in decided if claim.includes(*ratio.interval(rate))]
    open_ratios = tuple(ratio for ratio in found if ratio not in inside)
    return Verdict(UNDECIDED if open_ratios else AGREES, found, open_ratios)
