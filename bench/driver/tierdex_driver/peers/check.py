"""Compares the answers of engines to the first queries of each set.

Numbers of matches must be equal. The overlap of the ten best hits depends on the scores: engines encode document lengths
and break ties differently. Scores are compared by rank, up to a constant factor.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from tierdex_driver.definitions import Cell
from tierdex_driver.errors import CellFailed
from tierdex_driver.peers.server import Server
from tierdex_driver.peers.sets import Set
from tierdex_driver.peers.text import say
from tierdex_driver.store import Row, Store

SAMPLE = 100
# Percentage of the quotients of scores whose largest deviation from their median is reported.
SHARE = 95
UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True)
class Answer:
    """The number of matches, and documents and scores of the ten best hits; None where the engine has no answer."""

    count: int | None
    hits: list[tuple[int, float]] | None


# The answers of an engine, by set and query.
Sample = dict[str, dict[str, Answer]]


def cell(one: Set, engine: str) -> Cell:
    return Cell("answers", (("set", one.name), ("engine", engine)))


def sample(sets: list[Set], server: Server) -> Sample:
    """Asks the first queries of each set."""
    return {one.name: {query: ask(server, query, one) for query in one.queries[:SAMPLE]} for one in sets}


def ask(server: Server, query: str, one: Set) -> Answer:
    count = server.ask(f"COUNT\t{query}") if one.recipe.is_counted else UNSUPPORTED
    hits = server.ask(f"DOCS_10\t{query}")
    try:
        pairs = None if hits == UNSUPPORTED else [hit.split(":") for hit in hits.split()]
        found = None if pairs is None else [(int(document), float(score)) for document, score in pairs]
        return Answer(None if count == UNSUPPORTED else int(count), found)
    except ValueError as error:
        raise CellFailed(f"{server.name} answers `{query}` by `{count}` and `{hits}`") from error


def compare(store: Store, sets: list[Set], samples: dict[str, Sample]) -> None:
    """Stores how each sample differs from the first."""
    base, *others = samples
    for one in sets:
        for other in others:
            row = difference(samples[base][one.name], samples[other][one.name])
            if row["first"]:
                say(f"{one.name}: {other} has other matches than {base}: {row['first']}")
            store.add(cell(one, other), 1, 0.0, [row | {"base": base}], None)


def difference(expected: dict[str, Answer], found: dict[str, Answer]) -> Row:
    pairs = [(query, one, found[query]) for query, one in expected.items()]
    counts = [(query, one.count, other.count) for query, one, other in pairs if None not in (one.count, other.count)]
    wrong = [f"`{query}` {other}, not {one}" for query, one, other in counts if one != other]
    hits = [(one.hits, other.hits) for _, one, other in pairs if one.hits is not None and other.hits is not None]
    ranks = [(a, b) for one, other in hits for (_, a), (_, b) in zip(one, other, strict=False) if a > 0]
    overlaps = [overlap({document for document, _ in one}, {document for document, _ in other}) for one, other in hits]
    return {
        "counted": len(counts),
        "differ": len(wrong),
        "first": wrong[0] if wrong else None,
        "overlap": statistics.fmean(overlaps) if overlaps else None,
        "scores": spread([b / a for a, b in ranks]),
    }


def overlap(one: set[int], other: set[int]) -> float:
    """The share of common documents, 1 if there are none."""
    return len(one & other) / max(len(one), len(other)) if one or other else 1.0


def spread(values: list[float]) -> float | None:
    """How far 95% of the values are from their median, as a share of it."""
    middle = statistics.median(values) if values else 0.0
    off = sorted(abs(value / middle - 1) for value in values)
    return off[min(len(off) * SHARE // 100, len(off) - 1)] if off else None
