"""Generated indexes. Each is written once and used by all cells and runs that need it."""

from __future__ import annotations

import fcntl
import os
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

from tierdex_driver.definitions import GENERATED, Cell
from tierdex_driver.errors import Failed, Usage
from tierdex_driver.process import Program

# Settings of cells that describe an index.
INDEX_SETTINGS = (*GENERATED, "index")
GENERATED_QUERIES = 1000


@dataclass(frozen=True)
class IndexSpec:
    """An index that is generated, or an existing one."""

    docs: int = 0
    postings: int = 0
    vocabulary: int = 0
    codec: str = ""
    ids_only: bool = False
    existing: Path | None = None

    @staticmethod
    def of(cell: Cell) -> IndexSpec | None:
        """The index of a cell; None if the cell names none and has no number of documents."""
        settings = dict(cell.settings)
        if "index" in settings:
            return IndexSpec(existing=Path(settings["index"].rpartition("@")[0]))
        if "docs" not in settings:
            return None
        try:
            docs, postings, vocabulary = (int(settings[name]) for name in ("docs", "postings", "vocabulary"))
        except (KeyError, ValueError) as error:
            raise Usage(f"{cell}: `postings` or `vocabulary` is missing, or no number") from error
        # The experiment `codecs` decodes the lists of the index; its setting is the codec measured.
        codec = "vbyte-delta" if cell.experiment == "codecs" else settings.get("codec", "auto")
        return IndexSpec(docs, postings, vocabulary, codec, settings.get("ids-only") == "true")


class DataSets:
    """The directory of the indexes. One run uses it at a time."""

    def __init__(self, directory: Path, program: Program, format_version: int):
        self.directory, self.program, self.format = directory, program, format_version
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = (directory / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Usage(f"another run uses {directory}; choose another directory by --data") from error

    def path(self, spec: IndexSpec) -> Path:
        ids = "-ids" if spec.ids_only else ""
        sizes = f"docs{spec.docs}-postings{spec.postings}-terms{spec.vocabulary}"
        return self.directory / f"{sizes}-{spec.codec}{ids}-format{self.format}"

    def make(self, spec: IndexSpec) -> Path:
        """Generates an index if it does not exist, under another name first: one whose directory exists is complete."""
        if spec.existing:
            return spec.existing
        path = self.path(spec)
        if not path.exists():
            part = self.fresh(path.with_name(f"{path.name}.part"))
            sizes = [f"--docs={spec.docs}", f"--postings={spec.postings}", f"--vocabulary={spec.vocabulary}"]
            ids = ["--ids-only"] if spec.ids_only else []
            self.program.generate([*sizes, f"--codec={spec.codec}", *ids, "--seed=1", f"--out={part}"])
            part.rename(path)
        return path

    def copies(self, spec: IndexSpec, count: int) -> list[Path]:
        """The index and copies of it, `count` directories in all."""
        original = self.make(spec)
        paths = [original]
        if spec.existing and count > 1:
            raise Usage(f"{count} processes need copies of their index; leave out `cores`, or generate the index")
        for number in range(2, count + 1):
            copy = original.with_name(f"{original.name}-copy{number}")
            if not copy.exists():
                part = self.fresh(copy.with_name(f"{copy.name}.part"))
                shutil.copytree(original, part)
                part.rename(copy)
            paths.append(copy)
        return paths

    def queries(self, spec: IndexSpec) -> Path:
        """A file of queries of two to four terms of an index, in lines of words."""
        path = self.directory / f"queries-terms{spec.vocabulary}.txt"
        sizes = {"docs": spec.docs, "postings": spec.postings, "vocabulary": spec.vocabulary}
        drawn = self.program.run({"experiment": "query-file", "count": GENERATED_QUERIES, **sizes})
        path.write_text("\n".join(drawn["lines"]) + "\n")
        return path

    def fresh(self, part: Path) -> Path:
        """Removes an incomplete directory that an interrupted run has left."""
        shutil.rmtree(part, ignore_errors=True)
        if part.exists():
            raise Failed(f"cannot remove {part}")
        return part


def name_of_commit(index: Path) -> str:
    """The directory and the newest commit of an index, `DIRECTORY@GENERATION-CHECKSUM`. Another one is measured again."""
    manifests = sorted(path for path in index.glob("manifest-*") if path.suffix != ".tmp")
    if not manifests:
        raise Usage(f"{index} holds no tierdex index")
    newest = manifests[-1]
    generation = int(newest.name.removeprefix("manifest-"), 16)
    return f"{index.resolve()}@{generation}-{zlib.crc32(newest.read_bytes()):08x}"


def default_directory() -> Path:
    """Where indexes are kept unless --data says otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tierdex-bench"
