"""The tables of a comparison, from the rows of its store.

Queries a second are medians over rounds. A ratio is the geometric mean over rounds of the queries a second of tierdex
divided by those of another engine in the same round, with its 95% interval.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tierdex_driver.intervals import geometric_mean, interval
from tierdex_driver.peers import check, limit
from tierdex_driver.peers.recipes import GROUPS
from tierdex_driver.peers.rounds import FIRST, Case, Party
from tierdex_driver.peers.text import Corpus
from tierdex_driver.report import aligned
from tierdex_driver.store import Row, Store

OURS = "tierdex"
# Heading, digits and unit of the numbers of a column.
Columns = dict[str, tuple[str, int, float]]
INDEXING: Columns = {
    "cpu": ("CPU s", 2, 1), "speed": ("MB/s of CPU", 1, 1e6), "wall": ("clock s", 2, 1), "peak": ("peak memory MB", 0, 1e6),
    "bytes": ("index MB", 1, 1e6), "ratio": ("ratio", 2, 1),
}  # fmt: skip
LIMITED: Columns = {
    "qps": ("queries/s", 0, 1), "p50_ns": ("p50 ms", 2, 1e6), "p99_ns": ("p99 ms", 2, 1e6),
    "fetched": ("MB read a query", 3, 1e6), "limit": ("limit MB", 1, 1e6), "peak": ("peak MB", 1, 1e6),
    "own": ("own MB", 1, 1e6),
}  # fmt: skip


class Comparison:
    """The engines at one command on one set: their rows, and their queries a second, with a line for each round."""

    def __init__(self, store: Store, party: Party, case: Case):
        self.case = case
        found = {name: [row for row in store.rows(case.cell(name)) if row["round"] != FIRST] for name in party.names}
        self.rows = {name: rows for name, rows in found.items() if rows}
        qps = {name: {row["round"]: row["qps"] for row in rows} for name, rows in self.rows.items()}
        self.qps = pd.DataFrame(qps).sort_index()
        self.medians = self.qps.median()
        differ = {name for name in qps for row in store.rows(check.cell(case.set, name)) if row["differ"]}
        peers = [name for name in qps if not name.startswith(OURS) and name not in differ]
        self.best = max(peers, key=lambda name: self.medians[name], default="-")

    def ratios(self, to: str) -> list[float]:
        """The ratio of each round in which both were measured."""
        return list((self.qps[OURS] / self.qps[to]).dropna()) if {OURS, to} <= self.rows.keys() else []


def every(store: Store, corpus: Corpus, parties: list[Party], indexes: pd.DataFrame) -> list[str]:
    """All tables that have rows."""
    found = [Comparison(store, party, case) for party in parties for case in party.cases]
    found = [one for one in found if one.rows]
    tables = [indexing(corpus, indexes)]
    for threads in dict.fromkeys(one.case.threads for one in found):
        chosen = [one for one in found if one.case.threads == threads]
        title = f"{threads} thread{'s' if threads > 1 else ''}"
        tables += [speeds(title, chosen), *(means(title, chosen, group) for group in GROUPS)]
    return [table for table in [*tables, under_limit(store, found), agreement(store, parties)] if table]


def table(title: str, about: str, rows: list[dict[str, str]], left: int = 1) -> str:
    """Markdown with padded columns, so that it can be read in a terminal as well; the first columns are of text."""
    if not rows:
        return ""
    heading, *padded = aligned(rows, range(left))
    rule = ["-" * len(text) if at < left else "-" * (len(text) - 1) + ":" for at, text in enumerate(heading)]
    lines = [f"| {' | '.join(row)} |" for row in (heading, rule, *padded)]
    return "\n".join([f"## {title}", "", about, "", *lines, ""])


def number(value: Any, digits: int = 0, unit: float = 1.0) -> str:
    return "-" if value is None or pd.isna(value) else f"{value / unit:.{digits}f}"


def texts(columns: Columns, values: Mapping[Any, Any]) -> dict[str, str]:
    return {heading: number(values[name], digits, unit) for name, (heading, digits, unit) in columns.items()}


def ratio_texts(cells: Sequence[list[float]]) -> tuple[str, str]:
    """The geometric mean of the ratios of cells, and its interval."""
    cells = [ratios for ratios in cells if ratios]
    if not cells:
        return "-", "-"
    low, high = interval(cells)
    return number(geometric_mean([geometric_mean(ratios) for ratios in cells]), 2), f"{low:.2f} to {high:.2f}"


def names_of(found: list[Comparison]) -> list[str]:
    return list(dict.fromkeys(name for one in found for name in one.rows))


def indexing(corpus: Corpus, indexes: pd.DataFrame) -> str:
    ours = indexes[indexes["kind"] == OURS].drop_duplicates("tail").set_index("tail")["cpu"]
    frame = indexes.assign(speed=corpus.bytes / indexes["cpu"], ratio=indexes["cpu"] / indexes["tail"].map(ours))
    about = "Medians over rounds. The ratio is the CPU time divided by that of tierdex."
    return table("Indexing", about, [{"index": row["index"]} | texts(INDEXING, row) for row in frame.to_dict("records")])


def speeds(title: str, found: list[Comparison]) -> str:
    names = names_of(found)
    rows = []
    for one in found:
        row = {"set": one.case.set.name, "command": one.case.command}
        row |= {name: number(one.medians.get(name)) for name in names} | {"best peer": one.best}
        rows.append(row | dict(zip(("ratio", "interval"), ratio_texts([one.ratios(one.best)]), strict=True)))
    about = "The ratio is that of tierdex to the best peer, of those whose numbers of matches are equal."
    return table(f"Queries a second, {title}", about, rows, left=2)


def means(title: str, found: list[Comparison], group: str) -> str:
    """Geometric means of ratios over the sets of a group, by command and over all."""
    found = [one for one in found if one.case.set.recipe.group == group and one.ratios(one.best)]
    found = [one for one in found if one.case.set.recipe.is_compared] or found
    others = [name for name in names_of(found) if name != OURS]
    rows = []
    for command in [*dict.fromkeys(one.case.command for one in found), "all"] if found else []:
        chosen = [one for one in found if command in ("all", one.case.command)]
        least = min(chosen, key=lambda one: geometric_mean(one.ratios(one.best)))
        mean, between = ratio_texts([one.ratios(one.best) for one in chosen])
        row = {"command": command, "best peer": mean, "interval": between}
        row |= {"least": ratio_texts([least.ratios(least.best)])[0], "where": f"{least.case.set.name} {least.case.command}"}
        rows.append(row | {name: ratio_texts([one.ratios(name) for one in chosen])[0] for name in others})
    about = "Of tierdex to the best peer, and to each engine or variant over the sets that it answers."
    return table(f"Ratios, geometric means, {group}, {title}", about, rows)


def under_limit(store: Store, found: list[Comparison]) -> str:
    trials = {name: store.rows(limit.trial_cell(name)) for name in names_of(found)}
    rows = []
    for one in found:
        for name, measured in one.rows.items():
            if trial := trials[name]:
                frame = pd.DataFrame(measured, dtype=float, columns=[*LIMITED])
                values = frame.median().to_dict() | frame[["peak", "own"]].max().to_dict() | {"limit": trial[0]["limit"]}
                row = {"set": one.case.set.name, "command": one.case.command, "engine": name}
                rows.append(row | texts(LIMITED, values))
    ahead = {str(trial[0]["read_ahead_kb"]) for trial in trials.values() if trial}
    about = "Megabytes from the device a query; the largest peak of the group; its memory without page cache at the end. "
    about += f"The device reads {', '.join(sorted(ahead))} kB ahead without advice."
    return table("Under the limit", about, rows, left=3)


def checks(store: Store, parties: list[Party]) -> list[Row]:
    cells = [check.cell(one, name) for party in parties for one in party.sets for name in party.names]
    return [row for cell in cells for row in store.rows(cell)]


def agreement(store: Store, parties: list[Party]) -> str:
    rows = [
        {
            "set": row["set"],
            "engine": row["engine"],
            "queries": str(row["counted"]),
            "other matches": str(row["differ"]) if row["counted"] else "-",
            "overlap of the top 10": number(row["overlap"], 2),
            "scores, %": number(row["scores"], 1, 0.01),
        }
        for row in checks(store, parties)
        if row["counted"] or row["overlap"] is not None
    ]
    about = "On the first queries of each set, relative to the first engine. Scores: the difference of 95% at equal ranks."
    return table("Agreement", about, rows, left=2)


def warnings(store: Store, parties: list[Party]) -> list[str]:
    """What differs or failed, a line each."""
    text = "{set}: {engine} has other matches than {base}: {first}"
    lines = [text.format(**row) for row in checks(store, parties) if row["first"]]
    for party in parties:
        names = party.names
        lines += [row["note"] for name in names for row in store.rows(limit.trial_cell(name)) if row["note"]]
        for case in party.cases:
            where = f"{case.set.name} {case.command}"
            sums = {name: rows[-1]["sum"] for name, rows in Comparison(store, party, case).rows.items()}
            if len(set(sums.values())) > 1:
                lines.append(f"{where}: sums of answers differ: {', '.join(f'{name} {sums[name]}' for name in sums)}")
            lines += [f"{where}: {name}: {why}" for name in names if (why := store.failure(case.cell(name)))]
            passed = [name for name in names if store.has(case.cell(name), FIRST)]
            lines += [f"{where}: {name} has no such queries" for name in passed if name not in case.walls(store, names)]
    return lines
