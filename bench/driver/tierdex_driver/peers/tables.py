"""The tables of a comparison, from the rows of its store.

Queries a second are medians over rounds. A ratio is the geometric mean over rounds of the queries a second of tierdex
divided by those of another engine in the same round, with its 95% interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tierdex_driver import intervals
from tierdex_driver.peers import check, indexing, limit
from tierdex_driver.peers.engines import Contender
from tierdex_driver.peers.recipes import GROUPS
from tierdex_driver.peers.rounds import FIRST, Case
from tierdex_driver.peers.sets import Set
from tierdex_driver.peers.settings import Settings
from tierdex_driver.peers.text import Corpus
from tierdex_driver.store import Row, Store

OURS = "tierdex"


@dataclass(frozen=True)
class Party:
    """Query sets, and the contenders that run them."""

    contenders: list[Contender]
    sets: list[Set]
    cases: list[Case]


@dataclass(frozen=True)
class Table:
    title: str
    about: str
    heading: Sequence[str]
    rows: list[list[str]]
    # Columns of text; the others are numbers.
    left: int = 1

    def markdown(self) -> str:
        """The table with padded columns, so that it can be read in a terminal as well."""
        lines = [list(self.heading), *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.heading))]
        texts = []
        for line in lines:
            pairs = enumerate(zip(line, widths, strict=True))
            cells = [text.ljust(width) if at < self.left else text.rjust(width) for at, (text, width) in pairs]
            texts.append(f"| {' | '.join(cells)} |")
        rules = ("-" * (width + 2) if at < self.left else "-" * (width + 1) + ":" for at, width in enumerate(widths))
        texts.insert(1, f"|{'|'.join(rules)}|")
        return "\n".join([f"## {self.title}", "", *([self.about, ""] if self.about else []), *texts, ""])


@dataclass(frozen=True)
class Comparison:
    """The engines at one command on one set: their queries a second by round."""

    case: Case
    qps: pd.DataFrame
    best: str | None

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.qps]

    @property
    def medians(self) -> dict[str, float]:
        return {str(name): float(value) for name, value in self.qps.median().items()}

    def ratios(self, to: str | None, of: str = OURS) -> list[float]:
        """The ratio of each round in which both were measured."""
        if of not in self.qps or to not in self.qps:
            return []
        return [float(value) for value in (self.qps[of] / self.qps[to]).dropna()]


def rows_of(store: Store, party: Party) -> list[Row]:
    """All measured batches."""
    cells = [case.cell(one.name) for case in party.cases for one in party.contenders]
    return [row for cell in cells for row in store.rows(cell) if row["round"] != FIRST]


def comparisons(store: Store, party: Party) -> list[Comparison]:
    found = []
    for case in party.cases:
        rows = rows_of(store, Party(party.contenders, party.sets, [case]))
        if not rows:
            continue
        qps = pd.DataFrame(rows).pivot(index="round", columns="engine", values="qps")
        qps = qps[[one.name for one in party.contenders if one.name in qps]]
        peers = [str(name) for name in qps if not str(name).startswith(OURS)]
        peers = [name for name in peers if not any(row["differ"] for row in store.rows(check.cell(case.set, name)))]
        best = str(qps[peers].median().idxmax()) if peers else None
        found.append(Comparison(case, qps, best))
    return found


def text_of(cells: list[list[float]]) -> list[str]:
    """The ratio of cells and its interval."""
    cells = [ratios for ratios in cells if ratios]
    if not cells:
        return ["-", "-"]
    low, high = intervals.interval(cells)
    mean = intervals.geometric_mean([intervals.geometric_mean(ratios) for ratios in cells])
    return [f"{mean:.2f}", f"{low:.2f} to {high:.2f}"]


def number(value: float | None, digits: int = 0, unit: float = 1.0) -> str:
    return "-" if value is None or pd.isna(value) else f"{value / unit:.{digits}f}"


def every(settings: Settings, store: Store, corpus: Corpus, parties: list[Party]) -> list[Table]:
    """All tables that have rows."""
    contenders = [one for party in parties for one in party.contenders]
    sets = [one for party in parties for one in party.sets]
    found = [one for party in parties for one in comparisons(store, party)]
    tables = []
    if settings.limit:
        tables += [limits(settings, store, contenders), speeds(found, 1), details(store, parties)]
        tables += [means(found, 1, group) for group in GROUPS]
    else:
        tables.append(resources(settings, corpus, contenders))
        for threads in settings.threads:
            chosen = [one for one in found if one.case.threads == threads]
            tables += [speeds(chosen, threads), *(means(chosen, threads, group) for group in GROUPS)]
            tables.append(own(chosen, threads))
        tables.append(scaling(settings, found))
    return [table for table in [*tables, agreement(store, sets, contenders)] if table.rows]


def resources(settings: Settings, corpus: Corpus, contenders: list[Contender]) -> Table:
    usages = indexing.usage(settings, contenders)
    ours = {one["tail"]: one["cpu"] for one in usages if one["kind"] == OURS}
    heading = ["index", "CPU s", "MB/s of CPU", "clock s", "peak memory MB", "index MB", "ratio of CPU"]
    rows = []
    for one in usages:
        cpu = max(one["cpu"], 1e-9)
        ratio = cpu / ours[one["tail"]] if one["tail"] in ours else None
        row = [one["index"], number(cpu, 2), number(corpus.bytes / cpu, 1, 1e6), number(one["wall"], 2)]
        rows.append([*row, number(one["peak"], 0, 1e6), number(one["bytes"], 1, 1e6), number(ratio, 2)])
    about = "Medians over rounds. The ratio is the CPU time divided by that of tierdex."
    return Table("Indexing", about, heading, rows)


def speeds(found: list[Comparison], threads: int) -> Table:
    names = list(dict.fromkeys(name for one in found for name in one.names if not name.startswith(f"{OURS} ")))
    rows = []
    for one in found:
        medians = [number(one.medians.get(name)) for name in names]
        ratio = text_of([one.ratios(one.best)])
        rows.append([one.case.set.name, one.case.command, *medians, one.best or "-", *ratio])
    about = "The ratio is that of tierdex to the best peer, of those whose numbers of matches are equal."
    heading = ["set", "command", *names, "best peer", "ratio", "interval"]
    return Table(f"Queries a second, {threads_text(threads)}", about, heading, rows, left=2)


def means(found: list[Comparison], threads: int, group: str) -> Table:
    """Geometric means of ratios over the sets of a group, by command and over all."""
    found = [one for one in found if one.case.set.recipe.group == group]
    found = [one for one in found if one.case.set.recipe.is_compared] or found
    peers = list(dict.fromkeys(name for one in found for name in one.names if not name.startswith(OURS)))
    rows = []
    for command in [*dict.fromkeys(one.case.command for one in found), None]:
        chosen = [one for one in found if command in (None, one.case.command) and one.ratios(one.best)]
        if chosen:
            least = min(chosen, key=lambda one: intervals.geometric_mean(one.ratios(one.best)))
            row = [command or "all", *text_of([one.ratios(one.best) for one in chosen])]
            row += [text_of([least.ratios(least.best)])[0], f"{least.case.set.name} {least.case.command}"]
            rows.append(row + [text_of([one.ratios(peer) for one in chosen])[0] for peer in peers])
    title = f"Ratios, geometric means, {group}, {threads_text(threads)}"
    heading = ["command", "best peer", "interval", "least", "where", *peers]
    return Table(title, "To each peer over the sets that it answers.", heading, rows)


def own(found: list[Comparison], threads: int) -> Table:
    """Variants of tierdex relative to that of all engines."""
    names = list(dict.fromkeys(name for one in found for name in one.names if name.startswith(f"{OURS} ")))
    rows = []
    for one in found if names else []:
        texts = [text for name in names for text in text_of([one.ratios(OURS, name)])]
        rows.append([one.case.set.name, one.case.command, number(one.medians.get(OURS)), *texts])
    if rows:
        texts = [text for name in names for text in text_of([one.ratios(OURS, name) for one in found])]
        rows.append(["geometric mean", "", "", *texts])
    heading = ["set", "command", OURS, *(column for name in names for column in (name, "interval"))]
    return Table(f"Variants of tierdex, {threads_text(threads)}", "Ratios to tierdex.", heading, rows, left=2)


def scaling(settings: Settings, found: list[Comparison]) -> Table:
    """Queries a second by threads, geometric means over sets."""
    names = list(dict.fromkeys(name for one in found for name in one.names))
    rows = []
    if len(settings.threads) > 1:
        for command in dict.fromkeys(one.case.command for one in found):
            for threads in settings.threads:
                chosen = [one.medians for one in found if (one.case.command, one.case.threads) == (command, threads)]
                values = [[medians[name] for medians in chosen if name in medians] for name in names]
                means = [number(intervals.geometric_mean(value) if value else None) for value in values]
                rows.append([command, str(threads), *means])
    about = "Geometric means over the sets that an engine answers."
    return Table("Queries a second by threads", about, ["command", "threads", *names], rows)


def limits(settings: Settings, store: Store, contenders: list[Contender]) -> Table:
    rows, ahead = [], None
    sizes = {one["kind"]: one["bytes"] for one in indexing.usage(settings, contenders)}
    for one in contenders:
        for row in store.rows(limit.trial_cell(one.name)):
            ahead = row["read_ahead_kb"]
            values = [number(size, 1, 1e6) for size in (sizes[one.kind], row["limit"], row["own"])]
            rows.append([one.name, *values, "yes" if row["admitted"] else "no"])
    about = f"The device reads {'an unknown number of' if ahead is None else ahead} kB ahead without advice."
    return Table("Limits", about, ["engine", "index MB", "limit MB", "own MB of it", "runs"], rows)


def details(store: Store, parties: list[Party]) -> Table:
    rows = []
    frame = pd.DataFrame([row for party in parties for row in rows_of(store, party)])
    if not frame.empty:
        columns: dict[str, Any] = dict.fromkeys(["qps", "p50_ns", "p99_ns", "fetched"], "median")
        columns |= {"peak": "max", "own": "max"}
        names = ["set", "command", "engine"]
        for row in frame.groupby(names, sort=False).agg(columns).reset_index().to_dict("records"):
            values = [number(row["qps"]), number(row["p50_ns"], 2, 1e6), number(row["p99_ns"], 2, 1e6)]
            values += [number(row["fetched"], 3, 1e6), number(row["peak"], 1, 1e6), number(row["own"], 1, 1e6)]
            rows.append([*(str(row[name]) for name in names), *values])
    heading = ["set", "command", "engine", "queries/s", "p50 ms", "p99 ms", "MB read a query", "peak MB", "own MB"]
    about = "Megabytes from the device a query; the largest peak of the group; its memory without page cache at the end."
    return Table("Under the limit, by engine", about, heading, rows, left=3)


def agreement(store: Store, sets: list[Set], contenders: list[Contender]) -> Table:
    rows, base = [], "the first engine"
    for one in sets:
        for name in dict.fromkeys(one.name for one in contenders):
            for row in store.rows(check.cell(one, name)):
                base = row["base"]
                if row["counted"] or row["overlap"] is not None:
                    differ = str(row["differ"]) if row["counted"] else "-"
                    scores = "-" if row["scores"] is None else f"{row['scores']:.1%}"
                    rows.append([one.name, name, str(row["counted"]), differ, number(row["overlap"], 2), scores])
    about = (
        f"Relative to {base}, on the first queries of each set: other numbers of matches, the share of common hits of the "
        "top 10, and how much 95% of the scores at equal ranks differ, up to a constant factor."
    )
    heading = ["set", "engine", "queries", "other matches", "overlap of the top 10", "scores"]
    return Table("Agreement", about, heading, rows, left=2)


def warnings(store: Store, parties: list[Party]) -> list[str]:
    """What differs or failed, a line each."""
    lines = []
    for party in parties:
        names = [one.name for one in party.contenders]
        for one in party.sets:
            for name in names:
                for row in store.rows(check.cell(one, name)):
                    if row["first"]:
                        lines.append(f"{one.name}: {name} has other matches than {row['base']}: {row['first']}")
        for case in party.cases:
            rows = rows_of(store, Party(party.contenders, party.sets, [case]))
            sums = {row["engine"]: row["sum"] for row in rows}
            if len(set(sums.values())) > 1:
                texts = ", ".join(f"{name} {total}" for name, total in sums.items())
                lines.append(f"{case.set.name} {case.command}: sums of answers differ: {texts}")
            for name in names:
                if why := store.failure(case.cell(name)):
                    lines.append(f"{case.set.name} {case.command}: {name}: {why}")
        notes = [row["note"] for name in names for row in store.rows(limit.trial_cell(name))]
        lines += [note for note in notes if note]
    return lines


def threads_text(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
