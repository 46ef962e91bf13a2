"""Hits of several shards that score by common statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import _tierdex
from ._arguments import items, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable


class MergedHit(NamedTuple):
    """A hit of one of several shards."""

    #: Number of the shard, from 0.
    shard: int
    #: The hit.
    hit: _tierdex.Hit


class MergedHits(NamedTuple):
    """The best hits of several shards."""

    #: The hits, best first; equal scores in order of shards.
    hits: list[MergedHit]
    #: Number of matching documents; a lower bound unless ``exact``.
    total: int
    #: Whether ``total`` is exact.
    exact: bool
    #: Whether the deadline of a shard passed.
    timed_out: bool
    #: The shards without an answer.
    missing: list[int]


def merge_hits(hits: Iterable[_tierdex.Hits | None], k: int = 10, *, allow_missing: bool = False) -> MergedHits:
    """Merge the hits of all shards, in order of the shards, to those of one index with all documents.

    Each shard has answered ``Index.search`` with the same complete ``statistics``. ``None`` stands for a shard
    without an answer, which is an error unless ``allow_missing``.

    >>> for year in ("2024", "2025"):
    ...     with tierdex.Index.create(year).writer() as writer:
    ...         writer.add({"id": f"{year}-1", "text": "A solid state disk."})
    >>> shards = [tierdex.Index.open("2024"), tierdex.Index.open("2025")]
    >>> statistics = None
    >>> while statistics is None or not statistics.complete:
    ...     parts = [shard.statistics("disk", question=statistics) for shard in shards]
    ...     statistics = tierdex.Statistics.merge(parts)
    >>> merged = tierdex.merge_hits([shard.search("disk", statistics=statistics) for shard in shards])
    >>> [(found.shard, found.hit.id) for found in merged.hits]
    [(0, '2024-1'), (1, '2025-1')]
    """
    parts = list(items(hits))
    found, total, exact, timed_out, missing = _tierdex._merge_hits(parts, whole_number("k", k), allow_missing)
    merged = [MergedHit(shard, parts[shard][position]) for shard, position in found]
    return MergedHits(merged, total, exact, timed_out, missing)
