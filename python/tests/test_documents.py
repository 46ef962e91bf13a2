"""What is a document: names of members, missing texts, strings of other libraries."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterator
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
        with pytest.warns(UserWarning, match="^6 of the values had bytes that are not UTF-8"):
            assert writer.add_many(table) == 5
        with pytest.warns(UserWarning, match="^4 of the values"):
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


def test_columns_may_change_after_the_call(tmp_path: Path) -> None:
    """Such as a buffer into which a program reads one chunk after the other."""
    rows, size = 3000, 300
    memory = np.frombuffer(b"plain words " * (rows * size // 12), np.uint8).copy()
    ends = np.arange(0, size * rows + 1, size)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(memory)]
    table = pa.table(
        {"id": pa.array(range(rows)), "text": pa.Array.from_buffers(pa.large_string(), rows, buffers)}
    )
    index = Index.create(tmp_path / "i")
    with index.writer(memory="32M", threads=1) as writer:
        assert writer.add_many(table) == rows
        memory[:], ends[:] = 0xFF, -1
    index.check()
    assert index.search("plain", k=1, count=True).total == rows
    assert index.documents([rows - 1])[0].text == "plain words " * (size // 12)


def test_views_of_null_rows_are_not_read(tmp_path: Path) -> None:
    # Each claims 2 GiB: the sum is more than there is memory.
    rows = 100_000
    far = np.array([2**31 - 1, 0, 77, 2**31 - 1], np.int32).tobytes()
    validity = pa.py_buffer(b"\1" + bytes(rows // 8))
    sound = np.array([0, 0, 0, 0], np.int32).tobytes()
    column = pa.Array.from_buffers(
        pa.string_view(), rows, [validity, pa.py_buffer(sound + far * (rows - 1)), pa.py_buffer(b"x" * 20)]
    )
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        assert writer.add_many(pa.table({"id": pa.array(range(rows)), "text": column})) == rows
    assert {document.text for document in index.documents([0, 1, rows - 1])} == {""}


def test_rows_that_are_null(tmp_path: Path) -> None:
    names = pa.array(["a", "b", "c"])
    rows = pa.StructArray.from_arrays([names, names], ["id", "text"], mask=pa.array([False, True, False]))
    index = Index.create(tmp_path / "i")
    with index.writer() as writer:
        for table in (rows, pa.chunked_array([rows[:1], rows[1:]])):
            with pytest.raises(tierdex.UsageError, match="document 1 is null"):
                writer.add_many(table)
        assert writer.add_many(rows[2:]) == 1
    assert [document.id for document in index.documents(range(3))] == ["a", "a", "c"]


class Capsules:
    """An Arrow array of the capsules of another one."""

    def __init__(self, capsules: object) -> None:
        self.capsules = capsules

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.capsules


def test_what_is_no_table(writer: Writer) -> None:
    array = pa.array(["a", "b"])
    for wrong in (array, pa.chunked_array([array]), Capsules((1, 2)), Capsules(None)):
        with pytest.raises(tierdex.UsageError, match="table"):
            writer.add_many(wrong)
    for wrong in (3, None, object()):
        with pytest.raises(tierdex.UsageError, match="documents"):
            writer.add_many(wrong)
    used = Capsules(pa.record_batch({"id": array, "text": array}).__arrow_c_array__())
    assert writer.add_many(used) == 2
    with pytest.raises(tierdex.Error):
        writer.add_many(used)
    assert writer.added == 2


@pytest.mark.parametrize("error", [ValueError("of a reader"), KeyboardInterrupt()])
def test_a_stream_of_python_that_raises(writer: Writer, error: BaseException) -> None:
    names = pa.array(["a", "b"])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": names, "text": names})
        raise error

    schema = pa.schema({"id": pa.string(), "text": pa.string()})
    with pytest.raises((tierdex.UsageError, KeyboardInterrupt)) as raised:
        writer.add_many(pa.RecordBatchReader.from_batches(schema, batches()))
    assert isinstance(raised.value, KeyboardInterrupt) is isinstance(error, KeyboardInterrupt)
    assert str(error) in str(raised.value) and "\n" not in str(raised.value)
    assert writer.added == 2


def test_a_frame_whose_progress_lacks_a_module_is_added_once(writer: Writer) -> None:
    def progress(done: int, total: int | None) -> None:
        raise ImportError

    with pytest.raises(ImportError):
        writer.add_many(pd.DataFrame({"id": ["a", "b"], "text": ["x", "y"]}), progress=progress)
    assert writer.added == 2


def test_a_frame_without_pyarrow(writer: Writer) -> None:
    class Frame(pd.DataFrame):  # type: ignore[misc]
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("pyarrow is required")

    assert writer.add_many(Frame({"id": ["a", "b"], "text": ["x", "y"]})) == 2


def test_queries_in_columns_that_are_not_utf8(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    with pytest.raises(tierdex.UsageError, match="not UTF-8"):
        index.search_batch(strings([b"a", b"\xff"]))
