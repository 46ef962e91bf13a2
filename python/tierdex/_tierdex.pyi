from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Final, SupportsIndex, final, overload

import numpy as np
import numpy.typing as npt

__all__ = [
    "_ENGLISH_STOP_WORDS",
    "Batch",
    "Column",
    "Document",
    "Hit",
    "Hits",
    "Index",
    "Statistics",
    "Writer",
    "__version__",
    "_ciff_export",
    "_ciff_import",
    "_merge_hits",
    "_panic",
]

__version__: Final[str]
_ENGLISH_STOP_WORDS: Final[list[str]]

_Field = tuple[str, list[str], str, bool, list[str], str | None, bool, str, str, str, list[str]]
_Schema = tuple[list[str], str | None, list[_Field], str]

def _panic(message: str) -> None: ...
def _ciff_import(
    file: str | PathLike[str],
    name: str,
    path: str | PathLike[str],
    schema: _Schema,
    overwrite: bool,
    updatable: bool,
) -> dict[str, Any]: ...
def _merge_hits(
    hits: list[Hits | None], k: int, allow_missing: bool
) -> tuple[list[tuple[int, int]], int, bool, bool, list[int]]: ...
def _ciff_export(
    path: str | PathLike[str], field: str, description: str, file: str | PathLike[str]
) -> dict[str, Any]: ...

@final
class Index:
    @staticmethod
    def _create(
        path: str | PathLike[str],
        schema: _Schema,
        overwrite: bool,
        updatable: bool,
        dram: int | str | None,
        threads: int | None,
        hits_max: int,
        refresh: str,
    ) -> Index: ...
    @staticmethod
    def _open(
        paths: list[str],
        dram: int | str | None,
        threads: int | None,
        hits_max: int,
        refresh: str,
        lazy: bool,
    ) -> Index: ...
    def _options(self) -> tuple[list[str], int | None, int, int, str]: ...
    def _writer(
        self, memory: int | str, threads: int | None, merge: bool | None, wait: float, fields: list[_Field]
    ) -> Writer: ...
    def _search(
        self,
        query: object,
        k: int,
        syntax: str,
        field: str | None,
        scorer: str,
        k1: float,
        b: float,
        count: bool,
        deadline: float | None,
        statistics: Statistics | None,
    ) -> Hits: ...
    def _statistics(
        self,
        query: object,
        syntax: str,
        field: str | None,
        scorer: str,
        k1: float,
        b: float,
        question: Statistics | None,
        deadline: float | None,
    ) -> Statistics: ...
    def _search_batch(
        self,
        queries: Iterable[object],
        k: int,
        syntax: str,
        field: str | None,
        scorer: str,
        k1: float,
        b: float,
        count: bool,
        qids: list[str] | None,
        on_error: str,
        progress: Callable[[int], object] | None,
    ) -> Batch: ...
    def _explain(
        self,
        query: object,
        k: int,
        syntax: str,
        field: str | None,
        scorer: str,
        k1: float,
        b: float,
        count: bool,
    ) -> dict[str, Any]: ...
    def _get_many(self, ids: list[str]) -> list[Document | None]: ...
    def _documents(self, documents: list[int]) -> list[Document]: ...
    def _terms(self, prefix: str, field: str | None, after: str | None) -> list[tuple[str, int, int]]: ...
    def _analyze(self, text: str, field: str | None) -> list[str]: ...
    def _schema(self) -> _Schema: ...
    def stats(self) -> dict[str, Any]: ...
    def check(self) -> dict[str, Any]: ...
    def refresh(self) -> bool: ...
    def close(self) -> None: ...
    @property
    def generation(self) -> int: ...
    @property
    def paths(self) -> list[str]: ...
    def __len__(self) -> int: ...

@final
class Writer:
    def add(self, document: Mapping[str, object]) -> None: ...
    def add_dicts(
        self,
        documents: Iterable[Mapping[str, object]],
        *,
        id: str,
        title: str,
        text: str,
        progress: Callable[[int], object] | None,
    ) -> int: ...
    def add_arrow(
        self,
        table: Any,
        *,
        id: str,
        title: str,
        text: str,
        progress: Callable[[int], object] | None,
    ) -> int | None: ...
    def check_updatable(self) -> None: ...
    def delete(self, ids: list[object]) -> None: ...
    def delete_matches(self, query: object, *, field: str | None) -> int: ...
    def commit(self, *, merge: bool | None = None) -> int: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...
    @property
    def stores_all(self) -> bool: ...
    @property
    def added(self) -> int: ...

@final
class Statistics:
    """The statistics that the scores of one query depend on.

    Of a shard, of all shards, or the question about which all shards are asked again. Pickles and
    ``bytes(statistics)`` are equal on all machines.
    """

    @staticmethod
    def merge(parts: list[Statistics]) -> Statistics:
        """Add the statistics of all shards for a query."""
    @staticmethod
    def from_bytes(data: bytes) -> Statistics:
        """Statistics from their bytes."""
    @property
    def complete(self) -> bool:
        """Whether shards can score by these statistics.

        If not, pass them as ``question`` to :meth:`Index.statistics` of all shards and merge the answers.
        """
    def __bytes__(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Hits:
    """The result of a search: the best documents, best first.

    Titles, texts and snippets are read when they are asked for, from the commit that was searched. A pickle
    has ids, scores, titles and snippets.
    """

    @property
    def total(self) -> int:
        """Number of matching documents; a lower bound unless ``exact``."""
    @property
    def exact(self) -> bool:
        """Whether ``total`` is exact."""
    @property
    def timed_out(self) -> bool:
        """Whether the deadline passed: the hits are the best that were found until then."""
    @property
    def generation(self) -> int:
        """Number of the commit that was searched."""
    @property
    def took(self) -> float:
        """Seconds from the arrival of the query to its result."""
    @property
    def queued(self) -> float:
        """The part of ``took`` in which the query waited for a thread."""
    @property
    def warnings(self) -> list[str]:
        """Messages on parts of the query that look like operators and were read as text.

        With ``syntax="lenient"`` those on parts with errors too, which were ignored.
        """
    @property
    def ids(self) -> list[str]:
        """External ids."""
    @property
    def scores(self) -> npt.NDArray[np.float32]:
        """Scores, a read-only NumPy array."""
    @property
    def documents(self) -> npt.NDArray[np.uint32]:
        """Document numbers of the commit, a read-only NumPy array."""
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Hit: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Hit]: ...
    def __iter__(self) -> Iterator[Hit]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @staticmethod
    def _restore(state: Any) -> Hits: ...

@final
class Hit:
    """One of the hits of a search."""

    @property
    def rank(self) -> int:
        """Rank, from 1."""
    @property
    def id(self) -> str:
        """External id."""
    @property
    def score(self) -> float:
        """Score."""
    @property
    def document(self) -> int:
        """Document number in the commit that was searched."""
    @property
    def part(self) -> int:
        """Number of the directory, of those that were opened, that has the document."""
    @property
    def title(self) -> str:
        """Title; empty if the index does not store it. One of more than 16 KiB is cut and ends with …"""
    @property
    def snippet(self) -> str | None:
        """The part of the text with the most words of the query; ``None`` without stored documents.

        An ellipsis stands for the text before and after it.
        """
    def highlight(self, open: str = "**", close: str = "**", *, escape: bool | None = None) -> str | None:
        """The snippet, with its ellipses, and its matches between two marks.

        ``escape`` makes the snippet text of HTML: ``&``, ``<``, ``>`` and quotes become character references.
        By default it does if a mark has ``<``. The marks stay as they are.
        """
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def text(self) -> str | None:
        """The values of the member ``text``, one a line; ``None`` if the index does not store documents."""

@final
class Document:
    """A stored document."""

    @property
    def id(self) -> str:
        """External id."""
    @property
    def title(self) -> str | None:
        """The first value of the title; ``None`` if the index does not store documents."""
    @property
    def text(self) -> str | None:
        """The values of the member ``text``, one a line; ``None`` if the index does not store documents."""
    @property
    def members(self) -> dict[str, str | list[str]] | None:
        """The members that have values, by their names; ``None`` if the index does not store documents.

        A member has a ``str``, or a list of them if there are several values.
        """
    @property
    def others(self) -> Any:
        """What the document has beside its members, as a dict; ``None`` unless the index stores it.

        A text that is no JSON, which other programs may store, is a ``str``.
        """
    @property
    def document(self) -> int:
        """Document number in the commit."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @staticmethod
    def _restore(
        id: str,
        title: str | None,
        values: list[tuple[str, list[str]]] | None,
        others: str | None,
        document: int,
    ) -> Document: ...

@final
class Column:
    """A column in memory: ``numpy.asarray(column)`` and ``pyarrow.array(column)`` share its memory."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __len__(self) -> int: ...
    def to_list(self) -> list[Any]:
        """The values as Python objects."""

@final
class Batch:
    """The results of many queries, in columns.

    The hits of query ``i`` are those from ``offsets[i]`` up to ``offsets[i + 1]``. It is an Arrow stream with
    the columns ``qid``, ``id``, ``document``, ``score`` and ``rank``: pass it to ``pyarrow.table``,
    ``polars.DataFrame`` or ``duckdb``. A pickle has all columns.
    """

    @property
    def qids(self) -> list[str]:
        """Ids of the queries."""
    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Start of the hits of each query, and their number; a read-only NumPy array."""
    @property
    def documents(self) -> npt.NDArray[np.uint32]:
        """Document numbers of the commit, a read-only NumPy array."""
    @property
    def scores(self) -> npt.NDArray[np.float32]:
        """Scores, a read-only NumPy array."""
    @property
    def totals(self) -> npt.NDArray[np.int64]:
        """Number of matching documents of each query; lower bounds unless ``count`` was given."""
    def ids(self) -> Column:
        """External ids, read from the index at the first call."""
    @property
    def errors(self) -> list[tuple[int, str]]:
        """Number and message of each query with an error, with ``on_error="keep"`` or ``"skip"``."""
    @property
    def generation(self) -> int:
        """Number of the commit that was searched."""
    @property
    def took(self) -> float:
        """Seconds that the batch took, without reading ids."""
    def __len__(self) -> int: ...
    def __getitem__(self, query: SupportsIndex, /) -> list[tuple[str, float]]:
        """Ids and scores of the hits of a query."""
    def to_dict(self) -> dict[str, dict[str, float]]:
        """The run as a dict: for each query id, a dict from document ids to scores."""
    def to_trec(self, path: str | PathLike[str], tag: str = "tierdex") -> None:
        """Write a TREC run; each line is: query, Q0, document, rank from 1, score, tag.

        White space in ids is percent-encoded.
        """
    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with the columns qid, id, document, score and rank (from 0)."""
    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with the columns qid, id, document, score and rank (from 0)."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @staticmethod
    def _restore(state: Any) -> Batch: ...
