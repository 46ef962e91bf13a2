"""Compares two builds by the same cells, in pairs of processes that alternate.

A pair runs a cell with both programs; which is first alternates, and their answers must be equal. A round runs a pair of
each cell, so that a change of the machine's speed meets all cells. The ratio of a pair is the time of the first program
divided by that of the second.
"""

import json
from dataclasses import dataclass, field
from typing import Any, TextIO

import numpy as np

from tierdex_driver import intervals, machine
from tierdex_driver.errors import CellFailed, Failed, Usage
from tierdex_driver.process import Program
from tierdex_driver.report import aligned

PAIRS_MIN = 6
# Rounds of all cells end when the interval of their geometric mean is at most this wide.
MEAN_WIDTH_MAX = 0.02
# Ratios from this one up to its inverse count as equal.
EQUAL_MIN = 0.97
# A cell whose interval is at most this wide is not measured again, even if it is undecided.
OPEN_WIDTH = 0.06


@dataclass
class ComparedCell:
    name: str
    json: dict[str, Any]
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        return [max(a["seconds"], 1e-9) / max(b["seconds"], 1e-9) for a, b in self.pairs]

    @property
    def speeds(self) -> list[list[float]]:
        """The queries a second of both builds."""
        return [[one["queries"] / max(one["seconds"], 1e-9) for one in build] for build in zip(*self.pairs, strict=True)]

    def is_open(self) -> bool:
        """Whether the interval is wide, and leaves open if the second build is slower by 3%."""
        low, high = intervals.interval([self.ratios])
        decides = not low <= EQUAL_MIN <= high and verdict(low, high) != "undecided"
        return not decides and high - low > OPEN_WIDTH


def verdict(low: float, high: float) -> str:
    if low >= EQUAL_MIN and high <= 1 / EQUAL_MIN:
        return "equal within 3%"
    if low > 1.0:
        return "faster"
    return "slower" if high < 1.0 else "undecided"


def read_cells(lines: TextIO) -> list[ComparedCell]:
    """Cells, one line of JSON each; each may have a member `name`."""
    cells = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise Usage(f"line {number} of the cells: {error}") from error
        if not isinstance(value, dict) or not isinstance(value.get("name", ""), str):
            raise Usage(f"line {number} of the cells is no object with a `name` that is a text")
        cells.append(ComparedCell(value.pop("name", f"cell {number}"), value))
    if not cells:
        raise Usage("there is no cell on standard input")
    return cells


def measure(program: Program, cell: dict[str, Any]) -> dict[str, Any]:
    """Runs a cell; with a limit in a control group, and with an empty page cache."""
    if cell.get("limit") is None:
        return program.run(cell)
    with machine.memory_group(machine.bytes_of(cell["limit"])) as group:
        machine.drop_page_cache()
        place = cell.get("process", {})
        return program.run(cell | {"process": place | {"join": [*place.get("join", []), str(group.procs)]}})


def measure_pair(builds: tuple[Program, Program], cell: ComparedCell, number: int) -> None:
    """Adds a pair; the first build goes first in even rounds."""
    found: dict[str, dict[str, Any]] = {}
    for build, program in list(zip("AB", builds, strict=True))[:: -1 if number % 2 else 1]:
        try:
            found[build] = measure(program, cell.json)
        except CellFailed as error:
            raise Failed(f"{cell.name}: build {build}: {error}") from error
    a, b = found["A"], found["B"]
    if a["checksum"] != b["checksum"]:
        hits = "; ".join(f"{one.get('hits')} hits, {one.get('matches')} matches" for one in (a, b))
        raise Failed(f"{cell.name}: the answers of both builds differ ({hits})")
    cell.pairs.append((a, b))


def run(builds: tuple[Program, Program], cells: list[ComparedCell], pairs: int, pairs_max: int) -> None:
    """Measures rounds of pairs until the intervals are narrow enough."""
    for number in range(pairs_max):
        every = number < pairs
        if not every:
            low, high = intervals.interval([cell.ratios for cell in cells])
            every = high - low > MEAN_WIDTH_MAX
        chosen = [cell for cell in cells if every or cell.is_open()]
        if not chosen:
            break
        for cell in chosen:
            measure_pair(builds, cell, number)


def table(cells: list[ComparedCell]) -> str:
    """A row for each cell, and one for the geometric mean of all."""
    measured = [cell for cell in cells if cell.pairs]
    rows = [row_of(cell.name, [cell], [f"{np.median(speeds):.1f}" for speeds in cell.speeds]) for cell in measured]
    rows.append(row_of("geometric mean", measured, ["-", "-"]))
    return "\n".join("  ".join(line).rstrip() for line in aligned(rows, (0, len(rows[0]) - 1)))


def row_of(name: str, cells: list[ComparedCell], speeds: list[str]) -> dict[str, str]:
    mean = intervals.geometric_mean([intervals.geometric_mean(cell.ratios) for cell in cells])
    low, high = intervals.interval([cell.ratios for cell in cells])
    pairs = sum(len(cell.pairs) for cell in cells)
    row = {"cell": name, "A, q/s": speeds[0], "B, q/s": speeds[1], "pairs": str(pairs)}
    return row | {"B / A": f"{mean:.3f}", "from": f"{low:.3f}", "to": f"{high:.3f}", "verdict": verdict(low, high)}


def row_lines(cells: list[ComparedCell]) -> str:
    """One line of JSON for each pair."""
    return "".join(json.dumps({"name": cell.name, "a": a, "b": b}) + "\n" for cell in cells for a, b in cell.pairs)
