"""Exceptions: all are subclasses of :class:`Error`."""

from __future__ import annotations


class Error(Exception):
    """Any error of tierdex. The message is one line: what happened, where and, if it helps, what to do."""


class UsageError(Error, ValueError):
    """An argument or an option that the index or the engine does not support."""


class RangeError(UsageError, IndexError):
    """There is no hit or query at a position."""


class QueryError(UsageError):
    """A query has a syntax error, or is larger than a query may be.

    ``position`` is the offset of the error in bytes of the query's UTF-8 text, or ``None``.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message, position)
        self.position = position

    def __str__(self) -> str:
        return str(self.args[0])


class LimitError(Error):
    """A document, query or commit exceeds a limit of size or memory: it fails again if repeated."""


class OverloadedError(Error):
    """The engine has no memory for another request at present; ``retry_after`` is a pause in seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return str(self.args[0])


class ExpiredError(Error):
    """The deadline passed while the request waited in the queue: nothing was evaluated."""


class BusyError(Error):
    """Another writer holds the lock of the index; try again later, or give ``wait``."""


class CancelledError(Error):
    """The work was cancelled; the last commit is intact."""


class StorageError(Error, OSError):
    """A device failed, or is full. ``filename`` is the file, ``errno`` the number of the system's error."""

    def __init__(self, message: str, errno: int | None = None, filename: str | None = None) -> None:
        super().__init__(message, errno, filename)
        self.errno = errno
        self.filename = filename

    def __str__(self) -> str:
        return str(self.args[0])


class MissingError(StorageError, FileNotFoundError):
    """There is no such file or directory."""


class ServerError(Error, ConnectionError):
    """A server cannot be reached or is stopping, or something else than a tierdex server has answered."""


class CorruptError(Error):
    """A file of the index is damaged: ``file`` and the ``offset`` of the damage in bytes."""

    def __init__(self, message: str, file: str = "", offset: int | None = None) -> None:
        super().__init__(message, file, offset)
        self.file = file
        self.offset = offset

    def __str__(self) -> str:
        return str(self.args[0])


class InternalError(Error):
    """A defect of tierdex: please report it with the message."""
