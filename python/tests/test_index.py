"""Creating, writing and opening indexes."""

from __future__ import annotations

import gc
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tierdex
from corpus import build, documents
from tierdex import Index, Schema, Text


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_a_commit_at_the_end_of_the_block_and_none_after_an_exception(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        writer.add({"id": "a", "text": "one"})
        assert writer.added == 1 and len(index) == 0
    assert len(index) == 1 and index.generation == 2
    with pytest.raises(ZeroDivisionError), index.writer() as writer:
        writer.add({"id": "b", "text": "two"})
        writer.commit()
        writer.add({"id": "c", "text": "three"})
        raise ZeroDivisionError
    assert [len(index.search(word)) for word in ("one", "two", "three")] == [1, 1, 0]
    with pytest.raises(tierdex.UsageError, match="rolled back"):
        writer.add({"id": "d"})
    writer.close()
    with index.writer() as writer:
        writer.close()
        with pytest.raises(tierdex.UsageError, match="closed"):
            writer.add({"id": "d"})


def test_the_index_does_not_depend_on_threads_or_on_the_way_of_adding(tmp_path: Path) -> None:
    docs = documents(12_000)
    frame = pd.DataFrame(docs)
    table = pa.Table.from_pylist(docs)
    expected = files(Path(build(tmp_path / "one", docs, threads=1).path))
    assert sum(len(str(doc["text"])) for doc in docs) > 1 << 20, "several pieces"
    assert files(Path(build(tmp_path / "two", iter(docs), threads=2).path)) == expected

    def added(name: str, documents: object) -> dict[str, bytes]:
        return files(Path(build(tmp_path / name, documents).path))

    assert added("frame", frame) == expected
    assert added("table", table) == expected
    assert added("polars", pl.DataFrame(docs)) == expected
    index = Index.create(tmp_path / "each")
    with index.writer() as writer:
        for doc in docs:
            writer.add(doc)
    assert files(tmp_path / "each") == expected


def test_arrow_types_of_strings_and_ids(tmp_path: Path) -> None:
    text = ["a b", None, "c"]
    for name, kind in enumerate([pa.string(), pa.large_string(), pa.string_view()]):
        table = pa.table({"id": pa.array([7, 8, 9]), "text": pa.array(text, kind)})
        index = build(tmp_path / str(name), table)
        assert index.search("c").ids == ["9"] and len(index) == 3
    encoded = pa.table({"id": ["x", "y", "z"], "text": pa.array(text).dictionary_encode()})
    assert build(tmp_path / "dictionary", encoded).search("a").ids == ["x"]
    batch = pa.record_batch({"key": ["x"], "body": ["text"], "title": pa.nulls(1)})
    with Index.create(tmp_path / "names").writer() as writer:
        assert writer.add_many(batch, id="key", text="body") == 1
        for wrong, message in [
            (pa.table({"key": [1.5]}), 'column "id" of ids'),
            (pa.table({"id": [1.5]}), "not strings or integers"),
            (pa.table({"id": ["a"], "text": [3]}), "not strings"),
            (pa.table({"id": ["a"], "other": ["x"]}), "has no"),
            (pa.table({"id": ["a", None], "text": ["x", "y"]}), "document 1 has no id"),
            (pa.table({"id": ["a" * 5000], "text": ["x"]}), "5000 bytes"),
        ]:
            with pytest.raises(tierdex.Error, match=message):
                writer.add_many(wrong)
    assert Index.open(tmp_path / "names").search("text").ids == ["x"]


def test_one_rule_for_values(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        for number, missing in enumerate([None, float("nan"), np.nan, pd.NA]):
            writer.add({"id": number, "text": missing, "title": missing})
        with pytest.warns(UserWarning, match="lone surrogates"):
            writer.add({"id": np.int64(10), "text": "surrogate \ud800 here\0"})
        writer.add({"id": "s", "text": np.str_("numpy")})
        for wrong, message in [
            ({}, 'no member "id"'),
            ({"id": None, "text": ""}, "str or int"),
            ({"id": 1.0, "text": ""}, "str or int"),
            ({"id": True, "text": ""}, "str or int"),
            ({"id": "\ud800", "text": ""}, "surrogate"),
            ({"id": "x" * 4097, "text": ""}, "4097 bytes"),
            ({"id": "x", "text": 3}, '"text" of document 6 is a int'),
            ({"id": "x", "title": b"y"}, '"title" of document 6 is a bytes'),
            ({"id": "x"}, 'has neither "text" nor "title"'),
            (["id"], "not a dict"),
            ("id", "not a dict"),
        ]:
            with pytest.raises(tierdex.Error, match=message):
                writer.add(wrong)  # type: ignore[arg-type]
        with pytest.raises(tierdex.UsageError, match="document 1 has no member"):
            writer.add_many([{"id": "last", "text": ""}, {}])
    assert len(index) == 7
    found = index.search("surrogate here")[0]
    assert (found.id, found.text) == ("10", "surrogate \ufffd here\0")
    assert index.search("numpy").ids == ["s"]
    frame = pd.DataFrame({"docno": [1, 2], "text": ["frame", None]})
    with index.writer() as writer:
        assert writer.add_many(frame, id="docno") == 2
    assert index.search("frame").ids == ["1"]


def test_a_document_that_is_too_large_stops_nothing_else(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    with index.writer(memory="16M") as writer:
        with pytest.raises(tierdex.LimitError, match="split the document"):
            writer.add({"id": "big", "text": "a " * (3 << 20)})
        writer.add({"id": "small", "text": "a"})
    assert index.search("a").ids == ["small"]


def test_schemas_are_kept(tmp_path: Path) -> None:
    schema = Schema(
        {
            "body": Text(members=["text"], stem="english", stop_words=["The", "a"], positions=True),
            "title": Text(fold_accents=True, norms="exact", codec="bp256-delta"),
        },
        words=Text(members=["title", "text"], tokenizer="whitespace"),
        stored=False,
    )
    index = build(tmp_path / "i", [{"id": 1, "title": "Café A", "text": "the running Dogs"}], schema)
    read = index.schema
    assert read.fields["body"].stop_words == ("a", "the")
    assert read.fields["title"] == schema.fields["title"] and list(read.fields) == list(schema.fields)
    assert index.analyze("The dogs ran") == ["dog", "ran"]
    assert index.analyze("Dogs", field="words") == ["Dogs"]
    assert len(index.search('body:"running dog"')) == len(index.search("title:cafe")) == 1
    assert index.search("run")[0].snippet is None and index.search("run")[0].text is None
    assert eval(repr(read), {"Schema": Schema, "Text": Text}) == read
    for wrong in [
        {"text": Text(stem="klingon")},
        {"text": Text(codec="zip")},
        {"bad name": Text()},
        {"t": Text(members=["a", "a"])},
        {"t": Text(members=["a\n"])},
    ]:
        with pytest.raises(tierdex.UsageError):
            Index.create(tmp_path / "wrong", Schema(wrong))
    with pytest.raises(tierdex.UsageError, match=r"not a tierdex\.Text"):
        Schema(text="text")  # type: ignore[arg-type]
    with pytest.raises(tierdex.UsageError, match="english"):
        Text(stop_words="german")  # type: ignore[arg-type]
    assert not (tmp_path / "wrong").exists()


def test_create_replaces_only_when_told(tmp_path: Path) -> None:
    index = build(tmp_path / "i", documents(10))
    assert len(index) == 10
    with pytest.raises(tierdex.UsageError, match="holds an index already"):
        Index.create(tmp_path / "i")
    fresh = Index.create(tmp_path / "i", overwrite=True)
    assert len(fresh) == 0
    assert index.refresh() and len(index) == 0


def test_one_writer_at_a_time_and_waiting_for_it(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    writer = index.writer()
    with pytest.raises(tierdex.BusyError, match="another writer"):
        index.writer()
    with pytest.raises(tierdex.BusyError):
        index.writer(wait=0.05)
    del writer
    gc.collect()
    index.writer().rollback()


def test_commits_of_others_are_seen(tmp_path: Path) -> None:
    index = build(tmp_path / "i", [{"id": 1, "text": "one"}])
    manual = Index.open(tmp_path / "i", refresh="manual")
    before = manual.search("two")
    with index.writer() as writer:
        writer.add({"id": 2, "text": "two"})
        generation = writer.commit()
        assert index.search("two").ids == ["2"] and index.generation == generation
    assert len(manual.search("two")) == 0 == len(before)
    assert manual.refresh() and not manual.refresh()
    assert manual.search("two").ids == ["2"]


def test_later_commits_do_not_merge_unless_told(tmp_path: Path) -> None:
    index = build(tmp_path / "i", documents(10))
    for _ in range(2):
        with index.writer() as writer:
            writer.add({"id": "more", "text": ""})
    assert index.stats()["segments"] == 3
    with index.writer(merge=True) as writer:
        writer.add({"id": "more", "text": ""})
    assert index.stats()["segments"] == 1 and len(index) == 13


def test_errors_have_their_kinds(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        Index.open(tmp_path / "none")
    assert isinstance(missing.value, tierdex.MissingError) and missing.value.errno == 2
    assert "none" in str(missing.value) and "\n" not in str(missing.value)
    with pytest.raises(tierdex.UsageError, match="holds no tierdex index"):
        Index.open(tmp_path)
    with pytest.raises(tierdex.UsageError, match="needed"):
        Index.open(build(tmp_path / "i", documents(10)).path, dram="1M")
    for wrong in [
        {"dram": "5 MB"},
        {"dram": -1},
        {"refresh": "often"},
        {"threads": -1},
        {"threads": 2**70},
        {"hits_max": 2**70},
        {"hits_max": "many"},
    ]:
        with pytest.raises(tierdex.UsageError):
            Index.open(tmp_path / "i", **wrong)  # type: ignore[arg-type]
    with pytest.raises(tierdex.UsageError):
        Index(str(tmp_path / "i"))  # type: ignore[arg-type]
    index = Index.open(tmp_path / "i")
    with pytest.raises(tierdex.UsageError, match="16M is the minimum"):
        index.writer(memory=1000)
    for options in [{"threads": -1}, {"wait": -1.0}, {"wait": float("nan")}]:
        with pytest.raises(tierdex.UsageError):
            index.writer(**options)  # type: ignore[arg-type]
    for path in (b"i", 3, None, "\ud800"):
        with pytest.raises(tierdex.UsageError, match="path"):
            Index.open(path)  # type: ignore[arg-type]
    for error in [
        tierdex.QueryError("m", 3),
        tierdex.RangeError("m"),
        tierdex.MissingError("m", 2, "f"),
        tierdex.CorruptError("m", "f", 4),
        tierdex.UsageError("m"),
    ]:
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and copy.__dict__ == error.__dict__ and str(copy) == "m"


def test_damage_is_found(tmp_path: Path) -> None:
    index = build(tmp_path / "i", documents(500))
    report = index.check()
    assert report["documents"] == 500 and report["postings"] > 500 and report["orphans"] == []
    damaged_file = next((tmp_path / "i").glob("*.postings"))
    damaged = bytearray(damaged_file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    damaged_file.write_bytes(damaged)
    with pytest.raises(tierdex.CorruptError, match="damaged") as found:
        index.check()
    assert found.value.file == damaged_file.name and found.value.offset is not None


def test_a_panic_is_an_error() -> None:
    from tierdex import _tierdex

    with pytest.raises(tierdex.InternalError, match="a defect, it panicked: boom"):
        _tierdex._panic("boom")
    assert issubclass(tierdex.InternalError, Exception)


def test_statistics(index: Index, corpus: list[dict[str, object]]) -> None:
    stats = index.stats()
    assert stats["documents"] == len(index) == 3000 and stats["fields"]["text"]["documents"] == 3000
    tokens = sum(len(f"{doc['title']} {doc['text']}".split()) for doc in corpus)
    assert stats["fields"]["text"]["tokens"] == tokens
    on_disk = sum(file.stat().st_size for file in Path(index.path).iterdir())
    assert 0 < stats["bytes"] <= on_disk and sum(stats["memory"].values()) > 0


def test_progress_is_reported(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        writer.add_many(documents(2000), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2000, 2000) and seen == sorted(seen)
    index.search_batch(["word1"] * 50, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (50, 50)
    with index.writer() as writer, pytest.raises(ZeroDivisionError):
        writer.add_many(documents(10), progress=lambda done, total: 1 // 0)


def test_files_are_closed(tmp_path: Path) -> None:
    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(tmp_path / "i", documents(10)).search("word1")
        before = descriptors()
        for _ in range(5):
            with Index.open(tmp_path / "i") as index:
                assert index.search("word1").total > 0
            assert index.search("word1").total > 0, "it opens again"
            index.close()
        assert descriptors() <= before


def test_a_list_has_several_values(tmp_path: Path) -> None:
    with Index.create(tmp_path / "i").writer() as writer:
        writer.add({"id": "1", "title": ("A", "B"), "text": ["small red", "door bell"]})
        writer.add({"id": "2", "text": [None, "", float("nan")]})
        with pytest.raises(tierdex.UsageError, match="of document 2 is a int, not a str"):
            writer.add({"id": "3", "text": ["a", 5]})
    index = Index.open(tmp_path / "i")
    first, second = index.get_many(["1", "2"])
    assert first is not None and (first.title, first.text) == ("A", "small red\ndoor bell")
    assert first.members == {"title": ["A", "B"], "text": ["small red", "door bell"]}
    assert second is not None and (second.text, second.members) == ("", {})
    hit = index.search("bell")[0]
    assert (hit.title, hit.text) == ("A", first.text)
