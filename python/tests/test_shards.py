"""Shards that score by common statistics, and several indexes that are searched as one."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tierdex
from tierdex import Index, Statistics, UsageError, merge_hits

WORDS = ["disk", "disks", "dish", "solid", "state", "tape", "tapes", "platter"]


def documents(first: int, last: int) -> list[dict[str, object]]:
    return [
        {"id": f"d{number}", "text": " ".join(WORDS[: 1 + number % 8]) + f" only{number % 17}"}
        for number in range(first, last)
    ]


def build(path: Path, first: int, last: int) -> Index:
    index = Index.create(path)
    with index.writer() as writer:
        writer.add_many(documents(first, last))
    return index


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Index, list[Index]]:
    """An index of all documents, and shards of very different sizes."""
    parts = [(0, 3), (3, 3), (3, 90), (90, 120)]
    return build(tmp_path / "whole", 0, 120), [
        build(tmp_path / str(number), *part) for number, part in enumerate(parts)
    ]


QUERIES: list[Any] = ["disk", "disk~1 -solid", "+tape only3~2", "pla*", {"disk": 2.0, "tapes": 0.5}, "nothing"]


def agreed(shards: Sequence[Index], query: Any, **options: Any) -> Statistics:
    statistics: Statistics | None = None
    while statistics is None or not statistics.complete:
        parts = [shard.statistics(query, question=statistics, **options) for shard in shards]
        statistics = Statistics.merge([pickle.loads(pickle.dumps(part)) for part in parts])
    return statistics


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("scorer", ["bm25", "dot"])
def test_shards_answer_as_one_index(shards: tuple[Index, list[Index]], query: Any, scorer: Any) -> None:
    whole, parts = shards
    statistics = agreed(parts, query, scorer=scorer)
    assert statistics.complete
    assert Statistics.from_bytes(bytes(statistics)) == statistics
    hits = [part.search(query, 20, scorer=scorer, count=True, statistics=statistics) for part in parts]
    expected = whole.search(query, 20, scorer=scorer, count=True)
    for answers in (hits, [pickle.loads(pickle.dumps(answer)) for answer in hits]):
        merged = merge_hits(answers, 20)
        found = [(found.hit.id, found.hit.score) for found in merged.hits]
        assert found == [(hit.id, hit.score) for hit in expected]
        assert (merged.total, merged.exact) == (expected.total, True)
        assert (merged.timed_out, merged.missing) == (False, [])


@pytest.mark.parametrize("query", ["disk", "disk~1", "pla*"])
def test_several_indexes_are_searched_as_one(shards: tuple[Index, list[Index]], query: str) -> None:
    whole, parts = shards
    joined = Index.open([part.path for part in parts], dram="40M")
    assert len(joined) == 120
    assert joined.paths == [part.path for part in parts]
    expected, found = whole.search(query, 30), joined.search(query, 30)
    assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in expected]
    for hit in [*found, *pickle.loads(pickle.dumps(found))]:
        assert parts[hit.part].get(hit.id) is not None
    assert [hit.title for hit in found] == [hit.title for hit in expected]
    again = pickle.loads(pickle.dumps(joined))
    assert again.search(query, 3).ids == found.ids[:3]
    with parts[1].writer() as writer:
        writer.add({"id": "new", "text": "platter disk new"})
    assert joined.refresh()
    assert joined.search("new").ids == ["new"]
    assert joined.search("new")[0].part == 1
    with pytest.raises(UsageError, match="these are 4 indexes: write one at a time"):
        joined.writer()
    with pytest.raises(UsageError, match="these are 4 indexes: check one at a time"):
        joined.check()


def test_what_does_not_fit_is_rejected(shards: tuple[Index, list[Index]], tmp_path: Path) -> None:
    _, parts = shards
    with pytest.raises(UsageError, match="no index is named"):
        Index.open([])
    other = Index.create(tmp_path / "other", tierdex.Schema(text=tierdex.Text(stem="english")))
    with pytest.raises(UsageError, match="cannot be searched as one"):
        Index.open([parts[0].path, other.path])
    with pytest.raises(UsageError, match="another query"):
        Statistics.merge([parts[0].statistics("disk"), parts[1].statistics("tape")])
    with pytest.raises(UsageError, match="no statistics"):
        Statistics.merge([])
    with pytest.raises(UsageError, match="merge the statistics of all shards"):
        parts[0].search("disk", statistics=parts[0].statistics("disk"))
    with pytest.raises(tierdex.CorruptError):
        Statistics.from_bytes(b"nonsense")
    own = [part.search("disk") for part in parts]
    with pytest.raises(UsageError, match="their own statistics"):
        merge_hits(own)
    statistics = agreed(parts, "disk")
    hits = [part.search("disk", statistics=statistics) for part in parts]
    with pytest.raises(tierdex.Error, match="no answer of shard 2"):
        merge_hits([hits[0], hits[1], None, hits[3]])
    partial = merge_hits([hits[0], hits[1], None, hits[3]], allow_missing=True)
    assert (partial.missing, partial.exact) == ([2], False)
