"""Schemas with members of their own: fields, nested documents, lists, and what is stored."""

from __future__ import annotations

import collections
import copy
import itertools
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tierdex
from corpus import tierdex_command
from tierdex import Index, Schema, Text

FIELDS = {
    "body": Text(stem="english", positions=True),
    "subject": Text(),
    "people": Text(members=["from", "to"]),
    "list": Text(members=["headers.list"], tokenizer="whitespace"),
}
MAILS: list[dict[str, Any]] = [
    {
        "id": "m1",
        "from": "ada@example.org",
        "to": ["bob@example.org", None, "cy@example.org"],
        "subject": "The budget of next year",
        "body": "Please read the plan.",
        "headers": {"list": ["finance", "all"], "date": "Monday"},
    },
    {
        "id": "m2",
        "from": "bob@example.org",
        "to": "ada@example.org",
        "subject": "Re: plan",
        "body": ["The budget is too small.", "Budgets were small before."],
        "headers": [{"list": "all"}, {"x": 1}, None, {"list": "finance/2"}],
    },
    {"id": "m3", "from": "cy@example.org", "subject": None, "body": "Lunch?", "headers": None},
]


def mails(path: Path, **options: Any) -> Index:
    index = Index.create(path, Schema(FIELDS, title="subject", **options))
    with index.writer() as writer:
        writer.add(MAILS[0])
        assert writer.add_many(MAILS[1:]) == 2
    return index


def document(index: Index, id: str) -> tierdex.Document:
    found = index.get(id)
    assert found is not None
    return found


def test_fields_of_mails(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        index = mails(tmp_path / "i")
    index.check()
    hits = index.search("subject:budget^2 body:budget")
    assert hits.ids == ["m1", "m2"]
    assert [hit.title for hit in hits] == ["The budget of next year", "Re: plan"]
    assert hits[1].highlight() == "The **budget** is too small. **Budgets** were small before."
    assert index.search("budget").ids == ["m2"]
    assert index.search("people:bob", k=9, count=True).total == 2
    assert index.search("list:finance").ids == ["m1"] and index.search("list:finance\\/2").ids == ["m2"]
    assert index.search("lunch")[0].title == ""
    assert document(index, "m1").members == {
        "subject": MAILS[0]["subject"],
        "body": MAILS[0]["body"],
        "from": "ada@example.org",
        "to": ["bob@example.org", "cy@example.org"],
        "headers.list": ["finance", "all"],
    }
    last = document(index, "m3")
    assert last.members == {"body": "Lunch?", "from": "cy@example.org"}
    assert (last.title, last.text, last.others) == ("", "", None)
    assert document(index, "m2").members["headers.list"] == ["all", "finance/2"]  # type: ignore[index]
    assert pickle.loads(pickle.dumps(last)) == last != document(index, "m2")


def test_phrases_do_not_match_across_values(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema({"body": Text(positions=True)}))
    with index.writer() as writer:
        writer.add({"id": "1", "body": ["red door", "bell"]})
        writer.add({"id": "2", "body": "red door bell"})
    assert index.search('"door bell"~1000', k=9).ids == ["2"]
    assert sorted(index.search('"red door"', k=9).ids) == ["1", "2"]
    assert document(index, "1").members == {"body": ["red door", "bell"]}


def test_mappings_of_other_types(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(FIELDS, title="subject", stored="all"))
    nested = collections.UserDict({"list": ("a", "b"), "more": 1})
    mail = collections.UserDict({"id": 1, "headers": nested, "other": [1, 2]})
    with index.writer() as writer:
        writer.add(mail)
    assert document(index, "1").members == {"headers.list": ["a", "b"]}
    assert document(index, "1").others == {"headers": {"more": 1}, "other": [1, 2]}


def test_a_whole_name_comes_before_a_path(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(FIELDS, title=None, stored="all"))
    with index.writer() as writer:
        writer.add({"id": "1", "headers.list": "whole", "headers": {"list": "part", "n": 1}})
        writer.add_many(pd.json_normalize([{"id": "2", "headers": {"list": "flat"}}]))
    first, second = document(index, "1"), document(index, "2")
    assert (first.members, first.others) == ({"headers.list": "whole"}, {"headers": {"n": 1}})
    assert (second.members, second.others, second.title) == ({"headers.list": "flat"}, {}, "")


def test_all_is_stored(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="error"):
        index = mails(tmp_path / "i", stored="all")
    assert document(index, "m1").others == {"headers": {"date": "Monday"}}
    assert document(index, "m2").others == {"headers": [{"x": 1}]}
    assert document(index, "m3").others == {}
    with index.writer() as writer:
        writer.add({"id": "a", "body": "x", "größe": 1.5, "nan": float("nan"), "na": pd.NA, "no": None})
        for other in (b"bytes", {1, 2}, [float("nan")]):
            with pytest.raises(tierdex.UsageError, match="document 1 has other members that cannot"):
                writer.add({"id": "b", "body": "x", "other": other})
        with pytest.warns(UserWarning, match="1 of the values had"):
            writer.add({"id": "c", "body": "x", "other": "\ud800"})
    assert document(index, "a").others == {"größe": 1.5, "no": None}
    assert document(index, "c").others == {"other": "\ufffd"}
    copied = pickle.loads(pickle.dumps(document(index, "a")))
    assert copied == document(index, "a") and copied.others == {"größe": 1.5, "no": None}
    assert index.schema == Schema(FIELDS, title="subject", stored="all")


def test_nothing_is_stored(tmp_path: Path) -> None:
    index = mails(tmp_path / "i", stored=False)
    read = document(index, "m1")
    assert (read.title, read.text, read.members, read.others) == (None, None, None, None)
    assert index.search("subject:budget").ids == ["m1"]


def test_unknown_members(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(FIELDS, title="subject"))
    with index.writer() as writer:
        message = r'the members "text" are not indexed; only id, subject, body, from, to and headers\.list are'
        with pytest.warns(UserWarning, match=message):
            writer.add({"id": "1", "body": "x", "text": "y"})
        with warnings.catch_warnings(action="error"):
            writer.add({"id": "1", "body": "x", "text": "y"})
        rows = [{"id": "2", "content": "x", "kind": "y"}]
        message = (
            'has none of the indexed members "subject", "body", "from", "to", "headers.list", but "content"'
        )
        for documents in (rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), pl.DataFrame(rows)):
            with pytest.raises(tierdex.UsageError, match=message):
                writer.add_many(documents)
        with pytest.raises(tierdex.UsageError, match=r'"headers.list"$'):
            writer.add({"id": "2", "headers": {}})
        writer.add({"id": "2", "body": None})
        with pytest.raises(tierdex.UsageError, match="the schema has no member `text`; it has subject, body"):
            writer.add_many(rows, text="content")
    assert len(index) == 3


def test_the_title_alone_is_not_indexed(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(body=Text()))
    with index.writer() as writer:
        with pytest.raises(tierdex.UsageError, match=r'none of the indexed members "body"$'):
            writer.add({"id": "1", "title": "t"})
        assert writer.add_many([{"id": "1", "name": "t", "body": "b"}], title="name") == 1
    assert index.search("b")[0].title == "t"


def test_names_of_members_may_be_paths(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(stored="all"))
    rows = [{"id": "1", "meta": {"name": "t", "n": 1}, "parts": [{"content": "a"}, {"content": ["b", "c"]}]}]
    with index.writer() as writer, warnings.catch_warnings(action="error"):
        assert writer.add_many(rows, title="meta.name", text="parts.content") == 1
    assert document(index, "1").members == {"title": "t", "text": ["a", "b", "c"]}
    assert document(index, "1").others == {"meta": {"n": 1}}


@pytest.mark.parametrize(
    ("mail", "message"),
    [
        ({"subject": 3}, '"subject" of document 0 is a int, not a str'),
        ({"to": ["a", b"b"]}, '"to" of document 0 is a bytes, not a str'),
        ({"to": [["a"]]}, '"to" of document 0 is a list, not a str'),
        ({"to": {"name": "a"}}, '"to" of document 0 is a dict, not a str'),
        ({"headers": "list"}, '"headers" of document 0 is a str, not a dict'),
        ({"headers": [{"list": "a"}, 5]}, '"headers" of document 0 is a int, not a dict'),
        ({"headers": [[{"list": "a"}]]}, '"headers" of document 0 is a list, not a dict'),
        ({"headers": {"list": 1.5}}, '"headers.list" of document 0 is a float, not a str'),
    ],
)
def test_values_of_other_types(tmp_path: Path, mail: dict[str, object], message: str) -> None:
    index = Index.create(tmp_path / "i", Schema(FIELDS, title="subject"))
    with index.writer() as writer:
        with pytest.raises(tierdex.UsageError, match=message):
            writer.add({"id": "1", "body": "lost words"} | mail)
        writer.add({"id": "2", "body": "kept"})
    assert [read.members for read in index.documents([0])] == [{"body": "kept"}]


def arrow_mails() -> pa.Table:
    return pa.table(
        {
            "id": ["m1", "m2", "m3"],
            "subject": pa.array(["The budget", None, ""]),
            "body": pa.array([["a b", None, "", "c"], None, []], pa.list_(pa.string())),
            "to": pa.array([["x"], ["y", "z"], None], pa.large_list(pa.large_string())),
            "headers": pa.array([{"list": "l1", "n": 1}, None, {"list": "l3", "n": 3}]),
        }
    )


def test_arrow_columns_of_lists_and_structs(tmp_path: Path) -> None:
    table = arrow_mails()
    expected: list[dict[str, str | list[str]]] = [
        {"subject": "The budget", "body": ["a b", "c"], "to": "x", "headers.list": "l1"},
        {"to": ["y", "z"]},
        {"headers.list": "l3"},
    ]
    frames = [table, pa.concat_tables([table[:1], table[1:]]), pl.from_arrow(table), table.to_pandas()]
    for number, (frame, stored) in enumerate(itertools.product(frames, (True, "all"))):
        index = Index.create(tmp_path / str(number), Schema(FIELDS, title="subject", stored=stored))
        with index.writer() as writer:
            assert writer.add_many(frame) == 3
            assert writer.add_many(frame[1:2]) == 1
        index.check()
        documents = index.documents(range(4))
        assert [document.members for document in documents] == [*expected, expected[1]]
        others = [{"headers": {"n": 1}}, {}, {"headers": {"n": 3}}] if stored == "all" else [None] * 3
        assert [document.others for document in documents] == [*others, others[1]]


def test_tables_of_which_all_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.create(tmp_path / "i", Schema(FIELDS, title="subject", stored="all"))
    table = pa.table({"id": ["1"], "body": ["x"], "size": [5], "kinds": [["a", None]]})
    frame = table.to_pandas().set_index(pd.Index(["row"]))
    with index.writer() as writer:
        for documents in (table, table.to_batches()[0], pl.from_arrow(table), table.to_reader(), frame):
            assert writer.add_many(documents) == 1
        with pytest.raises(tierdex.UsageError, match="document 0 has other members that cannot be stored"):
            writer.add_many(pa.table({"id": ["2"], "body": ["x"], "blob": [b"x"]}))
        ends = pa.py_buffer(pa.array([0, 1], pa.int32()).buffers()[1])
        damaged = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(b"\xff")])
        with pytest.raises(tierdex.UsageError, match=r"cannot read the table: .*UTF8"):
            writer.add_many(pa.table({"id": ["2"], "body": damaged}))
        rows = pd.DataFrame({"id": ["1"], "body": ["x"], "size": [5], "kinds": "a"})
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert writer.add_many(rows) == 1
        with pytest.raises(tierdex.UsageError, match="pip install pyarrow, or pass dicts"):
            writer.add_many(table)
    read = index.documents(range(6))
    assert [document.others for document in read[:5]] == [{"size": 5, "kinds": ["a", None]}] * 5
    assert read[5].others == {"size": 5, "kinds": "a"}


def test_arrow_columns_that_are_not_read(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(FIELDS, title="subject"))
    ids = pa.array(["1"])
    with index.writer() as writer:
        for name, column, message in [
            ("body", pa.array([1]), 'column "body" has values of type Int64, not strings'),
            ("body", pa.array([[1]]), 'column "body" has values of type Int64, not strings'),
            ("body", pa.array([[["x"]]]), 'column "body" has values of type List'),
            (
                "headers",
                pa.array(["x"]),
                'column "headers.list" has a part "headers" of type Utf8, not a struct',
            ),
            ("headers", pa.array([[{"list": "x"}]]), 'column "headers.list" has a part "headers" of type List'),
        ]:
            with pytest.raises(tierdex.UsageError, match=message):
                writer.add_many(pa.table({"id": ids, name: column}))
        nothing = pa.array([None])
        assert writer.add_many(pa.table({"id": ids, "body": nothing, "headers": nothing})) == 1
        with pytest.warns(UserWarning, match='members "size" are not indexed'):
            writer.add_many(pa.table({"id": ids, "body": ids, "size": pa.array([1])}))


def test_damaged_lists(tmp_path: Path) -> None:
    def lists(ends: list[int]) -> pa.Array:
        values = pa.array(["a", "b", "c"])
        buffers = [None, pa.py_buffer(pa.array(ends, pa.int32()).buffers()[1])]
        return pa.Array.from_buffers(pa.list_(pa.string()), len(ends) - 1, buffers, children=[values])

    index = Index.create(tmp_path / "i", Schema(body=Text()))
    ids = pa.array(["1", "2"])
    with index.writer() as writer:
        for ends in ([0, 2, 1], [0, 9, 3], [0, -1, 3]):
            with pytest.raises(
                tierdex.UsageError, match=r'column "body" is damaged: in row . the offsets of the'
            ):
                writer.add_many(pa.table({"id": ids, "body": lists(ends)}))
        assert writer.add_many(pa.table({"id": ids, "body": lists([1, 1, 3])})) == 2
    assert [read.members for read in index.documents([0, 1])] == [{}, {"body": ["b", "c"]}]


@pytest.mark.parametrize(
    "schema",
    [
        Schema(),
        Schema(FIELDS, title="subject", stored="all"),
        Schema({"title": Text(), "stored": Text(members=["a.b", "c"])}, title=None, stored=False),
        Schema(FIELDS, title="subject", members=["date", "headers.size"]),
    ],
)
def test_schemas_are_values(tmp_path: Path, schema: Schema) -> None:
    index = Index.create(tmp_path / "i", schema)
    names = {"Schema": Schema, "Text": Text}
    for other in (
        pickle.loads(pickle.dumps(schema)),
        copy.deepcopy(schema),
        eval(repr(schema), names),
        index.schema,
    ):
        assert other == schema and repr(other) == repr(schema)
    assert schema != Schema(words=Text())


def test_fields_are_added(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i", Schema(subject=Text(), members=["date"]))
    with index.writer() as writer, pytest.warns(UserWarning, match='"body" are not indexed'):
        writer.add({"id": "1", "date": "Monday", "subject": "Budget", "body": "small"})
    with index.writer(add_fields={"body": Text(stem="english"), "people": Text(members=["from"])}) as writer:
        writer.add({"id": "2", "subject": "Plan", "body": "A small budget", "from": "ada"})
    assert index.search("body:small people:ada").ids == ["2"]
    assert index.search("subject:(budget plan)", k=9, count=True).total == 2
    assert document(index, "1").members == {"date": "Monday", "subject": "Budget"}
    index.check()

    # A new index of this schema has the same one: documents can be added to either, and both searched as one.
    copied = Index.create(tmp_path / "copy", index.schema)
    assert copied.schema == index.schema and list(index.schema.fields) == ["subject", "body", "people"]
    with copied.writer() as writer:
        writer.add({"id": "3", "subject": "Plan", "from": "ada"})
    both = Index.open([tmp_path / "i", tmp_path / "copy"])
    assert sorted(both.search("people:ada").ids) == ["2", "3"]

    with index.writer(add_fields={"list": Text()}) as writer:
        assert writer.commit() == index.generation
    assert list(index.schema.fields)[-1] == "list"
    with index.writer(add_fields={"list": Text()}) as writer:
        writer.add({"id": "4", "list": "all"})
    with pytest.raises(tierdex.UsageError, match="positions: no, here yes"):
        index.writer(add_fields={"list": Text(positions=True)})
    with pytest.raises(tierdex.UsageError, match=r"field 'x' is a str, not a tierdex\.Text"):
        index.writer(add_fields={"x": "y"})  # type: ignore[dict-item]


@pytest.mark.parametrize("title", ["subject", "headline", None])
def test_the_command_and_python_append_to_the_same_index(tmp_path: Path, title: str | None) -> None:
    mail = {"id": "1", "subject": "Budget", "from": "ada", "to": ["bob"]}
    (tmp_path / "mail.jsonl").write_text(json.dumps(mail))
    fields = ["--field", "subject:text:stem=english", "--field", "people:text:from=from+to"]
    schema = Schema({"subject": Text(stem="english"), "people": Text(members=["from", "to"])}, title=title)

    def tierdex_index(name: str, *flags: str) -> None:
        title_flag = [] if title is None else ["--title-field", title]
        command = [tierdex_command(), "index", "mail.jsonl", "--out", name, *fields, *title_flag, *flags]
        subprocess.run(command, cwd=tmp_path, check=True)

    made = Index.create(tmp_path / "python", schema)
    with made.writer() as writer:
        writer.add_many([mail])
    tierdex_index("python", "--append", "--field", "body:text")
    if title is not None:
        tierdex_index("command")
        assert Index.open(tmp_path / "command").schema == schema
        with Index.open(tmp_path / "command").writer(add_fields={"body": Text()}) as writer:
            writer.add(mail)
        indexes = Index.open([tmp_path / "command", tmp_path / "python"])
        assert indexes.search("people:bob", k=9, count=True).total == 4


def test_synonyms(tmp_path: Path) -> None:
    rules = ["tv, television", "telly => tv"]
    index = Index.create(tmp_path / "i", Schema(text=Text(synonyms=rules)))
    with index.writer() as writer:
        writer.add({"id": "1", "text": "a television"})
    index.refresh()
    assert index.search("tv").ids == ["1"]
    assert index.search("telly").ids == []
    assert index.schema == Schema(text=Text(synonyms=rules))
    with index.writer(add_fields={"text": Text(synonyms=["telly => television"])}) as writer:
        writer.add({"id": "2", "text": "a telly"})
    index.refresh()
    assert index.search("tv").ids == []
    assert index.search("telly").ids == ["1"]
    with pytest.raises(tierdex.UsageError, match="synonyms is 'a, b'; it is a list of rules"):
        Text(synonyms="a, b")
    with pytest.raises(tierdex.UsageError, match='rule "a,," for synonyms of field `text`: an entry is empty'):
        Index.create(tmp_path / "j", Schema(text=Text(synonyms=["a,,"])))


def test_arguments_of_schemas(tmp_path: Path) -> None:
    assert (
        Schema(text=Text())
        == Schema(text=Text(members=["title", "text"]))
        != Schema(text=Text(members=["text"]))
    )
    assert Schema(a=Text()) == Schema(a=Text(members=["a"])) != Schema({"a": Text()}, title=None)
    with pytest.raises(tierdex.UsageError, match="give a field of this name in a dict"):
        Schema(title=Text())  # type: ignore[arg-type]
    with pytest.raises(tierdex.UsageError, match="members is 'a'; it is a list of names"):
        Text(members="a")
    with pytest.raises(tierdex.UsageError, match="stored is 'some'"):
        Schema(stored="some")  # type: ignore[arg-type]
    with pytest.raises(tierdex.UsageError, match="title is a int"):
        Schema(title=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="source"):
        Text(source="text")  # type: ignore[call-arg]
    with pytest.raises(tierdex.UsageError, match="`a` of field `t` is named twice"):
        Index.create(tmp_path / "i", Schema(t=Text(members=["a", "a"])))
