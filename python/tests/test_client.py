"""Clients of a server: each method against ``tierdex.Index`` on the same directory, errors and retries."""

from __future__ import annotations

import asyncio
import doctest
import hashlib
import inspect
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tierdex
from corpus import WORDS, in_process, tierdex_command
from tierdex import AsyncClient, Client, Index

#: Ids that need care in a path, and documents with marks beyond ASCII.
STRANGE = ["a/b c%2F é?#+&", ".", "..", "%", "Ünïcode東京"]

QUERIES = [
    "word1",
    "word7 word9 word7",
    "+word3 +word4 -word5",
    '"word1 word2" OR word190^2.5',
    "word12*",
    "naïve straße",
    "absent",
    "*:*",
]


@contextmanager
def serving(*arguments: object) -> Iterator[str]:
    """The address of a server that runs until the end of the block."""
    command = [tierdex_command(), "serve", *map(str, arguments), "--listen", "127.0.0.1:0", "--quiet"]
    options = ["--dram", "200M", "--threads", "2", "--wait-max", "60000"]
    server = subprocess.Popen(command + options, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        for line in server.stderr:
            if "listening on " in line:
                yield line.split("listening on ")[1].split(",")[0]
                break
        else:
            pytest.fail("the server did not start")
    finally:
        server.terminate()
        server.communicate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[dict[str, object]]) -> Path:
    """A folder of indexes: documents, mails with others and another title, and one without stored documents."""
    folder = tmp_path_factory.mktemp("served")
    schema = tierdex.Schema(text=tierdex.Text(positions=True))
    with Index.create(folder / "docs", schema, updatable=True).writer() as writer:
        writer.add_many(corpus)
        text = "Die naïve Straße <b>& 東京</b> ist naïve, " + "sehr lang " * 100 + "wie eine Straße."
        writer.add_many({"id": id, "title": f"Straße {id}", "text": text} for id in STRANGE)
        writer.commit()
        writer.delete(["d5", "d77"])
    mails = tierdex.Schema({"body": tierdex.Text(), "subject": tierdex.Text()}, title="subject", stored="all")
    with Index.create(folder / "mails", mails, updatable=True).writer() as writer:
        mail = {"id": 1, "subject": ["Budget", "Lunch"], "body": "Below.", "size": {"kb": 1.5, "read": True}}
        writer.add(mail)
    with Index.create(folder / "bare", tierdex.Schema(stored=False)).writer() as writer:
        writer.add({"id": "x", "title": "Disk", "text": "A disk."})
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(folder) as url:
        yield url


@pytest.fixture(scope="module")
def docs(folder: Path) -> Index:
    return Index.open(folder / "docs")


class Caller:
    """Calls a method of a new client, in an event loop if it is asynchronous."""

    def __init__(self, kind: type[Client] | type[AsyncClient]) -> None:
        self.kind = kind

    def __call__(self, url: str, index: str | None, method: str, *args: Any, **options: Any) -> Any:
        settings = {name: options.pop(name) for name in ("api_key", "retries", "timeout") if name in options}
        if self.kind is Client:
            with Client(url, index, **settings) as client:
                result = getattr(client, method)(*args, **options)
                return list(result) if isinstance(result, Iterator) else result
        return asyncio.run(self.run(AsyncClient(url, index, **settings), method, *args, **options))

    @staticmethod
    async def run(client: AsyncClient, method: str, *args: Any, **options: Any) -> Any:
        async with client:
            result = getattr(client, method)(*args, **options)
            return [item async for item in result] if hasattr(result, "__anext__") else await result


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def call(request: pytest.FixtureRequest) -> Caller:
    return Caller(request.param)


def same_hits(found: tierdex.Hits, expected: tierdex.Hits) -> None:
    assert found.ids == expected.ids and (found.documents == expected.documents).all()
    assert found.scores.dtype == np.float32 and found.documents.dtype == np.uint32
    assert found.scores.tobytes() == expected.scores.tobytes() and not found.scores.flags.writeable
    assert found.generation == expected.generation and found.warnings == expected.warnings
    assert found.timed_out is False and 0 <= found.queued <= found.took


@pytest.mark.parametrize("query", QUERIES)
def test_searches_are_those_of_the_index(call: Caller, url: str, docs: Index, query: str) -> None:
    hits, expected = call(url, "docs", "search", query, 20, count=True), docs.search(query, 20, count=True)
    same_hits(hits, expected)
    assert hits.exact and hits.total == expected.total
    for hit, other in zip(hits, expected, strict=True):
        assert (hit.rank, hit.id, hit.score, hit.document) == (
            other.rank,
            other.id,
            other.score,
            other.document,
        )
        assert (hit.title, hit.snippet) == (other.title, other.snippet)
        assert hit.highlight() == other.highlight()
        assert hit.highlight("<b>", "</b>") == other.highlight("<b>", "</b>")
        assert hit.highlight("[", "]", escape=True) == other.highlight("[", "]", escape=True)
    assert [hit.title for hit in pickle.loads(pickle.dumps(hits))] == [hit.title for hit in expected]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("word1 word150", {"k1": 0.9, "b": 0.4}),
        ("word1 word150", {"scorer": "dot"}),
        ("word1 (word2 AND", {"syntax": "terms", "k": 0}),
        ("word1 (word2 AND", {"syntax": "lenient", "k": 1000, "deadline": 30}),
    ],
)
def test_options_are_those_of_the_index(
    call: Caller, url: str, docs: Index, query: str, options: dict[str, Any]
) -> None:
    hits, expected = (
        call(url, "docs", "search", query, previews=False, **options),
        docs.search(query, **options),
    )
    same_hits(hits, expected)
    # Lower bounds may differ: they depend on what the evaluation has skipped.
    assert hits.total >= len(hits)
    if len(hits):
        with pytest.raises(tierdex.UsageError, match="have no texts"):
            _ = hits[0].title


def test_marks_are_beyond_ascii(call: Caller, url: str) -> None:
    hit = call(url, "docs", "search", "naïve")[0]
    assert hit.highlight("<i>", "</i>").startswith("Die <i>naïve</i> Straße &lt;b&gt;&amp; 東京")


def columns(batch: Any) -> tuple[Any, ...]:
    found = (batch.ids().to_list(), batch.documents.tolist(), batch.scores.tobytes())
    return batch.qids, batch.offsets.tolist(), batch.totals.tolist(), batch.generation, *found


def test_a_batch_is_that_of_the_index(call: Caller, url: str, docs: Index, tmp_path: Path) -> None:
    queries = {f"q {number}": query for number, query in enumerate([*QUERIES, "x" * 20_000, "word2"])}
    done: list[tuple[int, int | None]] = []
    options: dict[str, Any] = {"count": True, "k1": 0.9, "b": 0.4}
    progress: Any = lambda *counts: done.append(counts)  # noqa: E731
    batch = call(url, "docs", "search_batch", queries, 50, progress=progress, **options)
    expected = docs.search_batch(queries, 50, **options)
    assert columns(batch) == columns(expected) and done[-1] == (10, 10) and len(done) == 3
    assert len(batch) == 10 and batch[1] == expected[1] and batch.to_dict() == expected.to_dict()
    assert batch.errors == [] and batch.took > 0
    batch.to_trec(tmp_path / "a", tag="t")
    expected.to_trec(tmp_path / "b", tag="t")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != b""
    assert batch.to_arrow().equals(expected.to_arrow())
    assert batch.to_pandas().equals(expected.to_pandas())
    assert pa.table(batch).equals(batch.to_arrow())
    assert columns(pickle.loads(pickle.dumps(batch))) == columns(batch)
    empty = call(url, "docs", "search_batch", [])
    assert len(empty) == 0 and empty.offsets.tolist() == [0] and empty.to_dict() == {}


def test_errors_of_a_batch(call: Caller, url: str, docs: Index) -> None:
    long = '"' * 70_000
    queries = ["word1", "word1 AND", long, "word2"]
    with pytest.raises(tierdex.QueryError, match="nothing on its right") as fault:
        call(url, "docs", "search_batch", queries)
    assert fault.value.position == 9 and "query '1'" in fault.value.__notes__
    batch = call(url, "docs", "search_batch", queries, 5, qids=["abcd"] * 4, on_error="keep")
    assert batch.qids == ["abcd"] * 4
    assert [number for number, _ in batch.errors] == [1, 2] and "nothing on its right" in batch.errors[0][1]
    assert batch.to_arrow().num_rows == 10
    lenient = call(url, "docs", "search_batch", queries[:2], 5, syntax="lenient", count=True)
    assert columns(lenient) == columns(docs.search_batch(queries[:2], 5, syntax="lenient", count=True))
    with pytest.raises(tierdex.UsageError, match="2 queries, but 1 qids"):
        call(url, "docs", "search_batch", ["a", "b"], qids=["a"])
    with pytest.raises(tierdex.UsageError, match="on_error"):
        call(url, "docs", "search_batch", ["a"], on_error="ignore")
    with pytest.raises(tierdex.LimitError, match="1000"):
        call(url, "docs", "search_batch", ["a"], 1001)


def test_a_long_batch(call: Caller, url: str, docs: Index) -> None:
    """Answers of 90 MB, far more than the buffers of the server and of the connection hold."""
    queries = [f"{WORDS[number % 200]} {WORDS[number * 7 % 199]}" for number in range(20_000)]
    batch = call(url, "docs", "search_batch", queries, 100, count=True)
    expected = docs.search_batch(queries, 100, count=True)
    assert len(batch.scores) > 1_000_000 and columns(batch) == columns(expected)


@pytest.mark.parametrize("options", [{}, {"count": True, "k": 3}, {"scorer": "dot", "syntax": "terms"}])
def test_explanations(call: Caller, url: str, docs: Index, options: dict[str, Any]) -> None:
    query = "word1 word150"
    found, expected = call(url, "docs", "explain", query, **options), docs.explain(query, **options)
    assert found["hits"] == expected["hits"] and found["segments"]
    assert found["threshold"] == pytest.approx(expected["threshold"])
    for segment, other in zip(found["segments"], expected["segments"], strict=True):
        assert set(segment) == set(other) - {"reads"}
        for name in ("id", "documents", "strategy", "nodes"):
            assert segment[name] == other[name]
        for used, list_of in zip(segment["lists"], other["lists"], strict=True):
            assert set(list_of) < set(used)
            for name in ("field", "term", "documents", "blocks"):
                assert used[name] == list_of[name]
            assert used["weight"] == pytest.approx(list_of["weight"])


def same_document(found: tierdex.Document | None, expected: tierdex.Document | None) -> None:
    assert found is not None and expected is not None
    for name in ("id", "title", "text", "members", "others", "document"):
        assert getattr(found, name) == getattr(expected, name), name


def test_documents(call: Caller, url: str, docs: Index, folder: Path) -> None:
    ids = ["d9", "d1000", *STRANGE]
    found = call(url, "docs", "get_many", [*ids, "d5", "nothing", ""])
    for document, id in zip(found, ids, strict=False):
        same_document(document, docs.get(id))
    assert found[len(ids) :] == [None, None, None] and call(url, "docs", "get", "d77") is None
    same_document(call(url, "docs", "get", "d9"), docs.get("d9"))
    same_document(call(url, "mails", "get", "1"), Index.open(folder / "mails").get("1"))
    hits = call(url, "docs", "search", "word3")
    by_number = call(url, "docs", "documents", hits.documents, generation=hits.generation)
    assert [document.id for document in by_number] == hits.ids
    for document, other in zip(by_number, docs.documents(hits.documents), strict=True):
        same_document(document, other)
    with pytest.raises(tierdex.UsageError, match="commit 1 is not open"):
        call(url, "docs", "documents", [1], generation=1)
    with pytest.raises(tierdex.MissingError):
        call(url, "docs", "documents", [1_000_000])
    with pytest.raises(tierdex.UsageError, match="by number and generation"):
        call(url, "bare", "get", "x")
    (bare,) = call(url, "bare", "documents", [0])
    assert (bare.id, bare.title, bare.text, bare.members, bare.others) == ("x", None, None, None, None)
    hit = call(url, "bare", "search", "disk")[0]
    assert (hit.title, hit.snippet, hit.highlight()) == ("", None, None)


def test_a_long_document_is_cut_with_a_warning(call: Caller, tmp_path: Path) -> None:
    with Index.create(tmp_path / "long", updatable=True).writer() as writer:
        writer.add({"id": "long", "text": "word " * 200_000})
    with serving(tmp_path / "long") as url, pytest.warns(UserWarning, match="leaves out its end"):
        document = call(url, None, "get", "long")
    assert 100_000 < len(document.text) < 1_000_000


def test_terms_and_analysis(call: Caller, url: str, docs: Index) -> None:
    for prefix in ("", "word1", "d", "no such"):
        assert call(url, "docs", "terms", prefix) == list(docs.terms(prefix))
    assert len(list(docs.terms())) > 1000
    assert call(url, "mails", "terms", field="subject")[0] == tierdex.Term("budget", 1, 1)
    assert call(url, "docs", "analyze", "Die Straße 東京都") == docs.analyze("Die Straße 東京都")
    with pytest.raises(tierdex.UsageError, match="no field `body`"):
        call(url, "docs", "analyze", "disk", field="body")
    with pytest.raises(tierdex.LimitError, match="16384"):
        call(url, "docs", "analyze", "x" * 20_000)
    found = call(url, "docs", "suggest", "word3 wor")
    assert found.completions[0].text == f"word3 {found.completions[0].word}" and found.correction is None
    assert found.completions[0].documents == next(docs.terms(found.completions[0].word)).documents
    assert call(url, "docs", "suggest", "strasze naïve").correction == "straße naïve"


def test_indexes_and_the_server(call: Caller, url: str, docs: Index) -> None:
    info, stats = call(url, "docs", "info"), docs.stats()
    assert info.name == "docs" and info.generation == docs.generation and info.documents == len(docs)
    assert info.deleted == 2 and info.updatable and info.stores_text and info.stale is None
    (field,) = info.fields
    assert field.name == "text" and field.positions and field.documents == stats["documents"] + 2
    assert call(url, None, "indexes") == [call(url, name, "info") for name in ("bare", "docs", "mails")]
    assert call(url, None, "health") == ("ready", {"bare": "ready", "docs": "ready", "mails": "ready"})
    assert call(url, None, "stats")["engine"]["threads"] == 2
    with Client(url, "docs") as client:
        assert len(client) == len(docs) and client.generation == docs.generation and client
        assert repr(client) == f"tierdex.Client({url!r}, 'docs')"


def test_errors_are_those_of_the_package(call: Caller, url: str) -> None:
    with pytest.raises(tierdex.QueryError, match="nothing on its right") as fault:
        call(url, "docs", "search", "word1 AND")
    assert fault.value.position == 9 and fault.value.__notes__[0].startswith("request ")
    with pytest.raises(tierdex.UsageError, match="3 indexes: bare, docs, mails; name one"):
        call(url, None, "search", "word1")
    for method, argument in [("search", "word1"), ("search_batch", ["word1"]), ("get", "d1")]:
        with pytest.raises(tierdex.MissingError, match="no index has the name `a/b`"):
            call(url, "a/b", method, argument)
    with pytest.raises(tierdex.LimitError, match="1001; at most 1000"):
        call(url, "docs", "search", "word1", 1001)
    with pytest.raises(tierdex.LimitError, match="deadline_ms"):
        call(url, "docs", "search", "word1", deadline=float("inf"))
    with pytest.raises(tierdex.LimitError, match="prefixes and fuzzy words"):
        call(url, "docs", "search", " ".join(f"word{number}*" for number in range(9)))
    for method, argument in [("suggest", "x" * 20_000), ("suggest", "x" * 200_000), ("get", "x" * 100_000)]:
        with pytest.raises(tierdex.LimitError, match="too long"):
            call(url, "docs", method, argument)
    with pytest.raises(tierdex.LimitError, match="longer than"):
        call(url, "docs", "search", "x" * 2_000_000)
    for query in (["word1"], {"word1": 1.0}, b"word1", None, "\ud800"):
        with pytest.raises(tierdex.UsageError):
            call(url, "docs", "search", query)
    bad: list[dict[str, Any]] = [
        {"syntax": "regex"},
        {"scorer": "tf"},
        {"k1": -1.0},
        {"k": -1},
        {"deadline": -1},
    ]
    for options in [*bad, {"k1": float("nan")}, {"deadline": float("nan")}, {"b": "x"}]:
        with pytest.raises(tierdex.UsageError):
            call(url, "docs", "search", "word1", **options)


def test_arguments_of_a_client() -> None:
    for kind in (Client, AsyncClient):
        for wrong in ("127.0.0.1:8765", "ftp://host", "http://", "http://a:b@host", "http://host:x", ""):
            with pytest.raises(tierdex.UsageError, match="url"):
                kind(wrong)
        options: list[dict[str, Any]] = [{"timeout": 0}, {"timeout": "x"}, {"retries": -1}, {"index": "\ud800"}]
        options += [{"index": 3}, {"timeout": float("inf")}, {"timeout": float("nan")}]
        for option in options:
            with pytest.raises(tierdex.UsageError):
                kind(**option)
        for key in ("a\nb", "a b", "é", 3):
            with pytest.raises(tierdex.UsageError, match="api_key") as fault:
                kind(api_key=key)  # type: ignore[arg-type]
            assert repr(key) not in str(fault.value)
        assert "secret" not in repr(kind(api_key="secret"))


def test_a_closed_client(url: str) -> None:
    client = Client(url, "docs")
    client.close()
    with pytest.raises(tierdex.UsageError, match="closed"):
        client.search("word1")
    client.close()


def test_keys(call: Caller, folder: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"test read {hashlib.sha256(b'0123456789abcdef').hexdigest()}\n")
    with serving(folder / "docs", "--api-keys", keys) as url:
        assert call(url, None, "search", "word1", api_key="0123456789abcdef").ids
        assert call(url, None, "health").status == "ready"
        for key in (None, "sesame"):
            with pytest.raises(tierdex.UsageError, match="give it as api_key"):
                call(url, None, "search", "word1", api_key=key)


def test_the_only_index_needs_no_name(call: Caller, folder: Path) -> None:
    with serving(folder / "docs") as url:
        assert call(url, None, "info").name == "docs" and call(url, None, "get", "d1").id == "d1"


def test_threads_share_a_client(url: str, docs: Index) -> None:
    expected = {query: docs.search(query, 20) for query in QUERIES}
    with Client(url, "docs") as client, ThreadPoolExecutor(32) as pool:
        queries = QUERIES * 40
        for query, hits in zip(queries, pool.map(lambda query: client.search(query, 20), queries), strict=True):
            same_hits(hits, expected[query])


def test_tasks_share_a_client(url: str, docs: Index) -> None:
    async def run() -> list[tierdex.Hits]:
        async with AsyncClient(url, "docs") as client:
            return await asyncio.gather(*(client.search(query, 20) for query in QUERIES * 40))

    for query, hits in zip(QUERIES * 40, asyncio.run(run()), strict=True):
        same_hits(hits, docs.search(query, 20))


class Script:
    """A server that answers with what is in a list, and notes the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), list[str]()
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                script.requests.append(self.path)
                status, headers, body = script.answers.pop(0)
                if status == 0:
                    self.close_connection = True
                    return
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": len(body), **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = "Connection" in headers

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Script:
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


TERMS = (200, {}, {"tokens": [{"term": "disk", "start": 0, "end": 4, "position": 0}]})
CUT = (0, {}, b"")


def busy(seconds: object, status: int = 429, kind: str = "overloaded") -> tuple[int, dict[str, Any], Any]:
    error = {"kind": kind, "message": "the server is busy", "retry_after_s": 7, "request_id": "r1"}
    return status, {"Retry-After": seconds}, {"error": error}


@pytest.mark.parametrize(
    "answers",
    [
        [busy(0), busy(0), busy(0), TERMS],
        [busy("0.01", 503, "draining"), busy(0, 503, "draining"), TERMS],
        [(503, {"Retry-After": "0"}, b"<html>"), TERMS],
        [CUT, TERMS],
        [busy(0), CUT, busy(0), TERMS],
        [(200, {"Content-Length": 1000, "Connection": "close"}, b"{"), TERMS],
    ],
)
def test_a_request_is_repeated(call: Caller, answers: list[Any]) -> None:
    with Script(*answers) as server:
        assert call(server.url, "docs", "analyze", "disk") == ["disk"]
    assert server.requests == ["/api/v1/indexes/docs/analyze"] * len(answers)


def test_the_pause_is_that_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    with Script(busy(20), busy("Wed, 21 Oct 2026 07:28:00 GMT"), TERMS) as server:
        assert Client(server.url, "docs").analyze("disk") == ["disk"]
    assert 20 <= pauses[0] <= 25 and 1 <= pauses[1] <= 1.25


@pytest.mark.parametrize(
    ("answers", "options", "error", "message"),
    [
        ([busy(0)] * 4, {}, tierdex.OverloadedError, "the server is busy"),
        ([busy(0)], {"retries": 0}, tierdex.OverloadedError, "the server is busy"),
        # A pause that is longer than the timeout is not begun.
        ([busy(60)], {"timeout": 30}, tierdex.OverloadedError, "the server is busy"),
        ([busy(0, 503, "draining")] * 4, {}, tierdex.ServerError, "the server is busy"),
        ([busy(0, 500, "storage")], {}, tierdex.StorageError, "the server is busy"),
        ([busy(0, 500, "internal")], {}, tierdex.InternalError, "the server is busy"),
        ([busy(0, 418, "teapot")], {}, tierdex.ServerError, "the server is busy"),
        ([CUT, CUT], {}, tierdex.ServerError, "cannot reach http://127.0.0.1:[0-9]+: .*disconnected"),
        ([CUT], {"retries": 0}, tierdex.ServerError, "cannot reach"),
        (
            [(200, {"Content-Type": "text/html"}, b"<html>")],
            {},
            tierdex.ServerError,
            "status 200 and text/html",
        ),
        ([(502, {}, b"<html>")], {}, tierdex.ServerError, "status 502 and no type, not as a tierdex server"),
        ([(301, {"Location": "/"}, b"")], {}, tierdex.ServerError, "status 301"),
        ([(200, {}, b'{"tokens": [')], {}, tierdex.ServerError, "not as a tierdex server"),
        ([(200, {}, {"other": 1})], {}, tierdex.ServerError, "not as a tierdex server"),
        ([(200, {}, [1])], {}, tierdex.ServerError, "not as a tierdex server"),
        ([(200, {}, b"\xff")], {}, tierdex.ServerError, "not as a tierdex server"),
        ([(200, {"Content-Encoding": "gzip"}, b"no")], {}, tierdex.ServerError, "cannot reach"),
        ([(400, {}, {"error": "no"})], {}, tierdex.ServerError, "status 400"),
    ],
)
def test_a_request_fails(
    call: Caller, answers: list[Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with Script(*answers) as server, pytest.raises(error, match=message) as fault:
        call(server.url, "docs", "analyze", "disk", **options)
    assert server.answers == [] and "\n" not in str(fault.value) and isinstance(fault.value, tierdex.Error)
    assert fault.type is error
    if isinstance(fault.value, tierdex.OverloadedError):
        assert fault.value.retry_after == 7


LINE = {
    "qid": "0",
    "generation": 1,
    "total": {"value": 1, "relation": "gte"},
    "hits": [{"score": 1.5, "id": "a", "document": 0}],
    "timed_out": False,
}


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ([LINE], tierdex.ServerError, "1 of 2 queries"),
        ([LINE, LINE], tierdex.ServerError, "mixed up"),
        ([LINE, {**LINE, "qid": "1", "timed_out": True}], tierdex.ExpiredError, "at query '1'"),
        (
            [LINE, {"qid": "1", "generation": 1, "timed_out": False}],
            tierdex.ServerError,
            "not as a tierdex server",
        ),
        (
            [
                LINE,
                {
                    "qid": "",
                    "generation": 1,
                    "timed_out": False,
                    "error": {"kind": "usage", "message": "the body ends early"},
                },
            ],
            tierdex.UsageError,
            "ends early",
        ),
        (
            [
                LINE,
                {
                    "qid": "1",
                    "generation": 1,
                    "timed_out": False,
                    "error": {"kind": "storage", "message": "cannot read"},
                },
            ],
            tierdex.StorageError,
            "cannot read",
        ),
    ],
)
def test_a_batch_fails(call: Caller, lines: list[Any], error: type[Exception], message: str) -> None:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with Script((200, {}, body)) as server, pytest.raises(error, match=message):
        call(server.url, "docs", "search_batch", ["a", "b"], on_error="keep")


def test_a_batch_during_a_commit_is_sent_again(call: Caller) -> None:
    queries = ["a" * 17_000, "b"]
    old, new = (json.dumps({**LINE, "generation": number}).encode() + b"\n" for number in (1, 2))
    other = json.dumps({**LINE, "qid": "1", "generation": 2}).encode() + b"\n"
    with Script((200, {}, old), (200, {}, other), (200, {}, new), (200, {}, other)) as server:
        batch = call(server.url, "docs", "search_batch", queries)
        assert batch.generation == 2 and len(batch.scores) == 2 and server.answers == []
    with (
        Script((200, {}, old), (200, {}, other)) as server,
        pytest.raises(tierdex.ServerError, match="committed to during the batch, 1 times"),
    ):
        call(server.url, "docs", "search_batch", queries, retries=0)


def test_a_stopping_server_is_not_ready(call: Caller) -> None:
    with Script((503, {}, {"status": "stopping", "indexes": {"docs": "ready"}})) as server:
        assert call(server.url, None, "health") == ("stopping", {"docs": "ready"})


def test_without_a_server(call: Caller) -> None:
    with Script() as server:
        pass
    with pytest.raises(tierdex.ServerError, match=r"cannot reach http://.*is `tierdex serve` running") as fault:
        call(server.url, "docs", "info")
    assert isinstance(fault.value, ConnectionError) and "\n" not in str(fault.value)


def test_a_server_that_does_not_answer(call: Caller) -> None:
    release = threading.Event()
    with Script() as server:
        server.answers = Waiting(release)  # type: ignore[assignment]
        with pytest.raises(tierdex.ServerError, match=r"did not answer within 0.2 s; a longer timeout"):
            call(server.url, "docs", "info", timeout=0.2)
        release.set()


class Waiting:
    """Answers that wait for an event."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def pop(self, _: int) -> Any:
        self.event.wait()
        return CUT


def test_the_signatures_are_those_of_the_index() -> None:
    for name in ("search", "search_batch", "explain", "get", "get_many", "documents", "terms", "analyze"):
        client, index = (dict(inspect.signature(getattr(kind, name)).parameters) for kind in (Client, Index))
        added = set(client) - set(index)
        assert added <= {"previews", "generation"}, name
        for parameter in client.keys() - added:
            ours, theirs = client[parameter], index[parameter]
            assert (ours.kind, ours.default) == (theirs.kind, theirs.default), (name, parameter)
        order = [parameter for parameter in index if parameter in client]
        assert [parameter for parameter in client if parameter in index] == order
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public - set(dir(AsyncClient)) == {"generation"}
    for name in public - {"generation"}:
        ours, theirs = getattr(AsyncClient, name), getattr(Client, name)
        parameters = [inspect.signature(method).parameters for method in (ours, theirs)]
        assert parameters[0] == parameters[1] and ours.__doc__, name


def test_httpx_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_process("print('httpx' in sys.modules, 'asyncio' in sys.modules)", "") == "False False\n"
    monkeypatch.setitem(sys.modules, "httpx", None)
    for kind in (Client, AsyncClient):
        with pytest.raises(tierdex.UsageError, match=r"pip install 'tierdex\[client\]'"):
            kind()


def test_examples_of_the_clients(tmp_path: Path) -> None:
    with Index.create(tmp_path / "documents").writer() as writer:
        writer.add({"id": "d1", "title": "Solid-state disk", "text": "A disk without moving parts."})
        writer.add({"id": "d2", "title": "Hard disk", "text": "A disk with platters that turn."})
    with serving(tmp_path / "documents") as url:
        for kind in (Client, AsyncClient):
            text = inspect.getdoc(kind) or ""
            text = text.replace("http://127.0.0.1:8765", url)
            names = {"tierdex": tierdex, "asyncio": asyncio}
            example = doctest.DocTestParser().get_doctest(text, names, kind.__name__, None, None)
            assert example.examples and doctest.DocTestRunner().run(example).failed == 0
