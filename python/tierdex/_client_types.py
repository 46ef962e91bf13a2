"""What a server answers, where it has no type of the package yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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
