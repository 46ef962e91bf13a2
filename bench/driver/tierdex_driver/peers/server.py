"""An engine as a child process behind the line protocol of `tierdex-bench serve`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

from tierdex_driver.errors import CellFailed
from tierdex_driver.machine import number_of

BATCH_MEMBERS = ("n", "wall_ns", "p50_ns", "p99_ns", "sum", "unsupported")


@dataclass(frozen=True)
class Server:
    """A child that answers lines. Raises CellFailed if it ends or answers with an error."""

    name: str
    process_id: int
    input: IO[str]
    output: IO[str]
    log: Path

    def ask(self, line: str) -> str:
        """The answer to a line."""
        # If it has ended, its log says why.
        with suppress(BrokenPipeError):
            self.input.write(line + "\n")
            self.input.flush()
        answer = self.answer()
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
        return number_of(Path(f"/proc/{self.process_id}/io"), "read_bytes:")

    def answer(self) -> str:
        if line := self.output.readline():
            return line.rstrip("\n")
        lines = [text for text in self.log.read_text(errors="replace").splitlines() if text.strip()]
        raise CellFailed(f"{self.name} ended; its last line: {lines[-1] if lines else 'none'}")


@contextmanager
def serve(name: str, command: Sequence[str], directory: Path) -> Iterator[Server]:
    """Starts an engine, with a log file in a directory, and waits until its index is open. It ends with its input."""
    log = directory / f"{name.replace(' ', '-')}.log"
    try:
        with log.open("wb") as file:
            process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=file, text=True, encoding="utf-8")
    except OSError as error:
        raise CellFailed(f"cannot start {name}: {error.strerror}") from error
    assert process.stdin and process.stdout
    server = Server(name, process.pid, process.stdin, process.stdout, log)
    try:
        if (line := server.answer()) != "READY":
            raise CellFailed(f"{name} printed `{line}` in place of READY")
        yield server
    finally:
        with suppress(BrokenPipeError):
            server.input.close()
        server.output.close()
        process.wait()
