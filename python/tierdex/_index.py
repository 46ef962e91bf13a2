"""Indexes and writers."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from . import _restore, _tierdex
from ._arguments import (
    document_ids,
    document_numbers,
    items,
    named_queries,
    path_name,
    path_names,
    real_number,
    whole_number,
)
from ._errors import UsageError
from ._progress import Reporter
from ._schema import Schema, field_tuples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Any, Literal, Self

    from ._schema import Text
    from ._types import Path, Progress, Query, Refresh, Scorer, Syntax


class Term(NamedTuple):
    """A term of an index."""

    #: The term.
    term: str
    #: Number of documents that contain it.
    documents: int
    #: Number of its occurrences.
    occurrences: int


class Index:
    """An index in a directory, and an engine that searches it within a memory budget.

    Threads may share an index. A pickled index is its path and options: it is opened again, at the newest
    commit, when it is first used. After a fork the child opens the index again when it uses it.

    >>> index = Index.create("my-index")
    >>> with index.writer() as writer:
    ...     writer.add({"id": "d1", "title": "Solid-state disk", "text": "A disk without moving parts."})
    ...     writer.add({"id": "d2", "title": "Hard disk", "text": "A disk with platters that turn."})
    >>> for hit in index.search("disk AND (platters OR tape)"):
    ...     print(hit.id, hit.title)
    d2 Hard disk
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _tierdex.Index) -> None:
        if not isinstance(native, _tierdex.Index):
            raise UsageError("use Index.open(path) or Index.create(path, schema)")
        self._native = native

    @classmethod
    def create(
        cls,
        path: Path,
        schema: Schema | None = None,
        *,
        overwrite: bool = False,
        updatable: bool = False,
        dram: int | str | None = None,
        threads: int | None = None,
        hits_max: int = 1000,
        refresh: Refresh = "auto",
    ) -> Self:
        """Create an empty index; the other options are those of :meth:`open`.

        ``overwrite`` replaces an index that is there by an empty one, in one step.
        ``updatable``: documents are found, replaced and deleted by their ids, and each id has one document. It
        takes 8 bytes a document, and commits look up the ids of new documents in all segments.

        >>> index = Index.create("my-updatable-index", updatable=True)
        >>> with index.writer() as writer:
        ...     writer.upsert_many({"id": number, "text": f"draft {number}"} for number in range(4))
        4
        >>> with index.writer() as writer:
        ...     writer.upsert({"id": 0, "text": "final"})
        ...     writer.delete([1, 2])
        >>> index.search("draft").ids, index.get("0").text, index.get("1")
        (['3'], 'final', None)
        """
        schema = schema if schema is not None else Schema()
        return cls(
            _tierdex.Index._create(
                path_name(path),
                schema._tuple(),
                overwrite,
                updatable,
                *_opening(dram, threads, hits_max, refresh),
            )
        )

    @classmethod
    def open(
        cls,
        path: Path | Iterable[Path],
        *,
        dram: int | str | None = None,
        threads: int | None = None,
        hits_max: int = 1000,
        refresh: Refresh = "auto",
    ) -> Self:
        """Open the newest commit of an index; of several, given as a list of paths, to search them as one.

        Of several indexes the documents are numbered one directory after the other; scores, counts and order
        are those of one index with all documents. They have the same schema.
        ``dram``: the memory budget of the engine, in bytes or as ``"50M"``. A budget that is too small is a
        :class:`UsageError` that says how many bytes are needed. Without one the cache takes 64 MiB or a tenth
        of the postings.
        ``threads``: threads that evaluate queries; one for each processor by default.
        ``hits_max``: with a budget, the largest ``k``: memory is reserved for it.
        ``refresh``: ``"auto"`` looks for a newer commit at most once a second; ``"manual"`` leaves it to
        :meth:`refresh`.
        """
        paths = path_names(path)
        return cls(_tierdex.Index._open(paths, *_opening(dram, threads, hits_max, refresh), False))

    def writer(
        self,
        *,
        memory: int | str = "1G",
        threads: int | None = None,
        merge: bool | None = None,
        wait: float = 0.0,
        add_fields: Mapping[str, Text] | None = None,
    ) -> Writer:
        """Open a writer; there is one at a time, in all processes.

        ``memory``: bytes for postings and for documents in analysis, at least 16M. A thread needs 128M.
        ``threads``: threads that analyse documents and encode; the index does not depend on their number.
        ``merge``: whether commits merge all segments into one, the fastest to search; by default the first
        commit does, and later ones merge segments of similar size only.
        ``wait``: seconds to wait for another writer to end, before :class:`BusyError`.
        ``add_fields``: fields that the first commit adds to the index, ``{"author": Text()}``. Documents that
        were indexed before are not found in them. Of a field that the index has only the synonyms change.
        """
        wait, fields = real_number("wait", wait), field_tuples(add_fields or {})
        return Writer(self._native._writer(memory, _threads(threads), merge, wait, fields))

    def search(
        self,
        query: Query,
        k: int = 10,
        *,
        syntax: Syntax = "query",
        field: str | None = None,
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        count: bool = False,
        deadline: float | None = None,
        statistics: _tierdex.Statistics | None = None,
    ) -> _tierdex.Hits:
        """Search for the best ``k`` documents.

        ``query``: text, in the query language (``syntax="query"``; ``"lenient"`` ignores syntax errors) or as
        plain words (``"terms"``); or a list of terms, or a dict from terms to weights, of terms as they are in
        the index, in ``field`` (the first one by default). :attr:`Hits.warnings` has what was read as text
        though it looks like an operator, and syntax errors that were ignored.
        ``scorer``: ``"bm25"``, or ``"dot"`` for the sum of query weight times frequency, without inverse
        document frequency and document length: for learned sparse models and quantised impacts, whose weights
        are indexed as frequencies.
        ``k1`` and ``b``: the parameters of BM25. Block max scores are stored for the defaults; they are safe
        for all values and tight for the defaults.
        ``count``: count all matching documents; otherwise :attr:`Hits.total` is a lower bound.
        ``deadline``: seconds, at least 0, after which the best documents so far are returned
        (:attr:`Hits.timed_out`); if they pass before the search begins, :class:`ExpiredError` is raised. A time
        that the clock does not reach, and infinity, are no deadline.
        ``statistics``: complete statistics of all shards, to score by (:func:`merge_hits`).
        """
        k, k1, b = whole_number("k", k), real_number("k1", k1), real_number("b", b)
        deadline = None if deadline is None else real_number("deadline", deadline)
        return self._native._search(query, k, syntax, field, scorer, k1, b, count, deadline, statistics)

    def statistics(
        self,
        query: Query,
        *,
        syntax: Syntax = "query",
        field: str | None = None,
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        question: _tierdex.Statistics | None = None,
        deadline: float | None = None,
    ) -> _tierdex.Statistics:
        """The statistics of this index that the scores of a query depend on, as one of several shards.

        :func:`merge_hits` shows how shards score as one index. ``question``: merged statistics that are not
        complete. ``deadline``: seconds, after which :class:`ExpiredError` is raised.
        """
        k1, b = real_number("k1", k1), real_number("b", b)
        deadline = None if deadline is None else real_number("deadline", deadline)
        return self._native._statistics(query, syntax, field, scorer, k1, b, question, deadline)

    async def search_async(self, query: Query, k: int = 10, **options: Any) -> _tierdex.Hits:
        """:meth:`search` on another thread, with the same options: the event loop goes on meanwhile.

        A cancelled task does not wait for the search, which ends by itself: ``deadline`` limits it.
        """
        import asyncio

        return await asyncio.to_thread(self.search, query, k, **options)

    def search_batch(
        self,
        queries: Iterable[Query] | Mapping[str, Query],
        k: int = 1000,
        *,
        qids: Iterable[object] | None = None,
        syntax: Syntax = "query",
        field: str | None = None,
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        count: bool = False,
        on_error: Literal["raise", "keep", "skip"] = "raise",
        progress: Progress = False,
    ) -> _tierdex.Batch:
        """Answer many queries, several at the same time; the results are columns.

        ``queries``: an iterable, an Arrow array or a column of a data frame; or a dict from query ids to
        queries. ``qids``: the ids of the queries; their positions by default.
        ``on_error``: a query with an error raises, or has no hits and is kept in :attr:`Batch.errors`
        (``"keep"``; ``"skip"`` is another name for it). A damaged index and a failed device always raise.
        The other options are those of :meth:`search`.
        """
        k, k1, b = whole_number("k", k), real_number("k1", k1), real_number("b", b)
        names, texts = named_queries(queries, qids)
        with Reporter(progress, len(texts), "queries") as reporter:
            return self._native._search_batch(
                texts, k, syntax, field, scorer, k1, b, count, names, on_error, reporter.call
            )

    def explain(
        self,
        query: Query,
        k: int = 10,
        *,
        syntax: Syntax = "query",
        field: str | None = None,
        scorer: Scorer = "bm25",
        k1: float = 1.2,
        b: float = 0.75,
        count: bool = False,
    ) -> dict[str, Any]:
        """Answer a query and log how: strategy, thresholds, and the blocks of each list by segment."""
        k, k1, b = whole_number("k", k), real_number("k1", k1), real_number("b", b)
        return self._native._explain(query, k, syntax, field, scorer, k1, b, count)

    def get(self, id: str) -> _tierdex.Document | None:
        """Read a document by its id, ``None`` if there is none.

        In an index that is not updatable it reads all ids, and of equal ids it takes the last: for many
        documents use :meth:`get_many`, which reads them once, or :meth:`documents` with document numbers.
        """
        return self.get_many([id])[0]

    def get_many(self, ids: Iterable[str]) -> list[_tierdex.Document | None]:
        """Read documents by their ids, in their order; ``None`` where there is none.

        In an index that is not updatable it reads all ids once.
        """
        return self._native._get_many([str(id) for id in items(ids)])

    def documents(self, numbers: Iterable[int]) -> list[_tierdex.Document]:
        """Read documents by their numbers in the newest commit (:attr:`Hit.document`).

        Deleted documents keep their numbers until segments are merged: the ids of all others are
        ``search("*:*", k=len(index)).ids``.
        """
        return self._native._documents(document_numbers(numbers))

    def terms(self, prefix: str = "", *, field: str | None = None) -> Iterator[Term]:
        """Iterate over the terms of a field that begin with ``prefix``, in byte order."""
        after: str | None = None
        while chunk := self._native._terms(prefix, field, after):
            yield from map(Term._make, chunk)
            after = chunk[-1][0]

    def analyze(self, text: str, *, field: str | None = None) -> list[str]:
        """The terms of a text, as a field indexes them."""
        return self._native._analyze(text, field)

    def stats(self) -> dict[str, Any]:
        """Sizes of the index, the memory of the engine by part in bytes, and counters of its requests (times in
        seconds) and its cache.

        ``documents`` are without ``deleted_documents``; the figures of ``fields`` are with them. Without stored
        documents scores are approximate after deletes (``scores_exact``), until segments are merged.
        """
        return self._native.stats()

    def check(self) -> dict[str, Any]:
        """Check every byte and every structure of the newest commit; raise :class:`CorruptError`."""
        return self._native.check()

    def refresh(self) -> bool:
        """Open the newest commit; returns whether there is a new one."""
        return self._native.refresh()

    def close(self) -> None:
        """End the engine and release its memory; the next use opens the index again."""
        self._native.close()

    @property
    def path(self) -> str:
        """The directory; of several, all of them, separated by commas."""
        return ", ".join(self._native.paths)

    @property
    def paths(self) -> list[str]:
        """The directories; :attr:`Hit.part` is a position in this list."""
        return self._native.paths

    @property
    def generation(self) -> int:
        """The number of the commit that is searched; each commit increments it."""
        return self._native.generation

    @property
    def schema(self) -> Schema:
        """The schema."""
        return Schema._of(self._native._schema())

    def __len__(self) -> int:
        return len(self._native)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        paths = self.paths
        return f"tierdex.Index.open({(paths[0] if len(paths) == 1 else paths)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        paths, *options = self._native._options()
        return _restore.index, ([os.path.abspath(path) for path in paths], *options)


class Writer:
    """Adds documents to an index, and deletes documents; see :meth:`Index.writer`.

    As a context manager it commits and closes at the end of the block; if an exception leaves the block, the
    changes since the last commit are discarded. Documents are analysed by threads while Python makes the
    next ones.

    Calls take effect in their order: a delete leaves the documents that are added after it. In an updatable
    index (:meth:`Index.create`) a document replaces the one with its id, by each of the methods that add.

    Threads may share a writer. A document for which :meth:`add` has returned is in the next commit, unless
    :meth:`rollback` discards it or an error says that it is lost. A commit during :meth:`add_many` of another
    thread has the documents that were passed on until then. After :meth:`close` or :meth:`rollback` calls of
    all threads raise :class:`UsageError`. An error of the device, or Ctrl-C during a commit, ends the writer:
    each later call raises, and says how many documents and deletes are lost.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _tierdex.Writer) -> None:
        if not isinstance(native, _tierdex.Writer):
            raise UsageError("use Index.writer()")
        self._native = native

    def add(self, document: Mapping[str, object]) -> None:
        """Add a document: a mapping with ``id`` and members of the schema. If it raises, nothing is added.

        An id is a ``str`` or an ``int``, of 1 to 4,096 bytes without control characters. In an updatable index
        the document replaces the one with its id, as :meth:`upsert` says; in another one ids may repeat. The
        value of a member is a ``str``; a list has several values. ``None``, ``NaN`` and ``pandas.NA`` are no
        value, and so is an empty string. A member ``headers.subject`` is in a dict ``headers``, or in a list
        of dicts; one whose name is ``headers.subject`` as a whole comes first.

        A document that has no member of any field is rejected: its members have other names. If the schema has
        the members ``title`` and ``text`` alone, the text may be missing only if there is a title and nothing
        else. Other members are stored as JSON with ``Schema(stored="all")``. Otherwise they are ignored, of
        which a :class:`UserWarning` tells once for each name; another tells of lone surrogates, in whose place
        U+FFFD is indexed.
        """
        self._native.add(document)

    def add_many(
        self,
        documents: Any,
        *,
        id: str = "id",
        title: str = "title",
        text: str = "text",
        total: int | None = None,
        progress: Progress = False,
    ) -> int:
        """Add many documents; returns their number.

        ``documents``: an iterable of mappings, a data frame, or anything with ``__arrow_c_stream__`` or
        ``__arrow_c_array__`` (pyarrow, polars, duckdb, pandas), whose columns must not change during the call.
        A column has strings or lists of strings, or is a struct with such columns. With ``stored="all"`` a
        table is read row by row as dicts, which takes longer, and needs pyarrow unless it is of pandas.
        ``id``, ``title`` and ``text``: the names of the id and of the members ``title`` and ``text`` in these
        documents, with the rules of :meth:`add`.
        ``progress``: ``True``, or a function of the number of documents so far and ``total``.

        A document that cannot be added raises; the documents before it are added. After Ctrl-C those that
        were read from an iterable, or a first part of a table, are added: see :attr:`added`. Strings of
        Arrow columns that are not UTF-8 get U+FFFD, and a :class:`UserWarning` says how many; in an id they
        are an error.
        """
        if total is None and hasattr(documents, "__len__"):
            total = len(documents)
        names = {"id": id, "title": title, "text": text}
        is_table = hasattr(documents, "__arrow_c_stream__") or hasattr(documents, "__arrow_c_array__")
        with Reporter(progress, total, "documents") as reporter:
            if is_table and self._native.stores_all:
                documents = _table_rows(documents)
            elif is_table:
                added = self._native.add_arrow(documents, **names, progress=reporter.call)
                if added is not None:
                    return added
            if hasattr(documents, "iloc"):
                documents = _rows(documents)
            return self._native.add_dicts(documents, **names, progress=reporter.call)

    def upsert(self, document: Mapping[str, object]) -> None:
        """Add a document, as :meth:`add` does, that replaces the one with its id if there is one.

        In an index that is not updatable it raises :class:`UsageError`.
        """
        self._native.check_updatable()
        self._native.add(document)

    def upsert_many(
        self,
        documents: Any,
        *,
        id: str = "id",
        title: str = "title",
        text: str = "text",
        total: int | None = None,
        progress: Progress = False,
    ) -> int:
        """:meth:`add_many` with documents that replace those with their ids; returns their number.

        Of documents with the same id the last one stays. In an index that is not updatable it raises
        :class:`UsageError`.
        """
        self._native.check_updatable()
        return self.add_many(documents, id=id, title=title, text=text, total=total, progress=progress)

    def delete(self, ids: object) -> None:
        """Delete the document with an id, or those with the ids of an iterable. Unknown ids are ignored.

        Documents that were added before are deleted, committed or not; those that are added after it stay. An
        id is a ``str`` or an ``int``, as for :meth:`add`. If it raises, nothing is deleted. In an index that is
        not updatable it raises :class:`UsageError`.
        """
        self._native.delete(document_ids(ids))

    def delete_matches(self, query: Query, *, field: str | None = None) -> int:
        """Delete the documents of the last commit that match a query; returns their number.

        ``query`` and ``field``: as :meth:`Index.search` takes them, in the query language; ``"*:*"`` matches
        all documents. An empty query, and one of which a part would be read as text though it looks like an
        operator, raise :class:`UsageError`, and nothing is deleted. So do documents that were added since the
        last commit, which no query finds yet: commit before. The index need not be updatable.

        >>> index = Index.create("my-drafts")
        >>> with index.writer() as writer:
        ...     writer.add_many({"id": year, "text": f"draft of {year}"} for year in (2023, 2024, 2025))
        ...     writer.commit()
        ...     writer.delete_matches("draft AND (2023 OR 2024)")
        3
        2
        2
        >>> len(index)
        1
        """
        return self._native.delete_matches(query, field=field)

    def commit(self, *, merge: bool | None = None) -> int:
        """Make all changes durable and visible; returns the generation of the commit.

        The index that made this writer is refreshed. ``merge`` overrides that of :meth:`Index.writer`.
        """
        return self._native.commit(merge=merge)

    def rollback(self) -> None:
        """Discard the changes since the last commit, and close the writer."""
        self._native.rollback()

    def close(self) -> None:
        """Commit and close the writer; does nothing if it is closed or rolled back."""
        self._native.close()

    @property
    def added(self) -> int:
        """Number of documents that were added since the last commit."""
        return self._native.added

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._native.close()
        else:
            self._native.rollback()


def _opening(
    dram: int | str | None, threads: int | None, hits_max: int, refresh: Refresh
) -> tuple[int | str | None, int | None, int, Refresh]:
    """The checked options of an index."""
    return dram, _threads(threads), whole_number("hits_max", hits_max), refresh


def _threads(threads: int | None) -> int | None:
    return None if threads is None else whole_number("threads", threads)


#: Rows of a data frame that are dicts at a time.
_ROWS = 10_000


def _rows(frame: Any) -> Iterator[Any]:
    """The rows of a pandas data frame as dicts."""
    for start in range(0, len(frame), _ROWS):
        yield from frame.iloc[start : start + _ROWS].to_dict("records")


def _table_rows(table: Any) -> Any:
    """The rows of an Arrow table or stream as dicts; a pandas data frame itself if there is no pyarrow."""
    try:
        pyarrow: Any = import_module("pyarrow")
    except ImportError:
        if hasattr(table, "iloc"):
            return table
        raise UsageError(
            'stored="all" takes tables by pyarrow, which is not installed: pip install pyarrow, or pass dicts'
        ) from None
    is_batch = not hasattr(table, "__arrow_c_stream__")
    batches = [pyarrow.record_batch(table)] if is_batch else pyarrow.RecordBatchReader.from_stream(table)
    return _batch_rows(batches)


def _batch_rows(batches: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The rows of record batches, of which each is checked before it is read."""
    for batch in batches:
        try:
            batch.validate(full=True)
        except ValueError as error:
            raise UsageError(f"cannot read the table: {error}") from None
        kept = [name for name in batch.schema.names if not name.startswith("__index_level_")]
        for start in range(0, len(batch), _ROWS):
            yield from batch.select(kept)[start : start + _ROWS].to_pylist()
