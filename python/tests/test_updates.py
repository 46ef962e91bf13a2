"""Documents that change: replaced by those with their ids, and deleted by ids and by queries."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tierdex
from corpus import WORDS, build, documents, in_process, tierdex_command
from tierdex import Index, Schema, Text

SCHEMA = Schema({"text": Text(positions=True), "title": Text()})
QUERIES = [*WORDS[:20], "word1 AND word2", "word3 word4 -word5", '"word1 word2"', "word10*", "title:9 word7"]
#: Ids of the histories.
IDS = [f"d{number}" for number in range(150)]


def updatable(path: Path, docs: object = (), **options: Any) -> Index:
    index = Index.create(path, options.pop("schema", SCHEMA), updatable=True, **options)
    with index.writer() as writer:
        writer.upsert_many(docs)
    return index


def found(index: Index, query: str) -> tuple[list[tuple[str, bytes]], int]:
    """Ids and bits of scores of all matches, best first, and their number."""
    hits = index.search(query, k=1000, count=True)
    return [(hit.id, np.float32(hit.score).tobytes()) for hit in hits], hits.total


class Model:
    """The documents that an index should have, in the order of their last write."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}

    def put(self, document: dict[str, Any]) -> dict[str, Any]:
        self.delete([document["id"]])
        self.kept[document["id"]] = document
        return document

    def delete(self, ids: Iterable[str]) -> None:
        for id in ids:
            self.kept.pop(id, None)

    def change(self, choose: random.Random, writer: tierdex.Writer) -> None:
        """Changes an index and this model at random."""
        new = [{**document, "id": choose.choice(IDS)} for document in documents(30, choose.randrange(1 << 30))]
        match choose.randrange(4):
            case 0:
                assert writer.upsert_many(map(self.put, new)) == len(new)
            case 1:
                assert writer.add_many(pa.Table.from_pylist([self.put(document) for document in new])) == len(
                    new
                )
            case 2:
                ids = choose.sample(IDS, 40)
                writer.delete(choose.choice([list, iter, pa.array, pd.Series, pl.Series])(ids))
                self.delete(ids)
            case _:
                for document in new:
                    choose.choice([writer.add, writer.upsert])(self.put(document))
                    # Often the document itself, or one that was added just before.
                    id = choose.choice([document["id"], *IDS[:20]])
                    if choose.random() < 0.7:
                        writer.delete(id)
                        self.delete([id])

    def check(self, index: Index, path: Path) -> None:
        """The index finds what a new one finds."""
        fresh = Index.create(path, SCHEMA, overwrite=True)
        with fresh.writer() as writer:
            writer.add_many(self.kept.values())
        for query in QUERIES:
            assert found(index, query) == found(fresh, query), query
        stats = index.stats()
        assert len(index) == len(self.kept) == stats["documents"] and stats["scores_exact"]
        assert index.check()["orphans"] == []
        read = index.get_many(IDS)
        for id, document in zip(IDS, read, strict=True):
            title_and_text = None if document is None else (document.id, document.title, document.text)
            kept = self.kept.get(id)
            assert title_and_text == (None if kept is None else (id, kept["title"], kept["text"]))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_random_histories(tmp_path: Path, seed: int, threads: int) -> None:
    choose, model, rollbacks = random.Random(seed), Model(), 0
    index = updatable(tmp_path / "i")
    for _ in range(8):
        writer, before = index.writer(memory="512M", threads=threads), dict(model.kept)
        if choose.random() < 0.5:
            title = f"title {choose.randrange(30)}"
            matching = [id for id, document in model.kept.items() if document["title"] == title]
            assert writer.delete_matches(title.replace(" ", ":")) == len(matching)
            model.delete(matching)
        for _ in range(choose.randrange(1, 5)):
            model.change(choose, writer)
        if choose.random() < 0.2:
            writer.rollback()
            model.kept = before
            rollbacks += 1
        else:
            writer.commit(merge=choose.choice([None, None, True]))
            writer.close()
        model.check(index, tmp_path / "fresh")
    assert model.kept and rollbacks < 8


def test_calls_take_effect_in_their_order(tmp_path: Path) -> None:
    index = updatable(tmp_path / "i", [{"id": "a", "text": "old"}, {"id": "b", "text": "old"}])
    with index.writer() as writer:
        writer.delete("a")
        writer.upsert({"id": "a", "text": "new"})
        writer.upsert({"id": "b", "text": "new"})
        writer.delete("b")
        writer.add({"id": "c", "text": "one"})
        writer.add({"id": "c", "text": "two"})
        writer.delete("d")
        writer.add({"id": "d", "text": "one"})
        assert writer.added == 5
    assert index.search("old").total == 0
    read = index.get_many(["a", "b", "c", "d"])
    assert [None if document is None else document.text for document in read] == ["new", None, "two", "one"]


def test_many_deletes_between_documents(tmp_path: Path) -> None:
    """More deletes than are collected before they are applied."""
    index, count = updatable(tmp_path / "i"), 3000
    with index.writer(memory="64M", threads=1) as writer:
        for number in range(count):
            writer.add({"id": number, "text": "a"})
            # The document before the last; and ids that no document has.
            writer.delete(
                [number - 1 if number % 2 else "none", *(f"{number}-{n}{'x' * 60}" for n in range(60))]
            )
    assert len(index) == count // 2
    assert index.search("a", k=count).ids == [str(number) for number in range(1, count, 2)]


@pytest.mark.parametrize("threads", [1, 2])
def test_deletes_in_a_commit_of_several_segments(tmp_path: Path, threads: int) -> None:
    """The writer finishes segments while documents are added, before it applies the deletes between them."""
    index, kept, choose = updatable(tmp_path / "i"), dict[str, str](), random.Random(1)
    with index.writer(memory="16M" if threads == 1 else "256M", threads=threads) as writer:
        for number in range(20_000):
            # Few are replaced and deleted, so that the segments are not merged.
            id = str(number if number % 10 else choose.randrange(number + 1))
            text = " ".join(f"{number}x{word}" for word in range(100))
            writer.upsert({"id": id, "text": text})
            kept[id] = text
            if number % 7 == 0:
                deleted = str(choose.randrange(number + 1))
                writer.delete(deleted)
                kept.pop(deleted, None)
        writer.commit(merge=False)
        assert threads == 2 or index.stats()["segments"] > 1
        read = {document.id: document.text for document in index.get_many(map(str, range(20_000))) if document}
        assert read == kept and len(index) == len(kept)


def test_ids_of_all_kinds(tmp_path: Path) -> None:
    ids = ["FBIS3-1", "WSJ880101-0001", "clueweb12-0000tw-00-00000", "MED-10#p2", "17", "ü/ß 東京", "x" * 4096]
    index = updatable(tmp_path / "i", [{"id": id, "text": "old"} for id in ids])
    with index.writer() as writer:
        writer.upsert_many({"id": id, "text": "new"} for id in ids[:4])
        writer.delete(17)
        writer.delete(np.array([18, 19]))
        writer.delete(ids[5:])
        writer.delete("fbis3-1")
        writer.delete([])
    assert index.search("old").total == 0 and index.search("new").ids == ids[:4]
    assert [document is not None for document in index.get_many([*ids, "none", ids[0]])] == [
        *[True] * 4,
        *[False] * 4,
        True,
    ]


def test_wrong_ids_delete_nothing(tmp_path: Path) -> None:
    index = updatable(tmp_path / "i", [{"id": id, "text": "x"} for id in ("a", "1", "49", "None", "id")])
    wrong: list[object] = [None, 1.0, b"1", bytearray(b"1"), {"id": "a"}]
    wrong += [True, ["a", None], ["a", True], ["a", ["1"]], ["a", ""], "", "a\nb", ["a", "\ud800"]]
    wrong += [pd.DataFrame({"id": ["a"]}), pa.table({"id": ["a"]}), [pd.NA], object(), ("a", b"1")]
    with index.writer() as writer:
        for ids in wrong:
            with pytest.raises(tierdex.UsageError):
                writer.delete(ids)
        with pytest.raises(tierdex.LimitError, match="the id of delete 1 has 4097 bytes"):
            writer.delete(["a", "y" * 4097])
        with pytest.raises(
            tierdex.UsageError, match=r"the id of delete 1 is 1\.5, a float; ids are str or int"
        ):
            writer.delete(["a", 1.5])

        def failing() -> Any:
            yield "a"
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            writer.delete(failing())
    assert len(index) == 5 and index.generation == 2


def test_an_index_that_is_not_updatable(tmp_path: Path) -> None:
    index = build(tmp_path / "i", [{"id": id, "text": text} for id, text in zip("abcdef", WORDS, strict=False)])
    assert not index.stats()["updatable"]
    with index.writer() as writer:
        for call in (
            lambda: writer.upsert({"id": "a", "text": "x"}),
            lambda: writer.upsert_many([{"id": "a", "text": "x"}]),
            lambda: writer.delete("a"),
        ):
            with pytest.raises(tierdex.UsageError, match=r"not updatable.*updatable=True"):
                call()
        assert writer.delete_matches("word0") == 1
        writer.add({"id": "b", "text": "three"})
    assert len(index) == 6 and index.get("a") is None
    document = index.get("b")
    assert document is not None and document.text == "three"
    assert index.stats()["deleted_documents"] == 1


def test_delete_by_query(tmp_path: Path) -> None:
    index = updatable(tmp_path / "i", ({"id": n, "text": f"draft {n % 10}"} for n in range(100)))
    with index.writer() as writer:
        for query in ("", " \t", [], {}, "draft (", "draft AND", "no:x AND (1"):
            with pytest.raises(tierdex.UsageError):
                writer.delete_matches(query)
        with pytest.raises(tierdex.QueryError, match="nothing was deleted") as error:
            writer.delete_matches("draft (")
        assert error.value.position == 6
        with pytest.raises(tierdex.UsageError, match="no field"):
            writer.delete_matches(["1"], field="none")
        with pytest.raises(tierdex.UsageError):
            writer.delete_matches(17)  # type: ignore[arg-type]
        assert writer.delete_matches("other") == 0
        assert writer.delete_matches("draft AND (3 OR 4)") == 20
        assert writer.delete_matches(["5", "6"], field="text") == 20
        assert writer.delete_matches({"7": 1.0, "8": 0.0}) == 10
        writer.delete([3, 0])
        # Documents that no query finds.
        writer.upsert({"id": 9, "text": "draft 3"})
        with pytest.raises(tierdex.UsageError, match=r"1 were added since: commit before, or delete by ids"):
            writer.delete_matches("draft")
        writer.commit()
        assert writer.delete_matches("text:3") == 1
        assert len(index) == 49
    assert len(index) == 48
    with index.writer() as writer:
        assert writer.delete_matches("*:*") == 48
    assert len(index) == 0 and index.search("draft").total == 0


def test_an_exception_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    index = updatable(tmp_path / "i", [{"id": "a", "text": "old"}, {"id": "b", "text": "old"}])
    for error in (ZeroDivisionError, KeyboardInterrupt), (tierdex.UsageError,):
        with pytest.raises(error), index.writer() as writer:
            writer.upsert({"id": "a", "text": "new"})
            writer.commit()
            writer.upsert({"id": "a", "text": "newer"})
            writer.delete("b")
            if tierdex.UsageError in error:
                writer.delete(None)
            raise error[0]
        assert index.search("new").ids == ["a"] and index.search("old").ids == ["b"]
    with pytest.raises(tierdex.UsageError, match="rolled back"):
        writer.delete("b")
    with pytest.raises(tierdex.UsageError, match="rolled back"):
        writer.delete_matches("old")
    with pytest.raises(tierdex.UsageError, match="rolled back"):
        writer.upsert({"id": "a", "text": "x"})


def test_readers_and_statistics(tmp_path: Path) -> None:
    docs = documents(50)
    index = updatable(tmp_path / "i", docs)
    reader = Index.open(tmp_path / "i", refresh="manual")
    assert len(reader) == 50
    with index.writer() as writer:
        writer.delete(["d1", "d2"])
        writer.upsert({**docs[3], "text": "word1"})
    assert len(index) == 48 and len(reader) == 50 and reader.get("d1") is not None
    assert reader.refresh() and len(reader) == 48 and reader.get("d1") is None
    stats = index.stats()
    info = subprocess.run(
        [tierdex_command(), "info", tmp_path / "i", "--format", "json"], capture_output=True, check=True
    )
    shown = json.loads(info.stdout)
    names = ["updatable", "documents", "deleted_documents", "scores_exact", "segments", "bytes", "generation"]
    assert {name: stats[name] for name in names} == {name: shown[name] for name in names}
    assert stats["updatable"] and (stats["documents"], stats["deleted_documents"]) == (48, 3)
    # Without stored documents the terms of deleted ones are not known until a merge.
    bare = updatable(tmp_path / "bare", docs, schema=Schema(stored=False))
    with bare.writer() as writer:
        writer.delete("d1")
    assert not bare.stats()["scores_exact"]
    with bare.writer() as writer:
        writer.commit(merge=True)
    assert bare.stats()["scores_exact"] and bare.stats()["deleted_documents"] == 0
    both = Index.open([tmp_path / "i", updatable(tmp_path / "other", docs).path]).stats()
    assert (both["documents"], both["deleted_documents"], both["updatable"]) == (98, 3, True)


def test_indexes_of_the_command_and_of_ciff_files(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "one two"}\n{"id": "b", "text": "two"}\n')
    command = [tierdex_command(), "index", tmp_path / "docs.jsonl", "--out", tmp_path / "i", "--upsert"]
    subprocess.run(command, check=True, capture_output=True)
    index = Index.open(tmp_path / "i")
    with index.writer() as writer:
        writer.upsert({"id": "a", "text": "three"})
    assert index.search("one OR three").ids == ["a"] and len(index) == 2
    tierdex.ciff.export(index, tmp_path / "i.ciff")
    copy = tierdex.ciff.import_(tmp_path / "i.ciff", tmp_path / "copy", updatable=True)
    with copy.writer() as writer:
        writer.delete("b")
    assert copy.search("two OR three").ids == ["a"]


def test_threads_that_change_their_own_documents(tmp_path: Path) -> None:
    in_process(
        """
        sys.setswitchinterval(1e-4)
        index = tierdex.Index.create(path, updatable=True)
        writer, models = index.writer(memory="64M", threads=1), [set() for _ in range(4)]
        emptied = [0] * 4

        def work(thread):
            choose, kept = random.Random(thread), models[thread]
            for number in range(400):
                ids = [f"{thread}-{choose.randrange(50)}" for _ in range(choose.randrange(1, 5))]
                kind = choose.randrange(10)
                if kind < 5:
                    writer.upsert_many({"id": id, "text": f"of{thread} words"} for id in ids)
                    kept.update(ids)
                elif kind < 8:
                    writer.delete(ids)
                    kept.difference_update(ids)
                else:
                    writer.commit()
                    try:
                        writer.delete_matches(f"of{thread}")
                        kept.clear()
                        emptied[thread] += 1
                    except tierdex.UsageError as error:
                        assert "were added since" in str(error), error

        run(*(lambda thread=thread: work(thread) for thread in range(4)))
        writer.close()
        assert committed(index) == set.union(*models)
        assert all(emptied), emptied
        """,
        tmp_path / "i",
    )


def test_signals_that_raise(tmp_path: Path) -> None:
    """An exception of a timer at any moment: a call that has returned is in the commit, and another one is, or
    is not."""
    in_process(
        """
        class Alarm(Exception):
            pass

        def alarm(*_):
            raise Alarm

        index = tierdex.Index.create(path, updatable=True)
        writer, alarms, choose = index.writer(memory="32M", threads=1), 0, random.Random(1)
        present, unknown = {}, set()
        signal.signal(signal.SIGALRM, alarm)
        while alarms < 150:
            id = str(choose.randrange(100))
            adds = choose.random() < 0.6
            signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-4, 2e-2))
            try:
                try:
                    while True:
                        if adds:
                            writer.upsert({"id": id, "text": "words " * 1000})
                        else:
                            writer.delete([id] * 1000)
                        present[id] = adds
                        unknown.discard(id)
                        id, adds = str(choose.randrange(100)), choose.random() < 0.6
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                alarms += 1
                unknown.add(id)
            if choose.random() < 0.1:
                writer.commit()
        writer.close()
        found = committed(index)
        for id, is_present in present.items():
            assert id in unknown or (id in found) == is_present, id
        assert len(unknown) < 100 and any(present.values()) and not all(present.values())
        """,
        tmp_path / "i",
    )


def test_lost_deletes_are_named(tmp_path: Path) -> None:
    in_process(
        """
        index = tierdex.Index.create(path, updatable=True)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        writer = index.writer(memory="16M", threads=1)
        writer.add_many({"id": id, "text": "word"} for id in ("kept", "other"))
        writer.commit()
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, resource.RLIM_INFINITY))
        writer.delete(["kept", "none"])
        for calls in range(2):
            try:
                writer.commit()
                raise AssertionError("no error")
            except tierdex.StorageError as error:
                assert "2 deletes since the last commit are lost" in str(error), error
        writer.rollback()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer = index.writer(memory="16M", threads=1)
        assert committed(index) == {"kept", "other"}
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, resource.RLIM_INFINITY))
        writer.delete("kept")
        writer.add({"id": "new", "text": "word"})
        try:
            writer.close()
            raise AssertionError("no error")
        except tierdex.StorageError as error:
            assert "1 documents and 1 deletes since the last commit are lost" in str(error), error
        """,
        tmp_path / "i",
    )
