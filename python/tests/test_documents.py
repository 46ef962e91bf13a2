"""What is a document: names of members, missing texts, strings of other libraries."""

from __future__ import annotations

import collections
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tierdex
from tierdex import Index, Writer


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Index.create(tmp_path / "index").writer()


ROWS: list[dict[str, object]] = [
    {"id": "1", "body": "words", "url": "u"},
    {"id": "2", "body": "more", "url": "v"},
]


@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda rows: map(collections.UserDict, rows),
        pd.DataFrame,
        pl.DataFrame,
        pa.Table.from_pylist,
    ],
)
def test_a_text_of_another_name_is_rejected(writer: Writer, make: object) -> None:
    with pytest.raises(tierdex.UsageError, match=r'has no "text", but "body", "url": .*text="body"'):
        writer.add_many(make(ROWS))  # type: ignore[operator]
    assert writer.added == 0
    with pytest.warns(UserWarning, match='members "url" are not indexed'):
        assert writer.add_many(make(ROWS), text="body") == 2  # type: ignore[operator]
    with warnings.catch_warnings(action="error"):
        assert writer.add_many(make(ROWS), text="body") == 2  # type: ignore[operator]


@pytest.mark.parametrize("make", [list, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_a_text_may_be_missing_beside_a_title_alone(writer: Writer, make: object) -> None:
    for rows, message in [
        ([{"id": "1", "title": "t", "url": "u"}], 'has no "text", but "url"'),
        ([{"id": "1"}], 'has neither "text" nor "title"'),
        ([{"id": "0", "title": "t"}, {"id": "1", "title": None}], 'document 1 has neither "text" nor "title"'),
    ]:
        with pytest.raises(tierdex.UsageError, match=message):
            writer.add_many(make(rows))  # type: ignore[operator]
    assert writer.add_many(make([{"id": "1", "title": "t"}])) == 1  # type: ignore[operator]
    # A column of nulls of polars is none for Arrow.
    if make is not pl.DataFrame:
        assert writer.add_many(make([{"id": "1", "text": None}])) == 1  # type: ignore[operator]


def test_the_index_of_a_frame_is_no_member(writer: Writer) -> None:
    frame = pd.DataFrame({"id": ["1", "2", "3"], "title": ["a", "b", "c"]})
    with warnings.catch_warnings(action="error"):
        assert writer.add_many(frame[frame["title"] != "b"]) == 2


def test_a_warning_for_each_name_once(writer: Writer) -> None:
    with pytest.warns(UserWarning, match='members "date", "url" are'):
        writer.add({"id": "1", "text": "x", "date": 1, "url": 2})
    with pytest.warns(UserWarning, match='members "new" are'):
        writer.add({"id": "1", "text": "x", "date": 1, "new": 2})
    with warnings.catch_warnings(action="error"):
        writer.add({"id": "1", "text": "x", "date": 1, "new": 2})
        # A document whose warning is an error is not added.
        with pytest.raises(UserWarning):
            writer.add({"id": "1", "text": "x", "other": 1})
        with pytest.raises(UserWarning):
            writer.add_many([{"id": "1", "text": "x"}, {"id": "1", "text": "x", "more": 1}])
    assert writer.added == 4


def strings(values: list[bytes], kind: pa.DataType = pa.string()) -> pa.Array:  # noqa: B008
    """Strings of any bytes, which pyarrow does not check."""
    wide = kind == pa.large_string()
    ends = np.cumsum([0, *map(len, values)]).astype(np.int64 if wide else np.int32)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def views(values: list[bytes]) -> pa.Array:
    buffers = pa.array(values, pa.binary_view()).buffers()
    return pa.Array.from_buffers(pa.string_view(), len(values), buffers)


def encoded(values: list[bytes]) -> pa.Array:
    keys = pa.array(range(len(values)), pa.int8())
    return pa.DictionaryArray.from_arrays(keys, strings(values))


def cast(values: list[bytes]) -> pa.Array:
    return pa.array(values, pa.binary()).cast(pa.string(), safe=False)


KINDS = [strings, lambda values: strings(values, pa.large_string()), views, encoded, cast]
LONG = b"a text of more than twelve bytes, "
BAD = [b"sound", LONG + b"\xff\xfe tail", b"cut \xe2\x82", b"\x80", "fünf".encode()]


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_not_utf8_become_replacement_characters(tmp_path: Path, kind: object) -> None:
    column = kind(BAD)  # type: ignore[operator]
    table = pa.table({"id": ["a", "b", "c", "d", "e"], "text": column, "title": column})
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        with pytest.warns(UserWarning, match="^6 of the titles and texts had bytes that are not UTF-8"):
            assert writer.add_many(table) == 5
        with pytest.warns(UserWarning, match="^4 of the titles"):
            assert writer.add_many(table.slice(2, 2)) == 2
        with warnings.catch_warnings(action="error"):
            assert writer.add_many(table.slice(4)) == 1
    index.check()
    expected = [value.decode(errors="replace") for value in BAD]
    read = index.documents(range(8))
    assert [document.text for document in read] == expected + expected[2:4] + expected[4:]
    assert [document.title for document in read] == [document.text for document in read]
    assert index.search("tail").ids == ["b"] and index.search("fünf", k=9).ids == ["e", "e"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_that_is_not_utf8_is_an_error(tmp_path: Path, kind: object) -> None:
    ids = [b"first id, which is longer than a view", b"\xffbad", b"third"]
    index = Index.create(tmp_path / "i")
    table = pa.table({"id": kind(ids), "text": ["x"] * 3})  # type: ignore[operator]
    with index.writer() as writer, pytest.raises(tierdex.UsageError, match="the id of document 1 is not UTF-8"):
        try:
            writer.add_many(table)
        finally:
            writer.commit()
    assert index.search("x").ids == [ids[0].decode()]


def test_a_character_that_is_cut_by_two_values(tmp_path: Path) -> None:
    euro = "€".encode()
    index = Index.create(tmp_path / "i")
    with index.writer() as writer, pytest.warns(UserWarning, match="^2 of"):
        writer.add_many(pa.table({"id": ["a", "b"], "text": strings([euro[:1], euro[1:]])}))
    assert "€" not in "".join(document.text or "" for document in index.documents([0, 1]))


def test_nulls_over_any_bytes(tmp_path: Path) -> None:
    validity = pa.py_buffer(bytes([0b101]))
    ends = pa.py_buffer(np.array([0, 1, 3, 4], np.int32))
    column = pa.Array.from_buffers(pa.string(), 3, [validity, ends, pa.py_buffer(b"a\xff\xffb")])
    index = Index.create(tmp_path / "i")
    with index.writer() as writer, warnings.catch_warnings(action="error"):
        writer.add_many(pa.table({"id": ["1", "2", "3"], "text": column}))
    assert [document.text for document in index.documents(range(3))] == ["a", "", "b"]


def falling() -> pa.Array:
    ends = pa.py_buffer(np.array([0, 5, 2, 6], np.int32))
    return pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"abcdefgh")])


def outside() -> pa.Array:
    keys = pa.array([0, 1, 9], pa.int32())
    return pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"]), safe=False)


def negative() -> pa.Array:
    keys = pa.array([0, 1, -5], pa.int8())
    return pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"]), safe=False)


def no_buffer() -> pa.Array:
    view = pa.array([b"short"] * 3, pa.binary_view()).buffers()[1].to_pybytes()
    far = np.array([40, 0, 7, 0], np.int32).tobytes()
    return pa.Array.from_buffers(pa.string_view(), 3, [None, pa.py_buffer(view[:32] + far)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (falling, "in row 1 the offsets"),
        (outside, "in row 2 the key is outside"),
        (negative, "in row 2 the key is outside"),
        (no_buffer, "in row 2 the view"),
    ],
)
def test_damaged_columns(tmp_path: Path, make: object, message: str) -> None:
    try:
        column = make()  # type: ignore[operator]
    except pa.ArrowInvalid:
        pytest.skip("this version of pyarrow does not make it")
    sound = pa.array(["a", "b", "c"])
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        for name in ("id", "title", "text"):
            table = pa.table({"id": sound, "title": sound, "text": sound} | {name: column})
            with pytest.raises(tierdex.UsageError, match=f'column "{name}" is damaged: {message}'):
                writer.add_many(table)
        assert writer.added == 0


def test_queries_in_columns_that_are_not_utf8(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    with pytest.raises(tierdex.UsageError, match="not UTF-8"):
        index.search_batch(strings([b"a", b"\xff"]))
