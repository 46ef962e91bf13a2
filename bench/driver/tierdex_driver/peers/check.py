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
# Share of the quotients of scores whose largest deviation from their median is reported.
SHARE = 0.95
UNSUPPORTED = "UNSUPPORTED"

Hits = list[tuple[int, float]]


@dataclass(frozen=True)
class Answer:
    """The number of matches and the ten best hits; None where the engine has no answer."""

    count: int | None
    hits: Hits | None


# The answers of an engine, by set and query.
Sample = dict[str, dict[str, Answer]]


def cell(one: Set, engine: str) -> Cell:
    return Cell("answers", (("set", one.name), ("engine", engine)))


def unchecked(store: Store, sets: list[Set], engines: list[str]) -> list[Set]:
    """The sets whose answers were not compared."""
    return [one for one in sets if not all(store.has(cell(one, engine), 1) for engine in engines[1:])]


def sample(sets: list[Set], server: Server) -> Sample:
    """Asks the first queries of each set."""
    return {
        one.name: {query: answer(server, query, one.recipe.is_counted) for query in one.queries[:SAMPLE]} for one in sets
    }


def answer(server: Server, query: str, counts: bool) -> Answer:
    count = server.ask(f"COUNT\t{query}") if counts else UNSUPPORTED
    hits = server.ask(f"DOCS_10\t{query}")
    try:
        return Answer(None if count == UNSUPPORTED else int(count), None if hits == UNSUPPORTED else parse(hits))
    except ValueError as error:
        raise CellFailed(f"{server.name} answers `{query}` by `{count}` and `{hits}`") from error


def parse(hits: str) -> Hits:
    pairs = (hit.split(":") for hit in hits.split())
    return [(int(document), float(score)) for document, score in pairs]


def compare(store: Store, sets: list[Set], samples: dict[str, Sample]) -> None:
    """Stores how each sample differs from the first."""
    base, *others = samples
    for one in sets:
        for other in others:
            row = difference(samples[base][one.name], samples[other][one.name])
            if row["first"]:
                say(f"{one.name}: {other} has another number of matches than {base}: {row['first']}")
            store.add(cell(one, other), 1, 0.0, [row | {"base": base}], None)


def difference(expected: dict[str, Answer], found: dict[str, Answer]) -> Row:
    counts = [(query, found[query].count, one.count) for query, one in expected.items()]
    counts = [(query, count, right) for query, count, right in counts if count is not None and right is not None]
    wrong = [f"`{query}` {count}, not {right}" for query, count, right in counts if count != right]
    pairs = [(one.hits, found[query].hits) for query, one in expected.items()]
    hits = [(one, other) for one, other in pairs if one is not None and other is not None]
    quotients = [
        b / a for one, other in hits for (_, a), (_, b) in zip(one, other, strict=False) if a > 0
    ]  # fmt: skip
    return {
        "counted": len(counts),
        "differ": len(wrong),
        "first": wrong[0] if wrong else None,
        "overlap": statistics.fmean(overlap(one, other) for one, other in hits) if hits else None,
        "scores": spread(quotients),
    }


def overlap(one: Hits, other: Hits) -> float:
    """The share of common documents, 1 if there are none."""
    both = {document for document, _ in one} & {document for document, _ in other}
    return len(both) / max(len(one), len(other)) if one or other else 1.0


def spread(values: list[float]) -> float | None:
    """How far 95% of the values are from their median, as a share of it."""
    if not values:
        return None
    middle = statistics.median(values)
    off = sorted(abs(value / middle - 1) for value in values)
    return off[min(int(len(off) * SHARE), len(off) - 1)]
