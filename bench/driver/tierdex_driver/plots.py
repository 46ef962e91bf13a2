"""Plots of figures, with the axes of the papers."""

from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from tierdex_driver import verdicts
from tierdex_driver.definitions import Figure, as_text
from tierdex_driver.store import Row

# Texts as texts: as outlines they would be most of a file.
plt.rcParams["svg.fonttype"] = "none"

PANEL_WIDTH, PANEL_HEIGHT = 4.2, 3.2
COLUMNS = 3
MARKERS = "osD^vPX*<>"


def frame(figure: Figure, rows: list[Row]) -> pd.DataFrame:
    """One line for each point, measure and round: dimensions as text, `measure`, `round`, `value`."""
    plot, found = figure.plot, []
    for row in rows:
        point = verdicts.point_of(figure, row)
        if point is not None and plot["x"] in row:
            same = dict(point) | {plot["x"]: as_text(row[plot["x"]]), "round": row["round"]}
            values = {measure: row.get(measure) for measure in plot["y"]}
            numbers = {measure: value for measure, value in values.items() if isinstance(value, int | float)}
            factor = plot.get("factor", 1.0)
            found += [same | {"measure": measure, "value": value * factor} for measure, value in numbers.items()]
    return pd.DataFrame(found)


def draw(figure: Figure, rows: list[Row], path: Path) -> bool:
    """Writes the plot of a figure as SVG. Lines are medians over the rounds, bars the range. False without points."""
    data = frame(figure, rows)
    if data.empty:
        return False
    plot = figure.plot
    labels = plot["y-label"].split("; ")
    own_axes = len(labels) == len(plot["y"]) > 1
    panel_names = [*plot.get("panels", []), *(["measure"] if own_axes else [])]
    line_names = [*plot.get("lines", []), *(["measure"] if len(plot["y"]) > 1 and not own_axes else [])]
    panels = groups(data, panel_names)
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    size = (PANEL_WIDTH * columns, PANEL_HEIGHT * lines)
    drawing, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (name, panel) in zip(axes.flat, panels, strict=False):
        draw_panel(axis, figure, panel, line_names)
        axis.set_title(panel_title(dict(zip(panel_names, name, strict=True))), fontsize=9)
        axis.set_ylabel(labels[plot["y"].index(name[-1])] if own_axes else plot["y-label"], fontsize=8)
    drawing.suptitle(figure.data["title"], fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, metadata={"Date": None})
    plt.close(drawing)
    return True


def panel_title(values: dict[str, str]) -> str:
    """The values that name a panel; numbers with the name of the setting."""
    shown = [(name, value) for name, value in values.items() if name != "measure" and value]
    return ", ".join(f"{name.replace('_', ' ')} {value}" if is_number(value) else value for name, value in shown)


def groups(data: pd.DataFrame, names: list[str]) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
    """The parts of the data by the values of some columns, in the order of the rows."""
    if not names:
        return [((), data)]
    return [(tuple(map(str, key)), part) for key, part in data.groupby(names, sort=False)]


def draw_panel(axis: Axes, figure: Figure, panel: pd.DataFrame, line_names: list[str]) -> None:
    plot = figure.plot
    xs = list(dict.fromkeys(panel[plot["x"]]))
    numbers = all(is_number(x) for x in xs)
    single = bool(line_names) and all(len(line.groupby(plot["x"])) == 1 for _, line in groups(panel, line_names))
    for marker, (name, line) in zip(cycle(MARKERS), groups(panel, line_names), strict=False):
        places = line[plot["x"]].map(float if numbers else xs.index)
        rounds = line["value"].groupby(places).agg(["median", "min", "max"])
        middle, label = rounds["median"], " ".join(part for part in name if part)
        bars = [middle - rounds["min"], rounds["max"] - middle]
        axis.errorbar(middle.index, middle, bars, marker=marker, ms=4, lw=1.2, capsize=2, label=label)
        if single:
            axis.annotate(label, (middle.index[0], middle.iloc[0]), xytext=(4, 2), textcoords="offset points", fontsize=5)
    if not numbers:
        axis.set_xticks(range(len(xs)), xs, rotation=30, ha="right", fontsize=7)
    if plot.get("logarithmic"):
        axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel(plot["x-label"], fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)
    if line_names and not single:
        axis.legend(fontsize=6)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
