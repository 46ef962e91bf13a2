"""Plots of figures, with the axes of the papers."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from tierdex_driver.definitions import Figure, as_text
from tierdex_driver.store import Row

# Texts as texts: as outlines they would be most of a file.
plt.rcParams["svg.fonttype"] = "none"

PANEL_WIDTH, PANEL_HEIGHT = 4.2, 3.2
COLUMNS = 3
MARKERS = "osD^vPX*<>"


def frame(figure: Figure, rows: list[Row]) -> pd.DataFrame:
    """One line for each point, measure and round: dimensions as text, `measure`, `round`, `value`."""
    plot = figure.plot
    found = []
    for row in rows:
        if all(name in row for name in figure.dimensions):
            point = {name: "" if row[name] is None else as_text(row[name]) for name in figure.dimensions}
            values = ((measure, row.get(measure)) for measure in plot["y"])
            found += [
                point | {"measure": measure, "round": row["round"], "value": value * plot.get("factor", 1.0)}
                for measure, value in values
                if isinstance(value, int | float)
            ]
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
    for number, (name, line) in enumerate(groups(panel, line_names)):
        by_x = line.groupby(plot["x"], sort=False)["value"]
        middle, low, high = by_x.median(), by_x.min(), by_x.max()
        places = np.array([float(x) if numbers else xs.index(x) for x in middle.index])
        order = np.argsort(places)
        spread = np.array([middle - low, high - middle])[:, order]
        marker = MARKERS[number % len(MARKERS)]
        label = " ".join(part for part in name if part)
        axis.errorbar(places[order], middle.to_numpy()[order], spread, marker=marker, ms=4, lw=1.2, capsize=2, label=label)
        if single:
            axis.annotate(label, (places[0], middle.iloc[0]), xytext=(4, 2), textcoords="offset points", fontsize=5)
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
