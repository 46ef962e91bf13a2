"""Progress of long work: tqdm where it is installed, else a line on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TextIO

    from ._types import Progress


class Reporter:
    """Turns counts into calls of a function, a tqdm bar or a line on a terminal."""

    def __init__(self, progress: Progress, total: int | None, what: str) -> None:
        self._total, self._what = total, what
        self._bar: Any = None
        self._line: TextIO | None = None
        self._function = progress if callable(progress) else None
        if progress is True:
            try:
                from tqdm.auto import tqdm

                self._bar = tqdm(total=total, unit=f" {what}", unit_scale=True)
            except ImportError:
                self._line = sys.stderr if sys.stderr.isatty() else None
        silent = self._function is None and self._bar is None and self._line is None
        #: The function for the native code; ``None`` if nobody looks.
        self.call: Callable[[int], object] | None = None if silent else self._report

    def _report(self, done: int) -> object:
        if self._function is not None:
            return self._function(done, self._total)
        if self._bar is not None:
            return self._bar.update(done - self._bar.n)
        if self._line is not None:
            part = f" of {self._total:,}" if self._total else ""
            self._line.write(f"\r{done:,}{part} {self._what}")
            self._line.flush()
        return None

    def __enter__(self) -> Reporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._line is not None:
            self._line.write("\n")
