"""Exchange by CIFF files."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import tierdex
from corpus import WORDS, build, documents
from tierdex import Index, ciff


def test_a_round_trip_has_the_same_hits_and_the_same_bytes(index: Index, tmp_path: Path) -> None:
    report = ciff.export(index, tmp_path / "first.ciff", description="a test")
    assert report.documents == len(index) and report.lists == len(list(index.terms()))
    copy = ciff.import_(tmp_path / "first.ciff", tmp_path / "copy")
    queries = [f"{a} {b}" for a, b in zip(WORDS, WORDS[5:], strict=False)]
    expected, found = index.search_batch(queries, k=50), copy.search_batch(queries, k=50)
    assert (found.documents == expected.documents).all() and found.ids().to_list() == expected.ids().to_list()
    assert (found.scores == expected.scores).all()
    assert ciff.export(copy, tmp_path / "second.ciff", description="a test") == report
    assert (tmp_path / "second.ciff").read_bytes() == (tmp_path / "first.ciff").read_bytes()


def test_compressed_files(index: Index, tmp_path: Path) -> None:
    ciff.export(index, tmp_path / "plain.ciff")
    ciff.export(index, tmp_path / "packed.ciff.gz")
    assert gzip.decompress((tmp_path / "packed.ciff.gz").read_bytes()) == (tmp_path / "plain.ciff").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["packed.ciff.gz", "plain.ciff"]
    assert len(ciff.import_(tmp_path / "packed.ciff.gz", tmp_path / "copy")) == len(index)
    with pytest.raises(tierdex.UsageError, match="already"):
        ciff.import_(tmp_path / "plain.ciff", tmp_path / "copy")
    assert len(ciff.import_(tmp_path / "plain.ciff", tmp_path / "copy", overwrite=True)) == len(index)


def test_terms_that_queries_do_not_find_are_named(tmp_path: Path) -> None:
    schema = tierdex.Schema(text=tierdex.Text(tokenizer="whitespace"), stored=False)
    with Index.create(tmp_path / "i", schema).writer() as writer:
        writer.add({"id": "1", "text": "ELM oak new-york"})
    ciff.export(Index.open(tmp_path / "i"), tmp_path / "x.ciff")
    with pytest.warns(
        UserWarning, match="2 of 3 terms cannot be found by queries with this analysis; first: 'ELM'"
    ):
        found = ciff.import_(tmp_path / "x.ciff", tmp_path / "copy")
    assert len(found.search("oak")) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ciff.import_(tmp_path / "x.ciff", tmp_path / "same", schema).search("ELM")) == 1


def test_faults_are_one_line(index: Index, tmp_path: Path) -> None:
    with pytest.raises(tierdex.MissingError, match="none"):
        ciff.import_(tmp_path / "none.ciff", tmp_path / "i")
    with pytest.raises(tierdex.UsageError, match="no field"):
        ciff.export(index, tmp_path / "x.ciff", field="body")
    with pytest.raises(tierdex.UsageError, match="directory of the index"):
        ciff.export(index, Path(index.path) / "x.ciff")
    with pytest.raises(tierdex.StorageError):
        ciff.export(index, tmp_path / "none" / "x.ciff")
    ciff.export(index, tmp_path / "cut.ciff.gz")
    packed = (tmp_path / "cut.ciff.gz").read_bytes()
    (tmp_path / "cut.ciff.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(tierdex.StorageError, match="damaged or cut off"):
        ciff.import_(tmp_path / "cut.ciff.gz", tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_changed_files_are_errors_or_sound_indexes(tmp_path: Path) -> None:
    small = build(tmp_path / "small", documents(40))
    ciff.export(small, tmp_path / "sound.ciff")
    sound = (tmp_path / "sound.ciff").read_bytes()
    choose = random.Random(9)
    errors = 0
    for number in range(200):
        changed = bytearray(sound)
        for _ in range(choose.choice([1, 2, 20])):
            changed[choose.randrange(len(changed))] = choose.randrange(256)
        file = tmp_path / "changed.ciff"
        file.write_bytes(changed[: choose.choice([len(changed), choose.randrange(len(changed))])])
        try:
            with warnings.catch_warnings(action="ignore"):
                index = ciff.import_(file, tmp_path / f"i{number}")
        except tierdex.Error as error:
            assert not isinstance(error, tierdex.InternalError) and "\n" not in str(error)
            errors += 1
        else:
            index.check()
            index.close()
    assert errors > 50


def postings_of(index: Index, docs: list[dict[str, object]]) -> tuple[dict[str, dict[int, int]], list[int]]:
    """For each term the frequency in each document, and the lengths of documents, without the index."""
    lists: dict[str, dict[int, int]] = defaultdict(dict)
    lengths = []
    for number, doc in enumerate(docs):
        tokens = index.analyze(f"{doc['title']} {doc['text']}")
        lengths.append(len(tokens))
        for term, count in Counter(tokens).items():
            lists[term][number] = count
    return lists, lengths


def test_ciff_toolkit_reads_the_same_postings(
    index: Index, corpus: list[dict[str, object]], tmp_path: Path
) -> None:
    read = pytest.importorskip("ciff_toolkit.read")
    lists, lengths = postings_of(index, corpus)
    ciff.export(index, file := tmp_path / "ours.ciff", description="a test")
    found: dict[str, dict[int, int]] = {}
    with read.CiffReader(file) as reader:
        header = reader.header
        for one in reader.read_postings_lists():
            document, postings = 0, {}
            for posting in one.postings:
                document += posting.docid
                postings[document] = posting.tf
            assert (one.df, one.cf) == (len(postings), sum(postings.values()))
            found[one.term] = postings
        records = [(one.docid, one.collection_docid, one.doclength) for one in reader.read_documents()]
    assert found == lists and list(found) == sorted(lists)
    assert records == [(number, f"d{number}", length) for number, length in enumerate(lengths)]
    assert (header.num_docs, header.total_docs, header.num_postings_lists) == (3000, 3000, len(lists))
    assert (header.total_postings_lists, header.total_terms_in_collection) == (len(lists), sum(lengths))
    assert header.average_doclength == pytest.approx(sum(lengths) / 3000)
    # The command of the package: the header, then a line for each list and document.
    code = "from ciff_toolkit.cli import dump; dump()"
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=True)
    expected = [f"{term}\tdf: {len(of)}\tcf: {sum(of.values())}" for term, of in sorted(lists.items())]
    expected += [f"Doc {number} (d{number}), length={length}" for number, length in enumerate(lengths)]
    assert done.stdout.splitlines()[-len(expected) :] == expected


def test_files_of_pyterrier_ciff(index: Index, corpus: list[dict[str, object]], tmp_path: Path) -> None:
    """The header and records of our file are those it expects; its file has the same hits as ours."""
    # Its protobuf is newer than that of ciff-toolkit.
    peer = pytest.importorskip("pyterrier_ciff", exc_type=ImportError)
    lists, lengths = postings_of(index, corpus)
    ciff.export(index, tmp_path / "ours.ciff")
    ours = peer.CiffIndex(tmp_path / "ours.ciff")
    header = ours.header()
    assert (header.total_docs, header.total_postings_lists) == (len(lengths), len(lists))
    assert sum(1 for _ in ours) == len(lists) + len(lengths)

    terms: list[dict[str, int]] = [{} for _ in lengths]
    for term, postings in lists.items():
        for number, count in postings.items():
            terms[number][term] = count
    theirs = peer.CiffIndex(tmp_path / "theirs.ciff")
    docs = ({"docno": f"d{number}", "toks": toks} for number, toks in enumerate(terms))
    theirs.indexer(scale=1.0, verbose=False).index(docs)
    imported = ciff.import_(theirs.path, tmp_path / "imported")
    expected = ciff.import_(tmp_path / "ours.ciff", tmp_path / "copy")
    queries = [{a: 2.0, b: 0.5} for a, b in zip(WORDS, WORDS[5:], strict=False)]
    for scorer in ("bm25", "dot"):
        for other in (index, expected):
            a = imported.search_batch(queries, k=50, scorer=scorer)  # type: ignore[arg-type]
            b = other.search_batch(queries, k=50, scorer=scorer)  # type: ignore[arg-type]
            assert (a.documents == b.documents).all() and (a.scores == b.scores).all()
            assert a.ids().to_list() == b.ids().to_list()


def test_quantised_impacts_are_named_and_searched_by_dot(tmp_path: Path) -> None:
    # Lengths are numbers of terms, as in files of quantised impacts.
    def varint(number: int) -> bytes:
        out = b""
        while number > 127:
            out += bytes([number & 127 | 128])
            number >>= 7
        return out + bytes([number])

    def message(*fields: tuple[int, int | bytes]) -> bytes:
        out = b""
        for number, value in fields:
            if isinstance(value, int):
                out += varint(number << 3) + varint(value)
            else:
                out += varint(number << 3 | 2) + varint(len(value)) + value
        return out

    impacts = {"zebra": {0: 200, 2: 7}, "ape": {0: 3, 1: 90}}
    header = [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (6, 4)]
    messages = [message(*header)]
    for term, postings in impacts.items():
        gaps = [document - before for before, document in zip([0, *postings], postings, strict=False)]
        lists = [(4, message((1, gap), (2, tf))) for gap, tf in zip(gaps, postings.values(), strict=True)]
        messages.append(message((1, term.encode()), (2, 2), (3, sum(postings.values())), *lists))
    messages += [message((1, number), (2, f"d{number}".encode()), (3, 2)) for number in range(3)]
    file = tmp_path / "impacts.ciff"
    file.write_bytes(b"".join(varint(len(one)) + one for one in messages))
    with pytest.warns(UserWarning, match="quantised impacts"):
        index = ciff.import_(file, tmp_path / "i")
    hits = index.search({"zebra": 2.0, "ape": 0.5}, scorer="dot")
    assert list(zip(hits.ids, hits.scores, strict=True)) == [("d0", 401.5), ("d1", 45.0), ("d2", 14.0)]
