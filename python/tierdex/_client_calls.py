"""The calls of the clients of a server, without a connection.

A call is a generator. It yields a request, as the arguments of ``httpx.Client.request``, and is sent the
response or the exception of httpx; or it yields seconds to wait. It returns the result of a method.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Generator, Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from ._arguments import document_numbers, items, named_queries, real_number, text, whole_number
from ._client_answers import (
    BatchColumns,
    document_of,
    exception_of,
    explanation_of,
    hits_of,
    info_of,
    suggestions_of,
)
from ._client_types import Health
from ._errors import Error, LimitError, MissingError, ServerError, UsageError
from ._index import Term
from ._progress import Reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from ._client_types import IndexInfo, Suggestions
    from ._tierdex import Batch, Document, Hits
    from ._types import Progress

T = TypeVar("T")
Call = Generator["dict[str, Any] | float", "httpx.Response | Exception | None", T]

#: Bytes and queries of a request of a batch. httpx sends a request before it reads the answer, so the answers
#: that the server sends meanwhile must not keep it from reading: a request of these bytes fits into the send
#: buffer of the connection. A query that is longer has a request of its own, and no answer before its end.
BATCH_BYTES_MAX = 16 << 10
BATCH_QUERIES_MAX = 256

#: Seconds before a request is repeated, without the header ``Retry-After``.
PAUSE = 1.0

#: Terms of an answer.
TERMS = 1000


class Calls:
    """The calls to an index of a server."""

    def __init__(self, url: str, index: str | None, timeout: float, retries: int) -> None:
        self.url = url.rstrip("/")
        self.index = None if index is None else text("index", index)
        self.timeout = timeout
        self.retries = retries

    def search(
        self, query: object, k: int, previews: bool, deadline: float | None, **options: Any
    ) -> Call[Hits]:
        body = _search_body(query, k, **options)
        request: dict[str, Any] = {"method": "POST", "json": body}
        if deadline is not None:
            seconds = real_number("deadline", deadline)
            if not seconds >= 0:
                raise UsageError(f"deadline is {seconds}; it is a number of seconds, at least 0")
            # The server has the upper limit, which is less than a day.
            seconds = min(seconds, 86400.0)
            body["deadline_ms"] = max(1, round(seconds * 1000))
            # The hits that were found until then still arrive.
            request["timeout"] = max(self.timeout, seconds + 5.0)
        if previews:
            body["hits"] = {"title": True, "snippet": {}}
        return self._ask_index("search", lambda answer: hits_of(answer, previews), **request)

    def explain(self, query: object, k: int, **options: Any) -> Call[dict[str, Any]]:
        body = {**_search_body(query, k, **options), "explain": True}
        return self._ask_index("search", explanation_of, method="POST", json=body)

    def search_batch(
        self,
        queries: Iterable[str] | Mapping[str, str],
        k: int,
        qids: Iterable[object] | None,
        on_error: str,
        progress: Progress,
        *,
        k1: float,
        b: float,
        **options: Any,
    ) -> Call[Batch]:
        params = {"k": whole_number("k", k), **options}
        if options["scorer"] == "bm25":
            params |= _bm25(k1, b)
        qids, values = named_queries(queries, qids)
        names = None if qids is None else list(qids)
        texts = [text("query", query) for query in values]
        for _ in range(self.retries + 1):
            columns = BatchColumns(len(texts), names, on_error)
            done = 0
            with Reporter(progress, len(texts), "queries") as reporter:
                for lines in _parts(texts):
                    part = {"content": b"".join(lines), "headers": {"Content-Type": "application/jsonl"}}

                    def add(
                        content: bytes, expected: int = len(lines), columns: BatchColumns = columns
                    ) -> bool:
                        return columns.add_all(content, expected)

                    if not (
                        yield from self._ask_index("batch", add, bytes, method="POST", params=params, **part)
                    ):
                        break
                    done += len(lines)
                    if reporter.call is not None:
                        reporter.call(done)
                else:
                    return columns.batch()
        raise ServerError(
            f"the index was committed to during the batch, {self.retries + 1} times: send fewer queries at once"
        )

    def get_many(self, ids: Iterable[str]) -> Call[list[Document | None]]:
        found: list[Document | None] = []
        for id in items(ids):
            path = f"documents/{_path_segment('id', str(id))}"
            try:
                found.append((yield from self._ask_index(path, document_of)))
            except MissingError:
                if None not in found:
                    # It may be the index that is missing.
                    yield from self.info()
                found.append(None)
        return found

    def get(self, id: str) -> Call[Document | None]:
        return (yield from self.get_many([id]))[0]

    def documents(self, numbers: Iterable[int], generation: int | None) -> Call[list[Document]]:
        names = document_numbers(numbers)
        if generation is None:
            generation = (yield from self.info()).generation
        params = {"generation": generation}
        found: list[Document] = []
        for name in names:
            found.append((yield from self._ask_index(f"documents/{name}", document_of, params=params)))
        return found

    def terms(self, prefix: str, field: str | None, after: str | None) -> Call[list[Term]]:
        params = {"prefix": text("prefix", prefix), "field": field, "after": after, "limit": TERMS}
        names = ("term", "documents", "occurrences")
        return self._ask_index(
            "terms",
            lambda answer: [Term._make(found[name] for name in names) for found in answer["terms"]],
            params=_given(params),
        )

    def analyze(self, value: str, field: str | None) -> Call[list[str]]:
        body = {"text": text("text", value), "field": field}
        return self._ask_index(
            "analyze",
            lambda answer: [token["term"] for token in answer["tokens"]],
            method="POST",
            json=body,
        )

    def suggest(self, value: str, field: str | None) -> Call[Suggestions]:
        params = _given({"q": text("text", value), "field": field})
        return self._ask_index("suggest", suggestions_of, params=params)

    def info(self) -> Call[IndexInfo]:
        return self._ask_index("", info_of)

    def indexes(self) -> Call[list[IndexInfo]]:
        return self._ask("/api/v1/indexes", lambda answer: [info_of(index) for index in answer["indexes"]])

    def stats(self) -> Call[dict[str, Any]]:
        return self._ask("/api/v1/stats", dict)

    def health(self) -> Call[Health]:
        """A server that stops answers with status 503 and is not asked again."""
        response = yield from self._respond(0, method="GET", url=f"{self.url}/health/ready")
        return self._parse(
            response,
            lambda answer: Health(answer["status"], dict(answer["indexes"])),
            json.loads,
            (200, 503),
        )

    def _ask_index(
        self, path: str, parse: Callable[[Any], T], read: Callable[[bytes], Any] = json.loads, **request: Any
    ) -> Call[T]:
        """The answer to a request to the index."""
        if self.index is None:
            names = [index.name for index in (yield from self.indexes())]
            if len(names) != 1:
                named = f"{len(names)} indexes: {', '.join(names)}; name one of them" if names else "no index"
                raise UsageError(f"the server at {self.url} has {named}")
            self.index = names[0]
        path = f"/api/v1/indexes/{_path_segment('index', self.index)}/{path}".rstrip("/")
        return (yield from self._ask(path, parse, read, **request))

    def _ask(
        self, path: str, parse: Callable[[Any], T], read: Callable[[bytes], Any] = json.loads, **request: Any
    ) -> Call[T]:
        """The answer to a request."""
        response = yield from self._respond(
            self.retries, **{"method": "GET", "url": self.url + path, **request}
        )
        return self._parse(response, parse, read, (200,))

    def _respond(self, retries: int, **request: Any) -> Call[httpx.Response]:
        """The response to a request, which is repeated if the server is busy, or the connection fails once."""
        import httpx

        until = time.monotonic() + self.timeout
        reconnects = min(retries, 1)
        while True:
            response = yield request
            if isinstance(response, httpx.Response):
                if response.status_code in (414, 431):
                    raise self._too_long(f"status {response.status_code}")
                if response.status_code not in (429, 503) or retries == 0:
                    return response
                # Clients that were rejected together do not come again together.
                wait = _retry_after(response) * random.uniform(1.0, 1.25)
                if time.monotonic() + wait > until:
                    return response
                retries -= 1
                yield wait
            elif isinstance(response, httpx.NetworkError | httpx.RemoteProtocolError) and reconnects:
                reconnects -= 1
            else:
                raise self._failed(response) from response

    def _failed(self, error: Exception | None) -> Error:
        """The exception of a request without a response."""
        import httpx

        if isinstance(error, httpx.InvalidURL):
            return self._too_long(str(error))
        if isinstance(error, httpx.PoolTimeout):
            return ServerError(f"all connections to {self.url} were in use for {self.timeout:g} s")
        if isinstance(error, httpx.TimeoutException):
            return ServerError(
                f"{self.url} did not answer within {self.timeout:g} s; a longer timeout may help"
            )
        reason = " ".join(str(error).split()) or type(error).__name__
        return ServerError(f"cannot reach {self.url}: {reason}; is `tierdex serve` running there?")

    def _too_long(self, reason: str) -> Error:
        return LimitError(f"a text is too long to be a parameter of a request to {self.url}: {reason}")

    def _parse(
        self,
        response: httpx.Response,
        parse: Callable[[Any], T],
        read: Callable[[bytes], Any],
        expected: tuple[int, ...],
    ) -> T:
        """The answer of a response, or the exception of its error."""
        try:
            if response.status_code in expected:
                return parse(read(response.content))
            raised = exception_of(json.loads(response.content)["error"])
        except Error:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            kind = response.headers.get("Content-Type", "no type")
            raise ServerError(
                f"{self.url} answered with status {response.status_code} and {kind}, not as a tierdex server: "
                "is there another server, or a proxy?"
            ) from error
        raise raised


def _search_body(query: object, k: int, *, syntax: str, scorer: str, k1: float, b: float, count: bool) -> Any:
    parameters = _bm25(k1, b)
    return {
        "query": text("query", query),
        "k": whole_number("k", k),
        "syntax": syntax,
        "scorer": {"bm25": parameters} if scorer == "bm25" else scorer,
        "count": count,
    }


def _bm25(k1: float, b: float) -> dict[str, float]:
    parameters = {"k1": real_number("k1", k1), "b": real_number("b", b)}
    if not all(map(isfinite, parameters.values())):
        raise UsageError(f"k1 is {k1} and b is {b}; they are finite numbers")
    return parameters


def _path_segment(name: str, value: str) -> str:
    """A segment of a path. One of dots would be left out of the path."""
    return quote(text(name, value), safe="").replace(".", "%2E")


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def _retry_after(response: httpx.Response) -> float:
    """Seconds to wait before the request is repeated."""
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return PAUSE


def _parts(queries: list[str]) -> Iterator[list[bytes]]:
    """The lines of a batch, in parts that fit into a request."""
    part: list[bytes] = []
    size = 0
    for number, query in enumerate(queries):
        line = json.dumps({"qid": str(number), "query": query}, ensure_ascii=False).encode() + b"\n"
        if part and (size + len(line) > BATCH_BYTES_MAX or len(part) == BATCH_QUERIES_MAX):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part
