"""Searches: results, batches, columns."""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter
from math import log
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tierdex
from corpus import WORDS, build, documents
from tierdex import Index


def bm25(corpus: list[dict[str, object]], weights: dict[str, float], k1: float, b: float) -> dict[str, float]:
    """BM25 by its definition."""
    lists = {str(doc["id"]): f"{doc['title']} {doc['text']}".split() for doc in corpus}
    average = sum(map(len, lists.values())) / len(lists)
    frequency = Counter(term for terms in lists.values() for term in set(terms))
    scores: dict[str, float] = {}
    for id, terms in lists.items():
        counts = Counter(terms)
        for term, weight in weights.items():
            if counts[term]:
                n = frequency[term]
                idf = log(1 + (len(lists) - n + 0.5) / (n + 0.5))
                f = counts[term]
                part = f * (k1 + 1) / (f + k1 * (1 - b + b * len(terms) / average))
                scores[id] = scores.get(id, 0) + weight * idf * part
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4), (0.0, 1.0)])
def test_scores_are_those_of_the_definition(
    index: Index, corpus: list[dict[str, object]], k1: float, b: float
) -> None:
    weights = {"word1": 1.0, "word150": 2.5, "title": 0.25, "absent": 3.0}
    expected = bm25(corpus, weights, k1, b)
    hits = index.search(weights, k=4000, k1=k1, b=b)
    assert set(hits.ids) == set(expected) and hits.exact and hits.total == len(expected)
    assert np.allclose(hits.scores, [expected[id] for id in hits.ids], rtol=1e-5, atol=1e-6)
    assert list(hits.scores) == sorted(hits.scores, reverse=True)


def test_the_kinds_of_queries_agree(index: Index) -> None:
    as_text = index.search("word7 word9 word7")
    assert index.search("word7 (word9 AND", syntax="lenient").warnings
    for same in [["word7", "word9", "word7"], {"word7": 2.0, "word9": 1.0}, ("word9", "word7", "word7")]:
        hits = index.search(same)
        assert hits.ids == as_text.ids and (hits.scores == as_text.scores).all()
    assert index.search("word7 AND", syntax="terms").ids == index.search("word7 OR and").ids
    assert len(index.search({})) == len(index.search([])) == len(index.search("")) == 0
    assert len(index.search({"word7": 0.0})) == 0
    counted = index.search("word1 word2", k=1, count=True)
    assert counted.exact and counted.total > 100
    assert index.search("word1", deadline=60.0).timed_out is False
    with pytest.raises(tierdex.QueryError, match="nothing on its right") as fault:
        index.search("word1 AND")
    assert fault.value.position == 9
    for seconds in (1e30, float("inf")):
        assert index.search("word1", deadline=seconds).timed_out is False
    with pytest.raises(tierdex.ExpiredError, match="in the queue"):
        index.search("word1", deadline=0.0)
    for wrong in [3, None, {"a": "b"}, [3], {"a": -1.0}, {"a": float("nan")}, b"a"]:
        with pytest.raises(tierdex.UsageError):
            index.search(wrong)  # type: ignore[arg-type]
    for options in [{"k1": -1.0}, {"b": 2.0}, {"syntax": "regex"}, {"field": "body"}, *BAD_OPTIONS]:
        with pytest.raises(tierdex.UsageError):
            index.search("word1", **options)  # type: ignore[arg-type]
    with pytest.raises(tierdex.QueryError, match="1024"):
        index.search([str(number) for number in range(2000)])


#: Options that are no numbers in their range, or no text.
BAD_OPTIONS: list[dict[str, object]] = [
    {"deadline": -1.0},
    {"deadline": float("nan")},
    {"deadline": 10**400},
    {"k1": 10**400},
    {"b": "0.75"},
    {"k": -1},
    {"k": 2**70},
    {"k": "10"},
    {"k": 2.5},
    {"syntax": "\ud800"},
    {"field": "\ud800"},
    {"scorer": "\ud800"},
]


def test_advice_is_in_the_words_of_python(index: Index, tmp_path: Path) -> None:
    with pytest.raises(tierdex.UsageError, match=r"Text\(positions=True\)") as fault:
        index.search('"word1 word2"')
    assert "--" not in str(fault.value)
    kept = index.search_batch(['"word1 word2"'], on_error="keep")
    assert "Text(positions=True)" in kept.errors[0][1]
    for manifest in Path(build(tmp_path / "i", [{"id": "a", "text": "b"}]).path).glob("manifest-*"):
        manifest.unlink()
    with pytest.raises(tierdex.Error, match="overwrite=True"):
        Index.create(tmp_path / "i")


def test_a_search_that_is_awaited(index: Index) -> None:
    async def both() -> list[tierdex.Hits]:
        searches = [index.search_async(query, k=3, count=True) for query in ("word1", "word2")]
        return await asyncio.gather(*searches)

    found = asyncio.run(both())
    assert [hits.ids for hits in found] == [index.search(query, k=3).ids for query in ("word1", "word2")]
    assert all(hits.exact for hits in found)


def test_marks_of_html_escape_the_text(tmp_path: Path) -> None:
    text = "<script>alert('word')</script> & \"more\""
    hit = build(tmp_path / "i", [{"id": "a", "text": text}]).search("word")[0]
    marked = "&lt;script&gt;alert(&#39;<b>word</b>&#39;)&lt;/script&gt; &amp; &quot;more&quot;"
    assert hit.highlight("<b>", "</b>") == marked
    assert hit.highlight() == text.replace("word", "**word**")
    assert hit.highlight("<b>", "</b>", escape=False) == text.replace("word", "<b>word</b>")
    assert hit.highlight("[", "]", escape=True) == marked.replace("<b>", "[").replace("</b>", "]")
    with pytest.raises(tierdex.UsageError):
        hit.highlight("\ud800")


def test_an_ellipsis_stands_for_the_text_around_a_snippet(tmp_path: Path) -> None:
    text = "before " * 100 + "needle" + " behind" * 100
    hit = build(tmp_path / "i", [{"id": "a", "text": text}]).search("needle")[0]
    for shown in (hit.snippet, hit.highlight("", "")):
        assert shown.startswith("…") and shown.endswith("…") and len(shown) < 300
    assert "**needle**" in hit.highlight()


def test_what_is_read_as_text_is_a_warning(index: Index) -> None:
    for query, message in [("bodies:word7", "`bodies:` is read as text"), ("word7 (word9", "has no pair")]:
        for syntax in ("query", "lenient"):
            hits = index.search(query, syntax=syntax)  # type: ignore[arg-type]
            assert len(hits.warnings) == 1 and message in hits.warnings[0]
            assert pickle.loads(pickle.dumps(hits)).warnings == hits.warnings
        assert index.search(query, syntax="terms").warnings == []
    assert index.search("word7 - word9").warnings == []


@pytest.mark.parametrize("positions", [False, True])
def test_text_without_blanks(tmp_path: Path, positions: bool) -> None:
    schema = tierdex.Schema(text=tierdex.Text(positions=positions))
    rows = [{"id": "a", "text": "東京都庁"}, {"id": "b", "text": "都庁と東京都"}]
    index = build(tmp_path / "i", rows, schema)
    assert index.analyze("東京都") == ["東京", "京都", "都"]
    # Both have the bigrams, and only one the phrase.
    assert sorted(index.search("東京都庁").ids) == (["a"] if positions else ["a", "b"])
    assert sorted(index.search("京都庁", syntax="terms").ids) == ["a", "b"]


def test_a_title_that_is_cut_is_marked(tmp_path: Path) -> None:
    title = "ü" * 10_000
    index = build(tmp_path / "i", [{"id": "a", "title": title, "text": "x"}])
    shown = index.search("x")[0].title
    assert shown.endswith("ü…") and title.startswith(shown[:-1]) and len(shown.encode()) > 16_000
    document = index.get("a")
    assert document is not None and document.title == title


def test_hits_are_a_sequence(index: Index, corpus: list[dict[str, object]]) -> None:
    hits = index.search("word3 word4", k=20)
    assert len(hits) == 20 and [hit.id for hit in hits] == hits.ids
    assert [hit.rank for hit in hits] == list(range(1, 21))
    assert hits[-1].id == hits.ids[-1] and [hit.id for hit in hits[2:9:3]] == hits.ids[2:9:3]
    assert [hit.document for hit in hits] == list(hits.documents)
    for position in (20, -21, 10**30, -(10**30)):
        with pytest.raises(IndexError) as fault:
            hits[position]
        assert isinstance(fault.value, tierdex.RangeError)
    by_id = {doc["id"]: doc for doc in corpus}
    for hit in hits:
        assert hit.text == by_id[hit.id]["text"] and hit.title == by_id[hit.id]["title"]
        assert hit.snippet.removeprefix("…").removesuffix("…").strip() in hit.text
        assert "<b>word3</b>" in hit.highlight("<b>", "</b>") or "<b>word4</b>" in hit.highlight("<b>", "</b>")
    assert not hits.scores.flags.writeable


def test_a_batch_has_the_hits_of_single_searches(index: Index, tmp_path: Path) -> None:
    queries: list[object] = [f"{WORDS[i % 200]} +{WORDS[i * 7 % 200]}" for i in range(300)]
    queries += [["word5", "word6"], {"word8": 2.0}, "nothing-here"]
    batch = index.search_batch(queries, k=15)  # type: ignore[arg-type]
    assert len(batch) == 303 and batch.offsets[-1] == len(batch.documents) == len(batch.scores)
    run = batch.to_dict()
    for number, query in enumerate(queries):
        hits = index.search(query, k=15)  # type: ignore[arg-type]
        start, end = batch.offsets[number : number + 2]
        assert (batch.scores[start:end] == hits.scores).all()
        assert (batch.documents[start:end] == hits.documents).all()
        assert batch[number] == list(zip(hits.ids, hits.scores.tolist(), strict=True))
        assert list(run[str(number)]) == hits.ids
    assert batch[-1] == [] and batch.totals[-1] == 0
    batch.to_trec(tmp_path / "run", tag="here")
    lines = (tmp_path / "run").read_text().splitlines()
    assert len(lines) == len(batch.scores)
    assert lines[0].split() == ["0", "Q0", batch[0][0][0], "1", str(np.float32(batch[0][0][1])), "here"]
    with pytest.raises(tierdex.StorageError):
        batch.to_trec(tmp_path / "none" / "run")
    with pytest.raises(tierdex.UsageError, match="one word"):
        batch.to_trec(tmp_path / "run", tag="two words")
    with pytest.raises(IndexError):
        batch[303]


def test_ids_stay_apart_in_a_run(tmp_path: Path) -> None:
    ids = ["a b", "a_b", "50% off", "50%", "a\u00a0b"]
    index = build(tmp_path / "i", [{"id": id, "text": "x"} for id in ids])
    batch = index.search_batch(["x"], qids=["q 1"])
    batch.to_trec(tmp_path / "run")
    columns = [line.split(" ") for line in (tmp_path / "run").read_text().splitlines()]
    assert [line[2] for line in columns] == ["a%20b", "a_b", "50%25%20off", "50%", "a%C2%A0b"]
    assert all(line[0] == "q%201" and len(line) == 6 for line in columns)
    same = build(tmp_path / "j", [{"id": id, "text": "x"} for id in ("a b", "a%20b")])
    with pytest.raises(tierdex.UsageError, match='"a b" and "a%20b" would both be'):
        same.search_batch(["x"]).to_trec(tmp_path / "run")
    with pytest.raises(tierdex.UsageError, match="path"):
        batch.to_trec(b"run")  # type: ignore[arg-type]


def test_batches_take_many_kinds_of_queries(index: Index) -> None:
    texts = ["word1 word2", "word3", "word1 word2"]
    expected = index.search_batch(texts, k=5).to_dict()
    for same in [
        pa.array(texts),
        pa.chunked_array([texts[:1], texts[1:]]),
        pl.Series(texts),
        pd.Series(texts),
        np.array(texts),
        (text for text in texts),
    ]:
        assert index.search_batch(same, k=5).to_dict() == expected
    named = index.search_batch({"q1": "word1", "q2": "word2"}, k=1)
    assert named.qids == ["q1", "q2"] and list(named.to_dict()) == ["q1", "q2"]
    # Query ids may repeat.
    assert index.search_batch(texts, qids=[1, 2, 1]).qids == ["1", "2", "1"]
    empty = index.search_batch([])
    assert len(empty) == 0 and empty.to_arrow().num_rows == 0 and empty.to_pandas().empty
    with pytest.raises(tierdex.UsageError, match="3 queries, but 1 qids"):
        index.search_batch(texts, qids=["a"])
    with pytest.raises(tierdex.UsageError, match="not a str"):
        index.search_batch("word1")


def test_queries_that_fail(index: Index) -> None:
    queries = ["word1", "word1 AND", "word2"]
    with pytest.raises(tierdex.QueryError) as fault:
        index.search_batch(queries, qids=["a", "b", "c"])
    assert fault.value.__notes__ == ['query "b"']
    kept = index.search_batch(queries, k=3, on_error="keep")
    assert [number for number, _ in kept.errors] == [1] and "nothing on its right" in kept.errors[0][1]
    assert list(kept.offsets) == [0, 3, 3, 6]
    skipped = index.search_batch(queries, k=3, on_error="skip")
    assert skipped.errors == kept.errors and skipped.to_dict() == kept.to_dict()
    with pytest.raises(tierdex.UsageError):
        index.search_batch(queries, on_error="ignore")  # type: ignore[arg-type]


def test_damage_is_no_error_of_a_query(tmp_path: Path) -> None:
    index = build(tmp_path / "i", documents(3000))
    index.close()
    damaged_file = next((tmp_path / "i").glob("*.postings"))
    damaged = bytearray(damaged_file.read_bytes())
    for position in range(0, len(damaged), 512):
        damaged[position] ^= 1
    damaged_file.write_bytes(damaged)
    with pytest.raises(tierdex.CorruptError):
        index.search_batch(WORDS, on_error="keep")


def test_columns_are_shared_and_not_copied(index: Index) -> None:
    batch = index.search_batch(["word1", "word2"], k=50)
    table = batch.to_arrow()
    assert table.column_names == ["qid", "id", "document", "score", "rank"]

    def address(column: object) -> int:
        return int(pa.table(table).column(column).chunk(0).buffers()[1].address)  # type: ignore[call-overload]

    scores = batch.scores
    assert address("score") == scores.__array_interface__["data"][0]
    assert address("document") == batch.documents.__array_interface__["data"][0]
    frame = pl.DataFrame(batch)
    shared = frame["score"].to_numpy(allow_copy=False)
    assert shared.__array_interface__["data"][0] == address("score")
    assert (shared == scores).all()
    # Arrow-backed pandas columns have the same memory.
    backed = pd.DataFrame({"score": pd.arrays.ArrowExtensionArray(table.column("score"))})
    chunk = pa.array(backed["score"].array._pa_array.chunk(0))  # type: ignore[union-attr]
    assert chunk.buffers()[1].address == address("score")
    table_of_hits = table
    total = duckdb.sql("select count(*), max(score) from table_of_hits").fetchall()
    assert table_of_hits is table and total == [(100, max(scores))]
    ids = batch.ids()
    assert pa.array(ids).to_pylist() == ids.to_list() == table.column("id").to_pylist()
    assert len(ids) == 100
    with pytest.raises(tierdex.UsageError, match="strings"):
        np.asarray(ids)
    # The columns keep their memory alive.
    del batch
    assert scores[0] == table.column("score")[0].as_py()


def test_results_are_pickled_as_data(index: Index) -> None:
    hits = index.search("word1 word2", k=5)
    copy = pickle.loads(pickle.dumps(hits))
    assert copy.ids == hits.ids and (copy.scores == hits.scores).all() and copy.total == hits.total
    assert [hit.title for hit in copy] == [hit.title for hit in hits]
    assert [hit.highlight() for hit in copy] == [hit.highlight() for hit in hits]
    with pytest.raises(tierdex.UsageError, match="no texts"):
        _ = copy[0].text
    again = pickle.loads(pickle.dumps(copy))
    assert again[0].snippet == hits[0].snippet
    batch = index.search_batch(["word1", "(", "word2"], k=5, on_error="keep")
    other = pickle.loads(pickle.dumps(batch))
    assert other.to_dict() == batch.to_dict() and other.errors == batch.errors
    assert other.to_pandas().equals(batch.to_pandas())
    hit = pickle.loads(pickle.dumps(hits[2]))
    assert (hit.id, hit.rank, hit.snippet) == (hits[2].id, 3, hits[2].snippet)
    together = pickle.loads(pickle.dumps(list(hits)))
    assert [hit.id for hit in together] == hits.ids
    document = index.get(hits.ids[0])
    assert pickle.loads(pickle.dumps(document)) == document


def test_documents_by_id_and_by_number(index: Index, corpus: list[dict[str, object]]) -> None:
    found = index.get_many(["d5", "missing", "d2999", "d5"])
    assert [doc and doc.id for doc in found] == ["d5", None, "d2999", "d5"]
    document = index.get("d17")
    assert document is not None
    assert (document.text, document.title) == (corpus[17]["text"], corpus[17]["title"])
    assert [doc.id for doc in index.documents([2999, 0])] == ["d2999", "d0"]
    assert index.get("nothing") is None
    with pytest.raises(tierdex.UsageError, match="no document 3000"):
        index.documents([3000])
    for number in (-1, 2**32, 10**30, "x", float("inf")):
        with pytest.raises(tierdex.UsageError, match="document number"):
            index.documents([number])  # type: ignore[list-item]
    with pytest.raises(tierdex.UsageError, match="surrogate"):
        index.get("\ud800")


def test_the_last_of_documents_with_equal_ids_is_read(tmp_path: Path) -> None:
    index = build(tmp_path / "i", [{"id": "a", "text": "old"}, {"id": "a", "text": "new"}])
    document = index.get("a")
    assert document is not None and document.text == "new"


def test_terms_are_listed(index: Index, corpus: list[dict[str, object]]) -> None:
    lists = [f"{doc['title']} {doc['text']}".split() for doc in corpus]
    occurrences = Counter(term for terms in lists for term in terms)
    containing = Counter(term for terms in lists for term in set(terms))
    listed = list(index.terms())
    assert [term.term for term in listed] == sorted(occurrences)
    assert {term.term: term.documents for term in listed} == containing
    assert {term.term: term.occurrences for term in listed} == occurrences
    assert [term.term for term in index.terms("word19")] == sorted(
        t for t in occurrences if t.startswith("word19")
    )
    with pytest.raises(tierdex.UsageError):
        next(index.terms(field="none"))


def test_an_evaluation_is_explained(index: Index) -> None:
    explained = index.explain("word1 word199", k=3)
    hits = index.search("word1 word199", k=3)
    assert explained["hits"] == list(zip(hits.ids, hits.scores.tolist(), strict=True))
    (segment,) = explained["segments"]
    assert segment["strategy"] and {use["term"] for use in segment["lists"]} == {"word1", "word199"}
    for use in segment["lists"]:
        assert use["blocks"] == use["decoded"] + use["skipped_by_bound"] + use["skipped_by_range"]


def test_a_memory_budget_changes_no_hit(index: Index) -> None:
    small = Index.open(index.path, dram="30M", threads=1, hits_max=50)
    queries = [f"{a} {b}" for a, b in zip(WORDS, WORDS[7:], strict=False)]
    expected = index.search_batch(queries, k=50)
    found = small.search_batch(queries, k=50)
    assert (found.documents == expected.documents).all() and (found.scores == expected.scores).all()
    assert small.stats()["dram"] == 30 << 20
    for search in (small.search, lambda query, k: small.search_batch([query], k)):
        # Whatever the number of documents that match, or that there are.
        with pytest.raises(tierdex.UsageError, match="k is 10000, but this index was opened for 50 hits"):
            search("word1", k=10_000)
