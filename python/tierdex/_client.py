"""Clients of a server: :class:`Client`, and :class:`AsyncClient` for an event loop."""

from __future__ import annotations

import time
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ._arguments import real_number, whole_number
from ._client_calls import Calls
from ._errors import UsageError

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Concatenate, Literal, Self

    from ._client_calls import Call
    from ._client_types import Health, IndexInfo, Suggestions
    from ._index import Term
    from ._tierdex import Batch, Document, Hits
    from ._types import Progress, Scorer, Syntax

P = ParamSpec("P")
T = TypeVar("T")

#: Connections of a client, at most; a server with a small memory budget has 24.
CONNECTIONS = 16


class _Connected:
    """The address of a server and the connections to it."""

    __slots__ = ("__weakref__", "_calls", "_http")

    def __init__(
        self,
        url: str = "http://127.0.0.1:8765",
        index: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        verify: bool | ssl.SSLContext = True,
    ) -> None:
        try:
            import httpx
        except ImportError:
            name = type(self).__name__
            raise UsageError(f"{name} needs httpx, which is missing: pip install 'tierdex[client]'") from None
        timeout = real_number("timeout", timeout)
        if not 0 < timeout < 1e9:
            raise UsageError(f"timeout is {timeout}; it is a number of seconds, from 0 to 1e9")
        try:
            parsed = httpx.URL(url)
        except (TypeError, httpx.InvalidURL) as error:
            raise UsageError(f"url is not valid: {error}") from None
        has_more = parsed.userinfo or parsed.query or parsed.fragment
        if parsed.scheme not in ("http", "https") or not parsed.host or has_more:
            raise UsageError("url is http://HOST:PORT or https://HOST:PORT; the key is given as api_key")
        headers = {"User-Agent": "tierdex"}
        if api_key is not None:
            printable = isinstance(api_key, str) and api_key.isascii() and api_key.isprintable()
            if not printable or " " in api_key or not api_key:
                raise UsageError("api_key is a str of ASCII characters without blanks")
            headers["Authorization"] = f"Bearer {api_key}"
        self._calls = Calls(str(parsed), index, timeout, whole_number("retries", retries))
        make = httpx.AsyncClient if isinstance(self, AsyncClient) else httpx.Client
        limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        self._http: Any = make(headers=headers, timeout=timeout, verify=verify, limits=limits)

    def _check_open(self) -> None:
        if self._http.is_closed:
            raise UsageError("the client is closed")

    def __repr__(self) -> str:
        index = self._calls.index
        return f"tierdex.{type(self).__name__}({self._calls.url!r}{'' if index is None else f', {index!r}'})"


class Client(_Connected):
    """A client of a server (``tierdex serve``) that searches one of its indexes, as :class:`Index` does.

    A server has no writer, no ``statistics``, ``check`` and ``refresh``, and takes queries as text alone.
    ``url``: the address of the server.
    ``index``: the name of an index; of a server with a single one it may be left out.
    ``api_key``: a key, if the server asks for keys.
    ``timeout``: seconds to wait for a connection, for each part of an answer, and for the pauses of a request.
    ``retries``: how often a request that a busy server rejects is repeated, after the pauses that it asks for;
    a request whose connection fails is repeated once. Then :class:`OverloadedError` or :class:`ServerError` is
    raised.
    ``verify``: whether the certificate of an ``https`` address is checked, or an ``ssl.SSLContext``.

    Threads may share a client. After a fork the child makes one of its own. It needs httpx:
    ``pip install 'tierdex[client]'``.

    >>> with tierdex.Client("http://127.0.0.1:8765", "documents") as client:
    ...     for hit in client.search("disk AND (platters OR tape)"):
    ...         print(hit.id, hit.title, "-", hit.highlight())
    d2 Hard disk - A **disk** with **platters** that turn.
    """

    __slots__ = ()

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        syntax: Syntax = "query",
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        count: bool = False,
        deadline: float | None = None,
        previews: bool = True,
    ) -> Hits:
        """Search for the best ``k`` documents, at most 1,000; the options are those of :meth:`Index.search`.

        ``previews``: whether titles and snippets are sent with the hits; many hits arrive faster without them.
        Texts are not sent: :meth:`get` and :meth:`documents` read them.
        ``deadline``: seconds, at most 30; without one the server takes 2. See :attr:`Hits.timed_out`.
        """
        options = {"syntax": syntax, "scorer": scorer, "k1": k1, "b": b, "count": count}
        return self._run(self._calls.search(query, k, previews, deadline, **options))

    def search_batch(
        self,
        queries: Iterable[str] | Mapping[str, str],
        k: int = 1000,
        *,
        qids: Iterable[object] | None = None,
        syntax: Syntax = "query",
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        count: bool = False,
        on_error: Literal["raise", "keep", "skip"] = "raise",
        progress: Progress = False,
    ) -> Batch:
        """Answer many queries; the results are columns. The options are those of :meth:`Index.search_batch`.

        They are sent in several requests, with a lower priority than searches. If a commit of the index is
        served meanwhile, they are sent again, at most ``retries`` times, so that all results are of one commit.
        """
        options: dict[str, Any] = {"syntax": syntax, "scorer": scorer, "k1": k1, "b": b, "count": count}
        return self._run(self._calls.search_batch(queries, k, qids, on_error, progress, **options))

    def explain(
        self,
        query: str,
        k: int = 10,
        *,
        syntax: Syntax = "query",
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        count: bool = False,
    ) -> dict[str, Any]:
        """Answer a query and log how, as :meth:`Index.explain` does: without ``reads``."""
        options = {"syntax": syntax, "scorer": scorer, "k1": k1, "b": b, "count": count}
        return self._run(self._calls.explain(query, k, **options))

    def get(self, id: str) -> Document | None:
        """Read a document of an updatable index by its id, ``None`` if there is none.

        A :class:`UserWarning` tells of a document that is too long for the server, which leaves out its end.
        """
        return self._run(self._calls.get(id))

    def get_many(self, ids: Iterable[str]) -> list[Document | None]:
        """Read documents of an updatable index by their ids, in their order: a request for each of them."""
        return self._run(self._calls.get_many(ids))

    def documents(self, numbers: Iterable[int], *, generation: int | None = None) -> list[Document]:
        """Read documents by their numbers (:attr:`Hit.document`) in a commit: a request for each of them.

        ``generation``: that of the hits (:attr:`Hits.generation`); a commit that is not served any more is a
        :class:`UsageError`. By default it is the one that is served.
        """
        return self._run(self._calls.documents(numbers, generation))

    def terms(self, prefix: str = "", *, field: str | None = None) -> Iterator[Term]:
        """Iterate over the terms of a field that begin with ``prefix``, in byte order."""
        after: str | None = None
        while part := self._run(self._calls.terms(prefix, field, after)):
            yield from part
            after = part[-1].term

    def analyze(self, text: str, *, field: str | None = None) -> list[str]:
        """The terms of a text of at most 16 KiB, as a field indexes them."""
        return self._run(self._calls.analyze(text, field))

    def suggest(self, text: str, *, field: str | None = None) -> Suggestions:
        """Completions of the last word of a text, and a correction; none of a field with a stemmer."""
        return self._run(self._calls.suggest(text, field))

    def info(self) -> IndexInfo:
        """The commit, sizes and fields of the index."""
        return self._run(self._calls.info())

    def indexes(self) -> list[IndexInfo]:
        """All indexes of the server."""
        return self._run(self._calls.indexes())

    def stats(self) -> dict[str, Any]:
        """What the server does now, and has done since its start: engine, cache, connections, requests."""
        return self._run(self._calls.stats())

    def health(self) -> Health:
        """Whether the server accepts requests. It needs no key."""
        return self._run(self._calls.health())

    @property
    def generation(self) -> int:
        """The number of the commit that is served, which the server is asked for."""
        return self.info().generation

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def _run(self, call: Call[T]) -> T:
        result: Any = None
        try:
            while True:
                result = self._do(call.send(result))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            call.close()

    def _do(self, step: dict[str, Any] | float) -> Any:
        import httpx

        if isinstance(step, float):
            return time.sleep(step)
        self._check_open()
        try:
            return self._http.request(**step)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return error

    def __len__(self) -> int:
        return self.info().documents

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[[Any], Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]]:
    """Makes a method of :class:`Client` a coroutine, in place of the decorated one: what it runs is awaited."""

    async def coroutine(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        run: Any = method
        result: T = await run(self, *args, **kwargs)
        return result

    return lambda _: update_wrapper(coroutine, method)


class AsyncClient(_Connected):
    """:class:`Client` for an event loop, with the same options and methods.

    They are coroutines, and :meth:`terms` is an asynchronous iterator. :meth:`info` has the generation and the
    number of documents. What :class:`Client` lacks of :class:`Index`, this class lacks too.

    >>> async def search() -> list[str]:
    ...     async with tierdex.AsyncClient("http://127.0.0.1:8765", "documents") as client:
    ...         return (await client.search("disk AND (platters OR tape)")).ids
    >>> asyncio.run(search())
    ['d2']
    """

    __slots__ = ()

    @_awaited(Client.search)
    def search(self) -> None:
        """:meth:`Client.search`."""

    @_awaited(Client.search_batch)
    def search_batch(self) -> None:
        """:meth:`Client.search_batch`."""

    @_awaited(Client.explain)
    def explain(self) -> None:
        """:meth:`Client.explain`."""

    @_awaited(Client.get)
    def get(self) -> None:
        """:meth:`Client.get`."""

    @_awaited(Client.get_many)
    def get_many(self) -> None:
        """:meth:`Client.get_many`."""

    @_awaited(Client.documents)
    def documents(self) -> None:
        """:meth:`Client.documents`."""

    @_awaited(Client.analyze)
    def analyze(self) -> None:
        """:meth:`Client.analyze`."""

    @_awaited(Client.suggest)
    def suggest(self) -> None:
        """:meth:`Client.suggest`."""

    @_awaited(Client.info)
    def info(self) -> None:
        """:meth:`Client.info`."""

    @_awaited(Client.indexes)
    def indexes(self) -> None:
        """:meth:`Client.indexes`."""

    @_awaited(Client.stats)
    def stats(self) -> None:
        """:meth:`Client.stats`."""

    @_awaited(Client.health)
    def health(self) -> None:
        """:meth:`Client.health`."""

    async def terms(self, prefix: str = "", *, field: str | None = None) -> AsyncIterator[Term]:
        """:meth:`Client.terms`."""
        after: str | None = None
        while part := await self._run(self._calls.terms(prefix, field, after)):
            for term in part:
                yield term
            after = part[-1].term

    async def close(self) -> None:
        """:meth:`Client.close`."""
        await self._http.aclose()

    async def _run(self, call: Call[T]) -> T:
        result: Any = None
        try:
            while True:
                result = await self._do(call.send(result))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            call.close()

    async def _do(self, step: dict[str, Any] | float) -> Any:
        import asyncio

        import httpx

        if isinstance(step, float):
            return await asyncio.sleep(step)
        self._check_open()
        try:
            return await self._http.request(**step)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
