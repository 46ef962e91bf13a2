"""Experiments as data: TOML files of figures, and the cells that a figure measures.

A file names an experiment or paper and has one table for each figure. Settings come in layers, of which a later one
replaces an earlier one: the file's, the file's at a scale, the figure's, the figure's at a scale, and those of a group
of cells, again at a scale. A setting with a list of values gives a cell for each of them. `docs/experiments/driver.md`
is the guide.
"""

import itertools
import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from tierdex_driver.errors import Usage

SCALES = ("small", "machine", "full")
EXPERIMENTS = ("queries", "explored", "sizes", "indexing", "codecs", "intersect", "policies")
DIRECTORY = Path(__file__).parent / "definitions"
# Settings that describe a generated index.
GENERATED = ("docs", "postings", "vocabulary", "codec", "ids-only")

# Measures of counters that a simulation has exactly, by the names of its own.
SIMULATED = {"instructions": "simulated_instructions", "llc_mpki": "simulated_ll_mpki"}

# The members of each table, and the types of their values.
FILE = {"name": str, "title": str, "controls": object, "postings": float, "settings": dict, "scale": dict, "figure": list}
FIGURE = {
    "name": str, "title": str, "found": str, "differences": str, "experiment": str, "settings": dict, "scale": dict,
    "cells": list, "plot": dict, "expect": list,
}  # fmt: skip
GROUP = {"settings": dict, "scale": dict}
PLOT = {
    "x": str, "x-label": str, "measured-x": object, "logarithmic": object, "y": list, "y-label": str, "factor": float,
    "lines": list, "panels": list, "simulated": dict,
}  # fmt: skip
CLAIM = {
    "claim": str, "paper": str, "measure": str, "of": dict, "to": dict, "where": dict, "at-least": float, "at-most": float,
    "because": str, "control": str, "by-construction": object,
}  # fmt: skip
KINDS = {str: "a text", dict: "a table", list: "a list", float: "a number", object: "a value"}


@dataclass(frozen=True)
class Cell:
    """One measurement: an experiment and a value for each of its settings, as text."""

    experiment: str
    settings: tuple[tuple[str, str], ...]

    def get(self, name: str, default: str = "") -> str:
        return dict(self.settings).get(name, default)

    def __str__(self) -> str:
        """The experiment and the settings. Cells with equal texts are equal."""
        return " ".join([self.experiment, *(f"{name}={value}" for name, value in self.settings)])


@dataclass(frozen=True)
class Claim:
    """A claim of a paper as a range of ratios: a measure of the points `of`, divided by that of the points `to`."""

    text: str
    paper: str
    measure: str
    of: dict[str, Any] = field(default_factory=dict)
    to: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Any] = field(default_factory=dict)
    at_least: float = -math.inf
    at_most: float = math.inf
    because: str = ""
    control: str = ""
    by_construction: bool = False

    def includes(self, low: float, high: float) -> bool:
        return self.at_least <= low and high <= self.at_most

    def excludes(self, low: float, high: float) -> bool:
        return high < self.at_least or low > self.at_most

    def condition(self) -> str:
        """The condition in words: `qps of mode=direct, divided by that of mode=base: at least 1`."""
        text = f"{self.measure} of {selector_text(self.of)}, divided by that of {selector_text(self.to)}"
        if self.where:
            text += f", where {selector_text(self.where)}"
        ends = (("at least", self.at_least), ("at most", self.at_most))
        return f"{text}: {', '.join(f'{words} {end:g}' for words, end in ends if math.isfinite(end))}"


@dataclass(frozen=True)
class Figure:
    """A table or figure of a paper, or an experiment of this project."""

    paper: dict[str, Any]
    data: dict[str, Any]
    claims: tuple[Claim, ...] = ()
    # An existing index, in place of the generated ones.
    index: str | None = None

    @property
    def name(self) -> str:
        return f"{self.paper['name']}/{self.data['name']}"

    @property
    def is_control(self) -> bool:
        return bool(self.paper.get("controls"))

    @property
    def plot(self) -> dict[str, Any]:
        plot: dict[str, Any] = self.data["plot"]
        return plot

    @property
    def dimensions(self) -> list[str]:
        """The fields by which points differ: panels, lines, and the horizontal axis."""
        return [*self.plot.get("panels", []), *self.plot.get("lines", []), self.plot["x"]]

    def simulated(self) -> Self:
        """The figure with the axis that a simulation has. Claims about what it does not count stay unchecked."""
        plot = {name: value for name, value in self.plot.items() if name != "simulated"} | self.plot["simulated"]
        claims = (replace(claim, measure=SIMULATED.get(claim.measure, claim.measure)) for claim in self.claims)
        return replace(self, data=self.data | {"plot": plot}, claims=tuple(claims))

    def cells(self, scale: str) -> dict[Cell, int]:
        """The cells at a scale, and the number of rounds that the definition asks for."""
        cells: dict[Cell, int] = {}
        for group in self.data.get("cells", [{}]):
            settings: dict[str, list[str]] = {}
            for layer in (self.paper, self.data, group):
                for values in (layer.get("settings", {}), layer.get("scale", {}).get(scale, {})):
                    settings |= {name: as_texts(self.name, name, value) for name, value in values.items()}
            named = sorted((name, values) for name, values in settings.items() if values)
            for combination in itertools.product(*(values for _, values in named)):
                one = dict(zip((name for name, _ in named), combination, strict=True))
                rounds = one.pop("rounds", "1")
                if not rounds.isdigit() or int(rounds) == 0:
                    raise Usage(f"{self.name}: `rounds` is {rounds}, and must be a number from 1 on")
                if self.index:
                    one = {name: one[name] for name in one if name not in GENERATED} | {"index": self.index}
                cell = Cell(self.data["experiment"], tuple(one.items()))
                cells[cell] = max(int(rounds), cells.get(cell, 0))
        self._check_points(cells)
        return cells

    def _check_points(self, cells: dict[Cell, int]) -> None:
        """Rejects two cells at one point before they are measured; dimensions that are measured are not known yet."""
        found: dict[tuple[str, ...], Cell] = {}
        for cell in cells:
            settings = dict(cell.settings)
            if all(name in settings for name in self.dimensions):
                other = found.setdefault(tuple(settings[name] for name in self.dimensions), cell)
                if other is not cell:
                    differ = sorted(dict(set(cell.settings) ^ set(other.settings)))
                    raise Usage(f"{self.name}: cells differ in {', '.join(differ)} only; name that as a dimension")


def as_text(value: Any) -> str:
    """A value as the text of a setting: `true` for True, `5` for 5.0, none for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def as_texts(where: str, name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, dict | list) for one in values):
        raise Usage(f"{where}: `{name}` is neither a value nor a list of values")
    return [as_text(one) for one in values]


def selector_text(selector: dict[str, Any]) -> str:
    texts = (f"{name}={'|'.join(as_texts('', name, value))}" for name, value in selector.items())
    return " ".join(texts) or "the others"


def check_members(where: str, table: Any, known: Mapping[str, type], needed: tuple[str, ...] = ()) -> None:
    if not isinstance(table, dict):
        raise Usage(f"{where}: {table!r} is no table")
    for name, value in table.items():
        if name not in known:
            raise Usage(f"{where}: there is no member `{name}`; the members are {', '.join(sorted(known))}")
        if not isinstance(value, (int, float) if known[name] is float else known[name]) or value == []:
            raise Usage(f"{where}: `{name}` is {value!r}, and must be {KINDS[known[name]]}")
    if missing := [name for name in needed if name not in table]:
        raise Usage(f"{where}: `{missing[0]}` is missing")


def read_claim(where: str, table: dict[str, Any], figure: Figure) -> Claim:
    check_members(where, table, CLAIM, ("claim", "paper"))
    selectors = [table.get(name, {}) for name in ("of", "to", "where")]
    for name in itertools.chain(*selectors):
        if name not in figure.dimensions:
            raise Usage(f"{where}: `{name}` is no dimension of the figure ({', '.join(figure.dimensions)})")
    if "at-least" not in table and "at-most" not in table:
        raise Usage(f"{where}: neither `at-least` nor `at-most`")
    if "control" in table and "because" not in table:
        raise Usage(f"{where}: a control without the reason (`because`) that it tests")
    members = {"measure": figure.plot["y"][0]} | {name.replace("-", "_"): value for name, value in table.items()}
    return Claim(members.pop("claim"), **members)


def read_figure(where: str, paper: dict[str, Any], table: dict[str, Any]) -> Figure:
    check_members(where, table, FIGURE, ("name", "title", "found", "experiment", "plot"))
    where = f"{where}, figure {table['name']}"
    if table["experiment"] not in EXPERIMENTS:
        raise Usage(f"{where}: `experiment` is one of {', '.join(EXPERIMENTS)}, not {table['experiment']}")
    check_members(f"{where}, plot", table["plot"], PLOT, ("x", "x-label", "y", "y-label"))
    groups = table.get("cells", [])
    for group in groups:
        check_members(f"{where}, cells", group, GROUP)
    for layer in (table, *groups):
        check_members(f"{where}, scale", layer.get("scale", {}), dict.fromkeys(SCALES, dict))
    figure = Figure(paper, table)
    return replace(figure, claims=tuple(read_claim(f"{where}, expect", one, figure) for one in table.get("expect", [])))


def read_file(path: Path) -> list[Figure]:
    """The figures of a file.

    Raises Usage if it cannot be read or is malformed.
    """
    try:
        paper = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Usage(f"{path}: {error}") from error
    check_members(str(path), paper, FILE, ("name", "title", "figure"))
    check_members(f"{path}, scale", paper.get("scale", {}), dict.fromkeys(SCALES, dict))
    figures = [read_figure(str(path), paper, table) for table in paper["figure"]]
    name, count = Counter(figure.name for figure in figures).most_common(1)[0]
    if count > 1:
        raise Usage(f"{path}: there are two figures `{name}`")
    for figure in figures:
        for scale in SCALES:
            figure.cells(scale)
    return figures


def read_all() -> list[Figure]:
    """All figures of the files that belong to the driver."""
    figures = [figure for path in sorted(DIRECTORY.glob("*.toml")) for figure in read_file(path)]
    names = {figure.name for figure in figures}
    for claim in (claim for figure in figures for claim in figure.claims):
        if claim.control and claim.control not in names:
            raise Usage(f"there is no figure `{claim.control}`, which is named as a control")
    return figures


def select(figures: list[Figure], names: tuple[str, ...]) -> list[Figure]:
    """The figures of `names`: names of figures or of papers, `all`, or paths of files of definitions."""
    chosen: list[Figure] = []
    for name in names:
        if name.endswith(".toml"):
            found = read_file(Path(name))
            if taken := {figure.name for figure in found} & {figure.name for figure in figures}:
                raise Usage(f"{name}: `{min(taken)}` is the name of a figure of a paper; choose another")
        else:
            found = [figure for figure in figures if name in ("all", figure.paper["name"], figure.name)]
        if not found:
            raise Usage(f"`{name}` is no table or figure; `tierdex-bench paper --list` names all of them")
        chosen += [figure for figure in found if figure not in chosen]
    return chosen
