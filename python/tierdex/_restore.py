"""Functions by which pickles are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from . import _tierdex

if TYPE_CHECKING:
    from ._index import Index


def index(
    paths: list[str], dram: int | None, threads: int, hits_max: int, refresh: Literal["auto", "manual"]
) -> Index:
    """An index that is opened at its first use."""
    from ._index import Index

    return Index(_tierdex.Index._open(paths, dram, threads, hits_max, refresh, True))


def statistics(data: bytes) -> _tierdex.Statistics:
    """Statistics from their bytes."""
    return _tierdex.Statistics.from_bytes(data)


def hits(state: Any) -> _tierdex.Hits:
    """Hits from their state."""
    return _tierdex.Hits._restore(state)


def hit(hits: _tierdex.Hits, position: int) -> _tierdex.Hit:
    """One of the hits."""
    return hits[position]


def batch(state: Any) -> _tierdex.Batch:
    """A batch from its state."""
    return _tierdex.Batch._restore(state)


def document(
    id: str, title: str | None, values: list[tuple[str, list[str]]] | None, others: str | None, number: int
) -> _tierdex.Document:
    """A document from its state."""
    return _tierdex.Document._restore(id, title, values, others, number)
