"""Checks of arguments: each error is a :class:`UsageError`."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING

from ._errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

#: The largest number of documents.
DOCUMENTS_MAX = 2**32 - 2


def whole_number(name: str, value: object) -> int:
    """A whole number, at most the largest number of documents."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{name} is a {type(value).__name__}, not an int") from None
    if not 0 <= number <= DOCUMENTS_MAX:
        raise UsageError(f"{name} is {_shown(number)}; it is a number from 0 to {DOCUMENTS_MAX}")
    return number


def real_number(name: str, value: object) -> float:
    """A number that is a ``float``, or can be one."""
    try:
        if not isinstance(value, str):
            return float(value)  # type: ignore[arg-type]
    except (OverflowError, TypeError, ValueError):
        pass
    shown = _shown(value) if isinstance(value, int) else f"a {type(value).__name__}"
    raise UsageError(f"{name} is {shown}, not a number that a float can be")


def document_numbers(values: Any) -> list[int]:
    """Numbers of documents."""
    try:
        numbers = [int(value) for value in items(values)]
    except (OverflowError, TypeError, ValueError) as error:
        raise UsageError(f"a document number was expected: {error}") from None
    if numbers:
        for number in (min(numbers), max(numbers)):
            whole_number("a document number", number)
    return numbers


def document_ids(values: Any) -> list[Any]:
    """An id of a document, or several, as a list."""
    if isinstance(values, str) or (hasattr(values, "__index__") and not hasattr(values, "__iter__")):
        return [values]
    is_mapping = hasattr(values, "keys") and not hasattr(values, "to_list")
    if isinstance(values, bytes | bytearray | memoryview) or is_mapping:
        raise UsageError(f"ids are a str, an int or an iterable of them, not a {type(values).__name__}")
    return list(items(values))


def path_name(path: object) -> str:
    """The path as a ``str``."""
    try:
        name = os.fspath(path)  # type: ignore[call-overload]
    except TypeError:
        name = path
    if not isinstance(name, str):
        raise UsageError(f"a path is a {type(name).__name__}; it is a str or an os.PathLike of str")
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        raise UsageError(f"path {name!r} has a character that the file system does not encode") from None
    return name


def path_names(paths: Any) -> list[str]:
    """A path, or several, as a list of ``str``."""
    if isinstance(paths, str | bytes) or not hasattr(paths, "__iter__"):
        return [path_name(paths)]
    names = [path_name(path) for path in items(paths)]
    if not names:
        raise UsageError("no index is named: the list of paths is empty")
    return names


def text(name: str, value: object) -> str:
    """A ``str`` without lone surrogates."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is a {type(value).__name__}, not a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} {value!r} has a lone surrogate") from None
    return value


def named_queries(queries: Any, qids: Iterable[object] | None) -> tuple[list[str] | None, list[Any]]:
    """The ids and the queries of a batch: those of a dict, or an iterable of queries with ``qids``."""
    pairs = getattr(queries, "items", None)
    if callable(pairs) and qids is None:
        named = list(pairs())
        qids, queries = [qid for qid, _ in named], [query for _, query in named]
    names = None if qids is None else [str(qid) for qid in items(qids)]
    return names, list(items(queries))


def items(values: Any) -> Iterable[Any]:
    """The values of an iterable, an Arrow array or a column of a data frame as Python objects."""
    if isinstance(values, str):
        raise UsageError("a list was expected, not a str")
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, name):
            try:
                return list(getattr(values, name)())
            except UnicodeDecodeError as error:
                raise UsageError(f"a value of the column is not UTF-8: {error}") from None
    try:
        iterator: Iterator[Any] = iter(values)
    except TypeError as error:
        raise UsageError(f"a list was expected: {error}") from None
    return iterator


def _shown(number: int) -> str:
    """The digits of a number, which Python does not print if there are some thousand."""
    return str(number) if number.bit_length() < 1000 else f"a number of {number.bit_length()} bits"
