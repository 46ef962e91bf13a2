"""The state of the machine that cells need: control groups, throttles, huge pages, page cache, read-ahead, and a disk
that seeks. Whatever is changed is restored when the context ends. Needs root, as the error messages say."""

import fcntl
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any

from tierdex_driver.errors import CellFailed, Failed, Usage

HUGE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
# Version 1 limits the sum of memory and swap too. With no allowance that limit is reached first, and the kernel does not
# count how often the memory limit is reached.
SWAP_BYTES = 1 << 20
# The sequential read bandwidth of a SAS SSD in the APCache thesis (section 8.2.3).
SAS_BYTES_PER_SECOND = 793_000_000
UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


def bytes_of(size: Any) -> int:
    """A size: a number of bytes, or a number followed by K, M, G or T."""
    text = str(size)
    shift = UNITS.get(text[-1:], 0)
    try:
        return int(float(text[:-1] if shift else text) * (1 << shift))
    except ValueError as error:
        raise Usage(f"`{text}` is no size; write a number of bytes, or one such as 60M") from error


def write(path: Path, text: str) -> None:
    """Writes into a file of the kernel.

    Raises Failed if that is not permitted.
    """
    try:
        path.write_text(text)
    except OSError as error:
        root = "; run it as root" if isinstance(error, PermissionError) else ""
        raise Failed(f"cannot write `{text}` into {path}: {error.strerror}{root}") from error


def number_of(path: Path, name: str = "") -> int | None:
    """The number in a file, or that after `name` at the beginning of a line; None if there is none."""
    with suppress(OSError):
        found = re.search(rf"^{name}\s*(\d+)$", path.read_text(), re.MULTILINE)
        return int(found[1]) if found else None
    return None


def lock(file: IO[Any], error: Exception) -> None:
    """Locks an open file until it is closed; raises the error if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as cause:
        raise error from cause


@dataclass(frozen=True)
class Group:
    """A control group of version 1 or 2."""

    version: int
    path: Path

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"

    def words(self) -> list[str]:
        """The words before a command that runs in this group."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.procs)]

    def limit_memory(self, limit: int) -> None:
        write(self._file("memory.limit_in_bytes", "memory.max"), str(limit))
        with suppress(Failed):
            swap = self._file("memory.memsw.limit_in_bytes", "memory.swap.max")
            write(swap, str(limit + SWAP_BYTES) if self.version == 1 else "0")

    def limit_reads(self, directory: Path, bytes_per_second: int) -> None:
        """Limits the rate at which the disk of a directory is read."""
        key = "" if self.version == 1 else "rbps="
        file = self._file("blkio.throttle.read_bps_device", "io.max")
        write(file, f"{block_device(directory)} {key}{bytes_per_second}")

    def peak(self) -> int | None:
        return number_of(self._file("memory.max_usage_in_bytes", "memory.peak"))

    def limit_met(self) -> int | None:
        return number_of(self._file("memory.failcnt", "memory.events"), "" if self.version == 1 else "max")

    def own_memory(self) -> int | None:
        """Bytes that the members use now, without page cache."""
        used = number_of(self._file("memory.usage_in_bytes", "memory.current"))
        cached = number_of(self.path / "memory.stat", "cache" if self.version == 1 else "file")
        return None if used is None or cached is None else used - cached

    def reclaim(self) -> None:
        """Removes page cache of the members, mapped pages included."""
        # The kernel reports an error, as it cannot remove that amount.
        with suppress(OSError):
            self._file("memory.force_empty", "memory.reclaim").write_text("0" if self.version == 1 else "1T")

    def was_out_of_memory(self) -> bool:
        return bool(number_of(self._file("memory.oom_control", "memory.events"), "oom_kill"))

    def _file(self, v1: str, v2: str) -> Path:
        return self.path / (v1 if self.version == 1 else v2)


def own_group(v1: str, v2: str) -> Group:
    """The group of this process in the hierarchy of a controller, by its names in versions 1 and 2."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = {controller: path for _, controllers, path in lines for controller in controllers.split(",")}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        (root, point), (kind, _, options) = left.split()[3:5], right.split(" ", 2)
        if kind == "cgroup" and v1 in options.split(","):
            return Group(1, inside(Path(point), root, own.get(v1, "/")))
        if kind == "cgroup2":
            directory = inside(Path(point), root, own.get("", "/"))
            for parent in [directory, *directory.parents]:
                control = parent / "cgroup.subtree_control"
                if control.exists() and v2 in control.read_text().split():
                    return Group(2, parent)
    raise Failed(f"there are no control groups here with the controller {v1}; add --no-group")


def inside(point: Path, root: str, path: str) -> Path:
    """The directory of a group in a mounted hierarchy, of which `root` is mounted."""
    below = path.removeprefix(root) if path.startswith(root) else None
    return point if below is None or ".." in below else point / below.lstrip("/")


@contextmanager
def new_group(v1: str, v2: str) -> Iterator[Group]:
    """A new group below that of this process, by the names of a controller in versions 1 and 2; removed at the end."""
    parent = own_group(v1, v2)
    try:
        path = Path(mkdtemp(prefix=f"tierdex-bench-{os.getpid()}-", dir=parent.path))
    except OSError as error:
        raise Failed(f"cannot create a control group in {parent.path}: {error.strerror}; run it as root") from error
    try:
        yield Group(parent.version, path)
    finally:
        for _ in range(100):
            try:
                path.rmdir()
                break
            except OSError:
                # The kernel has not yet removed the last member.
                time.sleep(0.01)


@contextmanager
def memory_group(limit: int) -> Iterator[Group]:
    """A new group with a memory limit. A cell that fails because a member is killed at the limit says so."""
    with new_group("memory", "memory") as group:
        group.limit_memory(limit)
        try:
            yield group
        except CellFailed as error:
            if group.was_out_of_memory():
                raise CellFailed("killed: out of memory") from error
            raise


def block_device(directory: Path) -> str:
    """Major and minor number of the disk of a directory: `8:0`."""
    number = os.stat(directory).st_dev
    path = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not path.exists():
        raise Failed(f"{directory} is not on a block device")
    # The limits of a partition are those of its disk.
    path = path.resolve()
    disk = path.parent if (path / "partition").exists() else path
    return (disk / "dev").read_text().strip()


def drop_page_cache() -> None:
    write(Path("/proc/sys/vm/drop_caches"), "1")


def drop_pages(path: Path) -> None:
    """Removes the pages of a file, or of all files of a directory, from the page cache; not those that are mapped."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                # Pages that wait to be written stay otherwise.
                os.fdatasync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_ahead_file(directory: Path) -> Path:
    return Path(f"/sys/dev/block/{block_device(directory)}/queue/read_ahead_kb")


@contextmanager
def read_ahead(directory: Path, kilobytes: int) -> Iterator[None]:
    """Sets the read-ahead of the device of a directory. The file is locked, as another run would find the changed
    value, and restore that."""
    path = read_ahead_file(directory)
    with path.open() as file:
        lock(file, Failed(f"another run has set the read-ahead of the device and locks {path}"))
        before = path.read_text().strip()
        write(path, str(kilobytes))
        try:
            yield
        finally:
            write(path, before)


class HugePages:
    """Huge pages of 2 MiB that this run reserved."""

    def __init__(self) -> None:
        self.added = 0

    def reserve(self, needed: int) -> None:
        """Ensures that `needed` huge pages are free.

        Raises Failed, with the number of free pages, if there is no memory for them.
        """
        for attempt in range(3):
            if (free := self._free()) >= needed:
                return
            if attempt:
                # Earlier cells leave memory fragmented.
                with suppress(Failed):
                    write(Path("/proc/sys/vm/compact_memory"), "1")
            before = self._count("nr_hugepages")
            write(HUGE_PAGES / "nr_hugepages", str(before + needed - free))
            self.added += self._count("nr_hugepages") - before
        if (free := self._free()) < needed:
            raise Failed(f"a cell needs {needed} huge pages of 2 MiB and {free} are free; choose another --region")

    def release(self) -> None:
        """Lowers their number by as many, not to the former one: another run may have reserved some since."""
        if self.added:
            write(HUGE_PAGES / "nr_hugepages", str(max(self._count("nr_hugepages") - self.added, 0)))
            self.added = 0

    def _free(self) -> int:
        return self._count("free_hugepages") - self._count("resv_hugepages")

    @staticmethod
    def _count(name: str) -> int:
        return number_of(HUGE_PAGES / name) or 0


@contextmanager
def seek_disk(program: Path, directories: list[Path]) -> Iterator[dict[str, Any]]:
    """Mounts directories on an emulated disk (`tierdex-bench seek-disk`), and gives what the command prints: the mounted
    directories, and the file that starts the delays."""
    command = [str(program), "seek-disk", *map(str, directories)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        line = process.stdout.readline()
        try:
            if not line:
                raise Failed(process.stderr.read().decode().strip() or "a disk that seeks cannot be emulated here")
            yield json.loads(line)
        finally:
            # The disk is unmounted at the end of its input.
            process.stdin.close()
            process.wait()
