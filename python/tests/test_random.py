"""Random input never raises anything but `tierdex.Error`."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tierdex
from tierdex import Index, Schema, Text

ANY = st.one_of(
    st.text(), st.none(), st.integers(), st.floats(), st.booleans(), st.binary(), st.lists(st.text(max_size=3))
)
TEXT = st.text(st.characters(exclude_categories=[]), max_size=80)
QUERY = st.one_of(
    TEXT,
    st.text(st.sampled_from('ab +-#"()~^*:\\1'), max_size=40),
    st.dictionaries(TEXT, st.floats(), max_size=5),
    st.lists(TEXT, max_size=5),
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Index:
    index = Index.create(tmp_path_factory.mktemp("random") / "i", Schema(text=Text(positions=True)))
    with index.writer() as writer:
        writer.add_many({"id": n, "text": f"a b ab {'a' * n} {n}"} for n in range(50))
    return index


@settings(max_examples=400, deadline=None)
@given(query=QUERY, k=st.integers(0, 60), syntax=st.sampled_from(["query", "lenient", "terms"]))
def test_queries(small: Index, query: object, k: int, syntax: str) -> None:
    try:
        hits = small.search(query, k, syntax=syntax)  # type: ignore[arg-type]
    except tierdex.Error as error:
        assert "\n" not in str(error) or "\n" in str(query)
        assert not isinstance(error, tierdex.InternalError)
    else:
        assert len(hits) <= k


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    docs=st.lists(
        st.one_of(
            st.fixed_dictionaries(
                {"id": st.one_of(TEXT, st.integers())}, optional={"text": TEXT, "title": TEXT}
            ),
            st.dictionaries(st.sampled_from(["id", "text", "title"]), ANY),
            ANY,
        ),
        max_size=8,
    )
)
def test_documents(tmp_path: Path, docs: list[object]) -> None:
    index = Index.create(tmp_path / "i", overwrite=True)
    added = []
    with index.writer(memory="16M", threads=1) as writer:
        for document in docs:
            try:
                writer.add(document)  # type: ignore[arg-type]
            except tierdex.Error as error:
                assert not isinstance(error, tierdex.InternalError)
            else:
                added.append(document)
    assert len(index) == len(added)
    for number, document in enumerate(added):
        (read,) = index.documents([number])
        assert read.id == str(document["id"])  # type: ignore[index]
    assert index.check()["documents"] == len(added)


NESTED = st.recursive(
    ANY, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(docs=st.lists(st.dictionaries(st.sampled_from("abc"), NESTED), max_size=5))
def test_nested_documents(tmp_path: Path, docs: list[dict[str, object]]) -> None:
    schema = Schema(a=Text(), b=Text(members=["b", "a.b", "c.a.b"]), title=None, stored="all")
    index = Index.create(tmp_path / "i", schema, overwrite=True)
    added = 0
    with index.writer(memory="16M", threads=1) as writer, warnings.catch_warnings(action="ignore"):
        for document in docs:
            try:
                writer.add({"id": added, **document})
            except tierdex.Error as error:
                assert not isinstance(error, tierdex.InternalError)
            else:
                added += 1
    assert len(index) == index.check()["documents"] == added
    for read in index.documents(range(added)):
        assert read.members is not None and isinstance(read.others, dict)
