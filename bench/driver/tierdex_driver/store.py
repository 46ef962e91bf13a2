"""Finished measurements: a file of JSON lines, one for each cell and round, so that an interrupted run continues."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tierdex_driver import machine
from tierdex_driver.definitions import Cell
from tierdex_driver.errors import CellFailed, Failed, Usage

Row = dict[str, Any]


class Store:
    """The measurements of a run. The first line of the file says what must be equal for them to be compared."""

    def __init__(self, path: Path, header: dict[str, Any]):
        """Opens or creates the file, and locks it. A torn last line, of a run that was killed, is dropped.

        Raises Usage if the file is of another program or machine, or another run writes it.
        """
        self.lines: dict[tuple[str, int], dict[str, Any]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b")
        machine.lock(self._file, Usage(f"another run writes {path}; choose another directory by --out"))
        self._file.seek(0)
        whole, _, torn = self._file.read().rpartition(b"\n")
        if torn:
            self._file.truncate(len(whole) + bool(whole))
        texts = whole.split(b"\n") if whole else []
        for number, text in enumerate(texts, 1):
            try:
                line = json.loads(text)
                if number == 1:
                    found = line
                else:
                    self.lines[line["cell"], line["round"]] = line
            except (ValueError, KeyError, TypeError) as error:
                raise Failed(f"{path}: line {number} is malformed; remove the file to measure again") from error
        if not texts:
            self._write(header)
        elif different := sorted(name for name in found.keys() | header.keys() if found.get(name) != header.get(name)):
            raise Usage(f"{path} has measurements with another {', '.join(different)}; choose another directory by --out")

    def measure(self, cell: Cell, round: int, rows_of: Callable[[], list[Row]]) -> dict[str, Any]:
        """Measures a cell in a round. Returns the line that is stored: with the rows, or why it failed."""
        began = time.monotonic()
        try:
            found: list[Row] | str = rows_of()
        except CellFailed as error:
            found = str(error)
        return self.add(cell, round, time.monotonic() - began, found)

    def add(self, cell: Cell, round: int, seconds: float, found: list[Row] | str) -> dict[str, Any]:
        """Stores the rows of a cell in a round, or why it failed. Replaces an earlier failure."""
        line = {"cell": str(cell), "round": round, "seconds": float(f"{seconds:.6g}")}
        line |= {"failed" if isinstance(found, str) else "rows": found}
        self._write(line)
        self.lines[str(cell), round] = line
        return line

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def has(self, cell: Cell, round: int) -> bool:
        """Whether a cell was measured in a round. A cell that failed is measured again by the next run."""
        return "rows" in self.lines.get((str(cell), round), {})

    def rounds(self, cell: Cell) -> list[int]:
        return sorted(round for name, round in self.lines if name == str(cell) and self.has(cell, round))

    def rows(self, cell: Cell) -> list[Row]:
        """The rows of a cell in all rounds, each with the settings of the cell and its round."""
        return [
            dict(cell.settings) | row | {"round": round}
            for round in self.rounds(cell)
            for row in self.lines[str(cell), round]["rows"]
        ]

    def failures(self, cells: list[Cell]) -> list[str]:
        """Why measurements of these cells failed."""
        names = {str(cell) for cell in cells}
        return [line["failed"] for (name, _), line in self.lines.items() if name in names and "failed" in line]

    def failure(self, cell: Cell) -> str | None:
        """Why a cell failed, if it has no rows."""
        return None if self.rounds(cell) else next(iter(self.failures([cell])), None)
