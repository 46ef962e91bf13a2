"""Runs `tierdex-bench`: one process for each measurement, with JSON in and out."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tierdex_driver.errors import CellFailed, Failed


class Program:
    """A build of `tierdex-bench`."""

    def __init__(self, path: Path):
        self.path = path

    def start(self, cell: Mapping[str, Any], before: Sequence[str] = (), kernel: str = "") -> subprocess.Popen[bytes]:
        """Starts the process of a cell. `before` are words in front of the program, such as those of a simulator."""
        environment = os.environ | ({"TIERDEX_KERNEL": kernel} if kernel else {})
        pipe = subprocess.PIPE
        command = [*before, str(self.path), "cell"]
        with TemporaryFile() as file:
            file.write(json.dumps(cell).encode())
            file.seek(0)
            try:
                # A group of its own, so that the words before the program end with it.
                return subprocess.Popen(
                    command, stdin=file, stdout=pipe, stderr=pipe, env=environment, process_group=0 if before else None
                )
            except OSError as error:
                raise Failed(f"cannot start {command[0]}: {error.strerror}") from error

    def run(self, cell: Mapping[str, Any], before: Sequence[str] = ()) -> dict[str, Any]:
        """Runs a cell and returns its output.

        Raises CellFailed if the process fails.
        """
        return finish(self.start(cell, before))

    def generate(self, arguments: Sequence[str]) -> None:
        """Runs `tierdex-bench generate`."""
        done = subprocess.run([self.path, "generate", *arguments], capture_output=True)
        raise_interrupt(done.returncode)
        if done.returncode:
            raise Failed(one_line(done.stderr) or "tierdex-bench generate failed")


def finish(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Waits for a process and returns its output."""
    try:
        output, errors = process.communicate()
    except BaseException:
        stop(process)
        raise
    status = process.returncode
    raise_interrupt(status)
    if status:
        how = f"killed by signal {-status}" if status < 0 else f"exit code {status}"
        raise CellFailed(f"{how}: {one_line(errors)}" if errors.strip() else how)
    try:
        return dict(json.loads(output))
    except ValueError as error:
        raise CellFailed(f"the output is no line of JSON: {one_line(output)[:80]}") from error


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that still runs."""
    if process.poll() is None:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def raise_interrupt(status: int) -> None:
    """Ctrl-C reaches the processes too: a process that it ended is no failure."""
    if status in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt


def one_line(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split())
