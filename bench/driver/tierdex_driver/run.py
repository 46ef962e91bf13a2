"""The rounds of a run: the cells of one figure after the other, and backwards in every second round.

So the cells that a ratio compares are measured within seconds of each other, unless an earlier figure has one of them, and
neither always comes first. At the scales `machine` and `full` cells with times have at least 6 rounds, and those of ratios
that are undecided then have 12.
"""

from dataclasses import dataclass
from functools import partial

import click

from tierdex_driver import verdicts
from tierdex_driver.definitions import Cell, Figure
from tierdex_driver.errors import Failed
from tierdex_driver.measure import Context, Missing, measure
from tierdex_driver.store import Row, Store

# Fields that determine the answers to the queries of a row.
QUERY_FIELDS = (
    "index", "docs", "postings", "vocabulary", "class", "shape", "repeats", "count", "queries", "k", "exhaustive",
    "ids-only", "k1", "b",
)  # fmt: skip


@dataclass
class Run:
    """Measures what is missing in a store."""

    context: Context
    missing: Missing
    store: Store
    scale: str

    def measure(self, figures: list[Figure]) -> None:
        """Measures all rounds of all figures."""
        for figure in figures:
            cells = {cell: count for cell, count in figure.cells(self.scale).items() if not self.missing.of(cell)}
            for cell in cells:
                if self.scale != "small" and cell.experiment not in verdicts.EXACT_EXPERIMENTS:
                    cells[cell] = max(cells[cell], verdicts.ROUNDS_MIN)
            for round in range(1, max(cells.values(), default=0) + 1):
                self._measure_round(figure, [cell for cell, count in cells.items() if count >= round], round)
            if self.scale != "small":
                self._decide(figure, cells)

    def _decide(self, figure: Figure, cells: dict[Cell, int]) -> None:
        """Measures more rounds of the cells whose ratios are undecided."""
        rows = [row for cell in cells for row in self.store.rows(cell) if row["round"] <= verdicts.ROUNDS_MIN]
        ratios = (ratio for claim in figure.claims for ratio in verdicts.judge(figure, claim, rows).open_ratios)
        points = {point for ratio in ratios if not ratio.exact for point in (ratio.of, ratio.to)}
        left = [cell for cell in cells if any(verdicts.point_of(figure, row) in points for row in self.store.rows(cell))]
        for round in range(verdicts.ROUNDS_MIN + 1, verdicts.ROUNDS_MAX + 1):
            self._measure_round(figure, left, round)

    def _measure_round(self, figure: Figure, cells: list[Cell], round: int) -> None:
        left = [cell for cell in cells if not self.store.has(cell, round)]
        for number, cell in enumerate(left if round % 2 else left[::-1], 1):
            line = self.store.measure(cell, round, partial(measure, cell, self.context))
            seconds, why = line["seconds"], f": {line['failed']}" if "failed" in line else ""
            click.echo(f"{figure.name} round {round}, {number} of {len(left)}, {seconds:.1f} s: {cell}{why}")

    def check(self, figures: list[Figure]) -> None:
        """Raises Failed if answers to the same queries differ, or a measurement failed."""
        cells = list(dict.fromkeys(cell for figure in figures for cell in figure.cells(self.scale)))
        if different := different_answers([row for cell in cells for row in self.store.rows(cell)]):
            raise Failed(f"wrong answers: {different}")
        if failures := self.store.failures(cells):
            raise Failed(f"{len(failures)} measurements failed, the first one: {failures[0]}")


def different_answers(rows: list[Row]) -> str | None:
    """The first two rows with the same queries over the same documents and different answers."""
    first: dict[tuple[str, ...], Row] = {}
    for row in rows:
        queries = tuple(str(row.get(field)) for field in QUERY_FIELDS)
        if "checksum" in row and (other := first.setdefault(queries, row))["checksum"] != row["checksum"]:
            names = [f"mode {one.get('mode')} with codec {one.get('codec')}" for one in (other, row)]
            return f"{names[0]} and {names[1]} differ for {' '.join(queries)}"
    return None
