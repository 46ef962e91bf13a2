"""Compares the answers of engines to the first queries of each set.

Numbers of matches must be equal. The overlap of the ten best hits depends on the scores: engines encode document lengths
and break ties differently. Scores are compared by rank, up to a constant factor.
"""

from statistics import fmean

import numpy as np

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

# The number of matches, and documents and scores of the ten best hits; None where the engine has no answer.
Answer = tuple[int | None, dict[int, float] | None]
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
        pairs = [hit.split(":") for hit in hits.split()] if hits != UNSUPPORTED else None
        found = None if pairs is None else {int(document): float(score) for document, score in pairs}
        return None if count == UNSUPPORTED else int(count), found
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
            store.add(cell(one, other), 1, 0.0, [row | {"base": base}])


def difference(expected: dict[str, Answer], found: dict[str, Answer]) -> Row:
    counts = [(query, count, found[query][0]) for query, (count, _) in expected.items()]
    counts = [(query, a, b) for query, a, b in counts if a is not None and b is not None]
    wrong = [f"`{query}` {b}, not {a}" for query, a, b in counts if a != b]
    pairs = [(hits, found[query][1]) for query, (_, hits) in expected.items()]
    hits = [(a, b) for a, b in pairs if a is not None and b is not None]
    # No hits at all are equal hits.
    overlaps = [len(a.keys() & b.keys()) / max(len(a), len(b)) if a or b else 1.0 for a, b in hits]
    quotients = [b / a for one, other in hits for a, b in zip(one.values(), other.values(), strict=False) if a > 0]
    return {
        "counted": len(counts),
        "differ": len(wrong),
        "first": wrong[0] if wrong else None,
        "overlap": fmean(overlaps) if overlaps else None,
        "scores": spread(quotients) if quotients else None,
    }


def spread(values: list[float]) -> float:
    """How far 95% of the values are from their median, as a share of it."""
    return float(np.quantile(abs(np.array(values) / np.median(values) - 1), SHARE, method="higher"))
