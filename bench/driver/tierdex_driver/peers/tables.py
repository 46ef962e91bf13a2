"""The tables of a comparison, from the rows of its store.

Queries a second are medians over rounds. A ratio is the geometric mean over rounds of the queries a second of tierdex
divided by those of another engine in the same round, with its 95% interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tierdex_driver.intervals import geometric_mean, interval
from tierdex_driver.peers import check, limit
from tierdex_driver.peers.engines import Contender
from tierdex_driver.peers.recipes import GROUPS
from tierdex_driver.peers.rounds import FIRST, Case
from tierdex_driver.peers.sets import Set
from tierdex_driver.peers.text import Corpus
from tierdex_driver.store import Row, Store

OURS = "tierdex"
# Digits and unit of the numbers of a column.
INDEXING = {"cpu": (2, 1), "speed": (1, 1e6), "wall": (2, 1), "peak": (0, 1e6), "bytes": (1, 1e6), "ratio": (2, 1)}
LIMITED = {"qps": (0, 1), "p50_ns": (2, 1e6), "p99_ns": (2, 1e6), "fetched": (3, 1e6)}
LIMITED |= dict.fromkeys(["limit", "peak", "own"], (1, 1e6))


@dataclass(frozen=True)
class Party:
    """Query sets, and the contenders that run them."""

    contenders: list[Contender]
    sets: list[Set]
    cases: list[Case]


class Comparison:
    """The engines at one command on one set: their queries a second by round."""

    def __init__(self, store: Store, party: Party, case: Case):
        self.case = case
        self.rows = [row for one in party.contenders for row in store.rows(case.cell(one.name)) if row["round"] != FIRST]
        self.qps: dict[str, dict[int, float]] = {}
        for row in self.rows:
            self.qps.setdefault(row["engine"], {})[row["round"]] = row["qps"]
        self.medians = {name: float(pd.Series(qps).median()) for name, qps in self.qps.items()}
        differ = {name for name in self.qps for row in store.rows(check.cell(case.set, name)) if row["differ"]}
        peers = [name for name in self.qps if not name.startswith(OURS) and name not in differ]
        self.best = max(peers, key=lambda name: self.medians[name], default=None)

    def ratios(self, to: str | None) -> list[float]:
        """The ratio of each round in which both were measured."""
        ours, others = self.qps.get(OURS, {}), self.qps.get(to or "", {})
        return [ours[round] / others[round] for round in sorted(ours.keys() & others.keys())]


def every(store: Store, corpus: Corpus, parties: list[Party], indexes: pd.DataFrame) -> list[str]:
    """All tables that have rows."""
    found = [Comparison(store, party, case) for party in parties for case in party.cases]
    found = [one for one in found if one.qps]
    tables = [indexing(corpus, indexes)]
    for threads in dict.fromkeys(one.case.threads for one in found):
        chosen = [one for one in found if one.case.threads == threads]
        title = f"{threads} thread{'s' if threads > 1 else ''}"
        tables += [speeds(title, chosen), *(means(title, chosen, group) for group in GROUPS)]
    return [table for table in [*tables, under_limit(store, found), agreement(store, parties)] if table]


def table(title: str, about: str, heading: Sequence[str], rows: list[list[str]], left: int = 1) -> str:
    """Markdown with padded columns, so that it can be read in a terminal as well; the first columns are of text."""
    widths = [max(len(row[column]) for row in [heading, *rows]) for column in range(len(heading))]
    rules = ["-" * width if at < left else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    lines = [f"## {title}", "", about, ""]
    for row in [heading, rules, *rows]:
        columns = enumerate(zip(row, widths, strict=True))
        lines.append(f"| {' | '.join(text.ljust(n) if at < left else text.rjust(n) for at, (text, n) in columns)} |")
    return "\n".join([*lines, ""]) if rows else ""


def number(value: Any, digits: int = 0, unit: float = 1.0) -> str:
    return "-" if value is None or pd.isna(value) else f"{value / unit:.{digits}f}"


def ratio_texts(cells: Sequence[list[float]]) -> list[str]:
    """The geometric mean of the ratios of cells, and its interval."""
    cells = [ratios for ratios in cells if ratios]
    if not cells:
        return ["-", "-"]
    low, high = interval(cells)
    return [number(geometric_mean([geometric_mean(ratios) for ratios in cells]), 2), f"{low:.2f} to {high:.2f}"]


def names_of(found: list[Comparison]) -> list[str]:
    return list(dict.fromkeys(name for one in found for name in one.qps))


def indexing(corpus: Corpus, indexes: pd.DataFrame) -> str:
    ours = indexes[indexes["kind"] == OURS].drop_duplicates("tail").set_index("tail")["cpu"]
    frame = indexes.assign(speed=corpus.bytes / indexes["cpu"], ratio=indexes["cpu"] / indexes["tail"].map(ours))
    rows = [[str(row["index"]), *(number(row[name], *INDEXING[name]) for name in INDEXING)] for _, row in frame.iterrows()]
    heading = ["index", "CPU s", "MB/s of CPU", "clock s", "peak memory MB", "index MB", "ratio"]
    return table("Indexing", "Medians over rounds. The ratio is the CPU time divided by that of tierdex.", heading, rows)


def speeds(title: str, found: list[Comparison]) -> str:
    names = names_of(found)
    rows = []
    for one in found:
        medians = [number(one.medians.get(name)) for name in names]
        rows.append([one.case.set.name, one.case.command, *medians, one.best or "-", *ratio_texts([one.ratios(one.best)])])
    about = "The ratio is that of tierdex to the best peer, of those whose numbers of matches are equal."
    heading = ["set", "command", *names, "best peer", "ratio", "interval"]
    return table(f"Queries a second, {title}", about, heading, rows, left=2)


def means(title: str, found: list[Comparison], group: str) -> str:
    """Geometric means of ratios over the sets of a group, by command and over all."""
    found = [one for one in found if one.case.set.recipe.group == group and one.ratios(one.best)]
    found = [one for one in found if one.case.set.recipe.is_compared] or found
    others = [name for name in names_of(found) if name != OURS]
    rows = []
    for command in [*dict.fromkeys(one.case.command for one in found), "all"] if found else []:
        chosen = [one for one in found if command in ("all", one.case.command)]
        least = min(chosen, key=lambda one: geometric_mean(one.ratios(one.best)))
        row = [
            command,
            *ratio_texts([one.ratios(one.best) for one in chosen]),
            *ratio_texts([least.ratios(least.best)])[:1],
        ]
        row.append(f"{least.case.set.name} {least.case.command}")
        rows.append(row + [ratio_texts([one.ratios(name) for one in chosen])[0] for name in others])
    heading = ["command", "best peer", "interval", "least", "where", *others]
    about = "Of tierdex to the best peer, and to each engine or variant over the sets that it answers."
    return table(f"Ratios, geometric means, {group}, {title}", about, heading, rows)


def under_limit(store: Store, found: list[Comparison]) -> str:
    trials = {name: store.rows(limit.trial_cell(name)) for name in names_of(found)}
    rows = []
    for one in found:
        for name, frame in pd.DataFrame(one.rows).groupby("engine", sort=False):
            if trial := trials[str(name)]:
                values = frame[["qps", "p50_ns", "p99_ns", "fetched"]].astype(float).median()
                row = values.to_dict() | frame[["peak", "own"]].max().to_dict() | {"limit": trial[0]["limit"]}
                texts = [number(row[column], *LIMITED[column]) for column in LIMITED]
                rows.append([one.case.set.name, one.case.command, str(name), *texts])
    heading = [
        "set",
        "command",
        "engine",
        "queries/s",
        "p50 ms",
        "p99 ms",
        "MB read a query",
        "limit MB",
        "peak MB",
        "own MB",
    ]
    ahead = {str(trial[0]["read_ahead_kb"]) for trial in trials.values() if trial}
    about = "Megabytes from the device a query; the largest peak of the group; its memory without page cache at the end. "
    about += f"The device reads {', '.join(sorted(ahead))} kB ahead without advice."
    return table("Under the limit", about, heading, rows, left=3)


def checks(store: Store, parties: list[Party]) -> Iterator[Row]:
    for party in parties:
        for cell in [check.cell(one, other.name) for one in party.sets for other in party.contenders]:
            yield from store.rows(cell)


def agreement(store: Store, parties: list[Party]) -> str:
    rows = []
    for row in checks(store, parties):
        if row["counted"] or row["overlap"] is not None:
            differ = str(row["differ"]) if row["counted"] else "-"
            scores = number(row["scores"], 1, 0.01)
            rows.append([row["set"], row["engine"], str(row["counted"]), differ, number(row["overlap"], 2), scores])
    about = "On the first queries of each set, relative to the first engine. Scores: the difference of 95% at equal ranks."
    heading = ["set", "engine", "queries", "other matches", "overlap of the top 10", "scores, %"]
    return table("Agreement", about, heading, rows, left=2)


def warnings(store: Store, parties: list[Party]) -> list[str]:
    """What differs or failed, a line each."""
    texts = "{set}: {engine} has other matches than {base}: {first}"
    lines = [texts.format(**row) for row in checks(store, parties) if row["first"]]
    for party in parties:
        names = [one.name for one in party.contenders]
        lines += [row["note"] for name in names for row in store.rows(limit.trial_cell(name)) if row["note"]]
        for case in party.cases:
            where = f"{case.set.name} {case.command}"
            sums = {row["engine"]: row["sum"] for row in Comparison(store, party, case).rows}
            if len(set(sums.values())) > 1:
                lines.append(f"{where}: sums of answers differ: {', '.join(f'{name} {sums[name]}' for name in sums)}")
            lines += [f"{where}: {name}: {why}" for name in names if (why := store.failure(case.cell(name)))]
            passed = [name for name in names if store.has(case.cell(name), FIRST)]
            lines += [f"{where}: {name} has no such queries" for name in passed if name not in case.walls(store, names)]
    return lines
