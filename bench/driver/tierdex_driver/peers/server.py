"""An engine as a child process behind the line protocol of `tierdex-bench serve`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen

from tierdex_driver.errors import CellFailed
from tierdex_driver.machine import number_of

BATCH_MEMBERS = ("n", "wall_ns", "p50_ns", "p99_ns", "sum", "unsupported")


class Server:
    """A child that answers lines. It ends with its input, at the end of the context.

    Raises CellFailed if the engine ends or answers with an error.
    """

    def __init__(self, name: str, command: Sequence[str], directory: Path):
        """Starts the engine, with a log file in a directory."""
        self.name = name
        self.log = directory / f"{name.replace(' ', '-')}.log"
        try:
            with self.log.open("wb") as log:
                self.process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=log, text=True, encoding="utf-8")
        except OSError as error:
            raise CellFailed(f"cannot start {name}: {error.strerror}") from error

    def __enter__(self) -> Server:
        """Waits until the index is open."""
        try:
            if (line := self._answer()) != "READY":
                raise CellFailed(f"{self.name} printed `{line}` in place of READY")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, line: str) -> str:
        """The answer to a line."""
        assert self.process.stdin
        # If it has ended, its log says why.
        with suppress(BrokenPipeError):
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        answer = self._answer()
        if answer.startswith("ERROR "):
            raise CellFailed(f"{self.name} answers `{line}` by: {answer[6:]}")
        return answer

    def batch(self, file: Path, threads: int = 1) -> dict[str, int]:
        """Runs the lines of a file: their number, times in nanoseconds, and the sum of their answers."""
        answer = self.ask(f"!BATCH\t{file}\t{threads}\t-")
        try:
            found = json.loads(answer)
            return {name: int(found[name]) for name in BATCH_MEMBERS}
        except (ValueError, KeyError, TypeError) as error:
            raise CellFailed(f"{self.name} answers a batch by `{answer}`") from error

    def bytes_fetched(self) -> int | None:
        """Bytes that were read from devices for the process."""
        return number_of(Path(f"/proc/{self.process.pid}/io"), "read_bytes:")

    def _answer(self) -> str:
        assert self.process.stdout
        if line := self.process.stdout.readline():
            return line.rstrip("\n")
        lines = [text for text in self.log.read_text(errors="replace").splitlines() if text.strip()]
        raise CellFailed(f"{self.name} ended; its last line: {lines[-1] if lines else 'none'}")
