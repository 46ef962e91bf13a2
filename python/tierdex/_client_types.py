"""What a server answers, where it has no type of the package yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from os import PathLike
    from typing import SupportsIndex

    import numpy as np
    import numpy.typing as npt

    from ._tierdex import Batch, Column


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A text field of an index of a server."""

    #: Its name.
    name: str
    #: Documents with a token in the field.
    documents: int
    #: Tokens of all documents.
    tokens: int
    #: Whether phrases can be searched.
    positions: bool


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of a server."""

    #: Its name.
    name: str
    #: Number of the commit that is served.
    generation: int
    #: Documents that are not deleted.
    documents: int
    #: Deleted documents whose postings are still in segments.
    deleted: int
    #: Number of segments.
    segments: int
    #: Bytes of all files of segments.
    bytes: int
    #: The fields.
    fields: tuple[FieldInfo, ...]
    #: Whether documents are found by their ids.
    updatable: bool
    #: Whether titles and texts of documents are stored.
    stores_text: bool
    #: Why an older commit than the newest is served, or ``None``.
    stale: str | None


class Health(NamedTuple):
    """Whether a server accepts requests."""

    #: ``"ready"``, or ``"stopping"``.
    status: str
    #: Of each index ``"ready"``, or ``"stale"`` if an older commit than the newest is served.
    indexes: dict[str, str]


class Completion(NamedTuple):
    """A completion of the last word of a text."""

    #: The word.
    word: str
    #: Documents that contain it.
    documents: int
    #: The text with the word in place of its last one.
    text: str


class Suggestions(NamedTuple):
    """What a user may mean by a text."""

    #: Completions of the last word, those in most documents first.
    completions: list[Completion]
    #: The text with other words in place of those that no document contains, or ``None``.
    correction: str | None


class ClientBatch:
    """The results of many queries to a server, in columns.

    It is a :class:`Batch` without document numbers and generation, which a server does not send with a batch.
    The hits of query ``i`` are those from ``offsets[i]`` up to ``offsets[i + 1]``. With pyarrow it is an Arrow
    stream with the columns ``qid``, ``id``, ``score`` and ``rank``. A pickle has all columns.
    """

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @property
    def qids(self) -> list[str]:
        """Ids of the queries."""
        return self._batch.qids

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Start of the hits of each query, and their number; a read-only NumPy array."""
        return self._batch.offsets

    @property
    def scores(self) -> npt.NDArray[np.float32]:
        """Scores, a read-only NumPy array."""
        return self._batch.scores

    @property
    def totals(self) -> npt.NDArray[np.int64]:
        """Lower bounds of the number of matching documents of each query: a server returns the hits alone."""
        return self._batch.totals

    @property
    def errors(self) -> list[tuple[int, str]]:
        """Number and message of each query with an error, with ``on_error="keep"`` or ``"skip"``."""
        return self._batch.errors

    @property
    def took(self) -> float:
        """Seconds that the batch took, with its transfer."""
        return self._batch.took

    def ids(self) -> Column:
        """External ids."""
        return self._batch.ids()

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The run as a dict: for each query id, a dict from document ids to scores."""
        return self._batch.to_dict()

    def to_trec(self, path: str | PathLike[str], tag: str = "tierdex") -> None:
        """Write a TREC run, as :meth:`Batch.to_trec` does."""
        self._batch.to_trec(path, tag)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` with the columns qid, id, score and rank (from 0)."""
        return self._batch.to_arrow().drop_columns(["document"])

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with the columns qid, id, score and rank (from 0)."""
        return self._batch.to_pandas().drop(columns="document")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, query: SupportsIndex, /) -> list[tuple[str, float]]:
        """Ids and scores of the hits of a query."""
        return self._batch[query]

    def __repr__(self) -> str:
        return f"<tierdex.ClientBatch: {len(self)} queries, {len(self.scores)} hits>"
