"""Exchange of indexes with other search engines by files in the Common Index File Format (CIFF).

>>> import tierdex
>>> index = tierdex.Index.create("disks")
>>> with index.writer() as writer:
...     writer.add_many([{"id": "d1", "text": "solid state disk"}, {"id": "d2", "text": "hard disk"}])
2
>>> report = tierdex.ciff.export(index, "disks.ciff.gz")
>>> copy = tierdex.ciff.import_("disks.ciff.gz", "copy")
>>> copy.search("hard").ids
['d2']
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _tierdex
from ._arguments import path_name
from ._errors import MissingError, StorageError, UsageError
from ._index import Index
from ._schema import Schema, Text

if TYPE_CHECKING:
    from ._types import Path as AnyPath

__all__ = ["Report", "export", "import_"]

_GZIP = b"\x1f\x8b"


class Report(NamedTuple):
    """Numbers of an import or export."""

    #: Documents, posting lists and postings.
    documents: int
    lists: int
    postings: int
    #: Documents and lists of the whole collection, from the header: more than those above if the file has a
    #: part of it.
    collection_documents: int
    collection_lists: int
    #: Import: tokens of document lengths that are in no list; the lengths are kept.
    missing_tokens: int
    #: Import: documents whose length in the file is less than the sum of their frequencies, which is used.
    #: Many of them are a sign of quantised impacts, which ``scorer="dot"`` searches.
    raised_lengths: int
    #: Import: lists whose document frequency differs from their number of postings, which is used.
    other_frequencies: int
    #: Import: terms of more than 255 bytes, which were skipped.
    long_terms: int
    #: Import: terms that queries do not find, because the analysis of the schema changes them, and the first.
    changed_terms: int
    first_changed_term: str | None
    #: The description in the header.
    description: str


def import_(
    file: AnyPath,
    path: AnyPath,
    schema: Schema | None = None,
    *,
    overwrite: bool = False,
    updatable: bool = False,
) -> Index:
    """Write an index to the directory ``path`` from a CIFF file, compressed by gzip or not, and open it.

    ``schema`` has one field without positions; its analysis is applied to queries, and has to be that by which
    the terms of the file were made. By default it has a field ``text`` of lower-case words.
    ``overwrite`` replaces an index that is there. ``updatable`` is that of :meth:`Index.create`.

    A file that does not follow its own rules, but has a meaning, gives a :class:`UserWarning`: see
    :class:`Report`. Any other one is an error with the offset of the fault.
    """
    import tempfile
    import warnings

    schema = schema if schema is not None else Schema(text=Text(), stored=False)
    name = path_name(file)
    try:
        with open(name, "rb") as start, tempfile.TemporaryDirectory(prefix="tierdex-ciff-") as folder:
            plain = name
            if start.read(len(_GZIP)) == _GZIP:
                plain = os.path.join(folder, "file.ciff")
                _decompress(name, plain)
            numbers = _tierdex._ciff_import(plain, name, path_name(path), schema._tuple(), overwrite, updatable)
    except FileNotFoundError as error:
        raise MissingError(f"{name}: {error.strerror or error}", error.errno, name) from None
    for warning in _warnings(Report(**numbers)):
        warnings.warn(f"{name}: {warning}", stacklevel=2)
    return Index.open(path)


def export(index: Index, file: AnyPath, *, field: str | None = None, description: str = "") -> Report:
    """Write a field of the newest commit, by default the first, to a CIFF file.

    A file whose name ends in ``.gz`` is compressed. The file appears under its name when it is complete.
    """
    import gzip
    import shutil
    from pathlib import Path

    field = next(iter(index.schema.fields)) if field is None else field
    name = path_name(file)
    target = Path(name)
    if target.resolve().parent == Path(index.path).resolve():
        raise UsageError(f"{name} is in the directory of the index; name another file")
    partial = [target.with_name(target.name + ending) for ending in (".part", ".part.gz")]
    try:
        numbers = _tierdex._ciff_export(index.path, field, description, os.fspath(partial[0]))
        done = partial[0]
        if name.endswith(".gz"):
            with open(partial[0], "rb") as plain, gzip.open(partial[1], "wb", 6) as packed:
                shutil.copyfileobj(plain, packed, 1 << 20)
            done = partial[1]
        os.replace(done, target)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot write {name}: {error.strerror or error}", error.errno, name) from None
    finally:
        for path in partial:
            path.unlink(missing_ok=True)
    return Report(**numbers)


def _decompress(name: str, plain: str) -> None:
    import gzip
    import shutil

    try:
        with gzip.open(name, "rb") as packed, open(plain, "wb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
    except (EOFError, gzip.BadGzipFile) as error:
        raise StorageError(f"{name}: the gzip data are damaged or cut off: {error}", None, name) from None


def _warnings(report: Report) -> list[Any]:
    found = []
    if report.other_frequencies:
        found.append(
            f"{report.other_frequencies} lists have another number of postings than document frequency"
        )
    if report.raised_lengths:
        found.append(
            f"{report.raised_lengths} documents are shorter than the sum of their frequencies, which is used; "
            'if the frequencies are quantised impacts, search with scorer="dot"'
        )
    if report.missing_tokens:
        found.append(f"{report.missing_tokens} tokens of the document lengths are in no list")
    if report.long_terms:
        found.append(f"{report.long_terms} terms of more than 255 bytes are left out")
    if report.changed_terms:
        found.append(
            f"{report.changed_terms} of {report.lists} terms cannot be found by queries with this analysis; "
            f"first: {report.first_changed_term!r}; for words as they are in the file give "
            'tokenizer="whitespace"'
        )
    if report.collection_documents > report.documents:
        found.append(
            f"a part of {report.collection_documents} documents; scores use the statistics of the part"
        )
    return found
