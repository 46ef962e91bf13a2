"""Full-text search for indexes larger than memory.

>>> import tierdex
>>> index = tierdex.Index.create("notes")
>>> with index.writer() as writer:
...     writer.add_many({"id": number, "text": f"note {number}"} for number in range(100))
100
>>> hits = index.search("note 42")
>>> hits[0].id
'42'
"""

from __future__ import annotations

import sys

if not sys.platform.startswith("linux"):
    raise ImportError("tierdex runs on Linux only: its engine needs io_uring or pread, and direct I/O")

from . import ciff
from ._client import AsyncClient, Client
from ._client_types import Completion, FieldInfo, Health, IndexInfo, Suggestions
from ._errors import (
    BusyError,
    CancelledError,
    CorruptError,
    Error,
    ExpiredError,
    InternalError,
    LimitError,
    MissingError,
    OverloadedError,
    QueryError,
    RangeError,
    ServerError,
    StorageError,
    UsageError,
)
from ._evaluation import eval
from ._index import Index, Term, Writer
from ._schema import Schema, Text
from ._shards import MergedHit, MergedHits, merge_hits
from ._tierdex import Batch, Column, Document, Hit, Hits, Statistics, __version__

__all__ = [
    "AsyncClient",
    "Batch",
    "BusyError",
    "CancelledError",
    "Client",
    "Column",
    "Completion",
    "CorruptError",
    "Document",
    "Error",
    "ExpiredError",
    "FieldInfo",
    "Health",
    "Hit",
    "Hits",
    "Index",
    "IndexInfo",
    "InternalError",
    "LimitError",
    "MergedHit",
    "MergedHits",
    "MissingError",
    "OverloadedError",
    "QueryError",
    "RangeError",
    "Schema",
    "ServerError",
    "Statistics",
    "StorageError",
    "Suggestions",
    "Term",
    "Text",
    "UsageError",
    "Writer",
    "__version__",
    "ciff",
    "eval",
    "merge_hits",
]
