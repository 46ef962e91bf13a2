"""Parses the answers of a server: to types of the package, and to its exceptions."""

from __future__ import annotations

import json
import time
import warnings
from array import array
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from . import _errors, _tierdex
from ._arguments import items
from ._client_types import Completion, FieldInfo, IndexInfo, Suggestions
from ._errors import ExpiredError, LimitError, OverloadedError, QueryError, ServerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Exceptions by the kind of an error; a kind that is not known is a :class:`ServerError`.
_KINDS: dict[str, type[_errors.Error]] = {
    "usage": UsageError,
    "limit": LimitError,
    "not_found": _errors.MissingError,
    "generation": UsageError,
    "forbidden": UsageError,
    "method": UsageError,
    "too_large": LimitError,
    "media_type": UsageError,
    "storage": _errors.StorageError,
    "internal": _errors.InternalError,
}


def exception_of(error: dict[str, Any]) -> _errors.Error:
    """The exception of an error object."""
    kind, message = error["kind"], str(error["message"])
    if kind == "query":
        raised: _errors.Error = QueryError(message, error.get("position"))
    elif kind == "unauthorized":
        raised = UsageError(f"{message}; give it as api_key")
    elif kind == "overloaded":
        raised = OverloadedError(message, float(error.get("retry_after_s", 1)))
    else:
        raised = _KINDS.get(kind, ServerError)(message)
    if error.get("request_id"):
        raised.add_note(f"request {error['request_id']}")
    return raised


def hits_of(answer: dict[str, Any], has_previews: bool) -> _tierdex.Hits:
    """The hits of a search, with titles and snippets if they were requested."""
    found, total = answer["hits"], answer["total"]
    columns = [[hit[name] for hit in found] for name in ("id", "document", "score")]
    seconds = (answer["took_us"] / 1e6, answer["queued_us"] / 1e6)
    totals = (
        total["value"],
        total["relation"] == "eq",
        answer["timed_out"],
        answer["generation"],
        *seconds,
        0,
        0,
    )
    shown = [(hit.get("title", ""), _marked(hit.get("snippet"))) for hit in found] if has_previews else []
    return _tierdex.Hits._restore(((*columns, [], []), totals, answer["warnings"], shown))


def _marked(snippet: dict[str, Any] | None) -> tuple[str, list[tuple[int, int]]] | None:
    """A snippet with its marks as ranges of bytes; a server has ranges of characters."""
    if snippet is None:
        return None
    text = snippet["text"]
    return text, [(len(text[:start].encode()), len(text[:end].encode())) for start, end in snippet["marks"]]


def explanation_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The log of an evaluation, with the names of ``Index.explain``."""
    explained = answer["explanation"]
    if explained is None:
        raise ExpiredError("the deadline of the server passed before the query was evaluated")
    hits = hits_of(answer, False)
    return {
        "hits": list(zip(hits.ids, hits.scores.tolist(), strict=True)),
        "total": explained["total"],
        "threshold": explained["threshold"],
        "segments": [_segment(segment) for segment in explained["segments"]],
    }


def _segment(segment: dict[str, Any]) -> dict[str, Any]:
    nodes = [(node["depth"], node["what"]) for node in segment["nodes"]]
    return {**_renamed(segment), "nodes": nodes, "lists": [_renamed(used) for used in segment["lists"]]}


def _renamed(members: dict[str, Any]) -> dict[str, Any]:
    names = {"segment": "id", "by_bound": "skipped_by_bound", "by_range": "skipped_by_range"}
    return {names.get(name, name): value for name, value in members.items()}


def document_of(answer: dict[str, Any]) -> _tierdex.Document:
    """A stored document."""
    id, members, others = answer["id"], answer["members"], answer.get("others")
    if answer["cut"]:
        warnings.warn(f"document {id!r} is long: the server leaves out its end", UserWarning, stacklevel=2)
    # A document that is stored has the value of a member at least.
    title = answer["title"] if members else None
    values = list(members.items()) if members else None
    text = None if others is None else json.dumps(others)
    return _tierdex.Document._restore(id, title, values, text, answer["document"])


def info_of(answer: dict[str, Any]) -> IndexInfo:
    """An index."""
    values = {field.name: answer[field.name] for field in fields(IndexInfo)}
    named = [{name.name: field[name.name] for name in fields(FieldInfo)} for field in answer["fields"]]
    stale = answer["stale"] and f"{answer['stale']['reason']}, since {answer['stale']['since']}"
    return IndexInfo(**{**values, "fields": tuple(FieldInfo(**field) for field in named), "stale": stale})


def suggestions_of(answer: dict[str, Any]) -> Suggestions:
    """Completions and a correction."""
    completions = [
        Completion(found["word"], found["documents"], found["text"]) for found in answer["completions"]
    ]
    return Suggestions(completions, answer["correction"])


class BatchColumns:
    """The results of a batch, to which answers are added in the order of the queries."""

    def __init__(self, queries: int, qids: Iterable[object] | None, on_error: str) -> None:
        self.qids = [str(qid) for qid in (range(queries) if qids is None else items(qids))]
        if len(self.qids) != queries:
            raise UsageError(f"{queries} queries, but {len(self.qids)} qids")
        if on_error not in ("raise", "keep", "skip"):
            raise UsageError(f'on_error is {on_error!r}; it is "raise", "keep" or "skip"')
        self._keeps_errors = on_error != "raise"
        self._began = time.monotonic()
        self._offsets, self._totals = [0], list[int]()
        self._generation: int | None = None
        self._scores, self._documents, self._ids = array("f"), array("I"), list[str]()
        self._errors: list[tuple[int, str]] = []

    def add_all(self, content: bytes, expected: int) -> bool:
        """Add the lines of an answer to a part of the queries; false if it is of another commit."""
        lines = content.splitlines()
        for line in lines:
            answer = json.loads(line)
            if self._generation not in (None, answer["generation"]):
                return False
            self._generation = answer["generation"]
            self._add(answer, expected == 1)
        if len(lines) != expected:
            raise ServerError(f"the server answered {len(lines)} of {expected} queries of a batch")
        return True

    def _add(self, answer: dict[str, Any], is_alone: bool) -> None:
        number = len(self._offsets) - 1
        error = answer.get("error")
        # A line that could not be read has no query id: that of its only query is known.
        if answer["qid"] != str(number) and not (is_alone and error):
            raise (
                exception_of(error) if error else ServerError("the server has mixed up the queries of a batch")
            )
        if error:
            self._add_error(number, exception_of(error))
        elif answer["timed_out"]:
            raise ExpiredError(f"the deadline of the batch passed at query {self.qids[number]!r}")
        else:
            self._scores.extend([hit["score"] for hit in answer["hits"]])
            self._documents.extend([hit["document"] for hit in answer["hits"]])
            self._ids.extend([hit["id"] for hit in answer["hits"]])
        self._offsets.append(len(self._ids))
        self._totals.append(0 if error else answer["total"]["value"])

    def _add_error(self, number: int, error: _errors.Error) -> None:
        if not self._keeps_errors or not isinstance(error, UsageError | LimitError):
            error.add_note(f"query {self.qids[number]!r}")
            raise error
        self._errors.append((number, str(error)))

    def batch(self) -> _tierdex.Batch:
        """The batch."""
        columns = (self.qids, self._offsets, self._documents, self._scores, self._totals)
        seconds = time.monotonic() - self._began
        return _tierdex.Batch._restore((columns, self._ids, self._errors, (self._generation or 0, seconds)))
