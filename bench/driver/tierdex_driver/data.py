"""Generated indexes. Each is written once and used by all cells and runs that need it."""

import os
import re
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tierdex_driver import machine
from tierdex_driver.definitions import GENERATED, Cell
from tierdex_driver.errors import Usage
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

    @classmethod
    def of(cls, cell: Cell) -> Self | None:
        """The index of a cell; None if the cell names none and has no number of documents."""
        settings = dict(cell.settings)
        if "index" in settings:
            return cls(existing=Path(re.sub(r"@\d+-[0-9a-f]{8}$", "", settings["index"])))
        if "docs" not in settings:
            return None
        try:
            docs, postings, vocabulary = (int(settings[name]) for name in ("docs", "postings", "vocabulary"))
        except (KeyError, ValueError) as error:
            raise Usage(f"{cell}: `postings` or `vocabulary` is missing, or no number") from error
        # The experiment `codecs` decodes the lists of the index; its setting is the codec measured.
        codec = "vbyte-delta" if cell.experiment == "codecs" else settings.get("codec", "auto")
        return cls(docs, postings, vocabulary, codec, settings.get("ids-only") == "true")

    @property
    def sizes(self) -> dict[str, int]:
        return {"docs": self.docs, "postings": self.postings, "vocabulary": self.vocabulary}


class DataSets:
    """The directory of the indexes. One run uses it at a time."""

    def __init__(self, directory: Path, program: Program, format_version: int):
        self.directory, self.program, self.format = directory, program, format_version
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = (directory / "lock").open("w")
        machine.lock(self._lock, Usage(f"another run uses {directory}; choose another directory by --data"))

    def make(self, spec: IndexSpec) -> Path:
        """The directory of an index, which is generated if it does not exist."""
        if spec.existing:
            return spec.existing
        sizes = f"docs{spec.docs}-postings{spec.postings}-terms{spec.vocabulary}"
        ids, flags = ("-ids", ["--ids-only"]) if spec.ids_only else ("", [])
        flags += [f"--{name}={number}" for name, number in spec.sizes.items()]
        flags += [f"--codec={spec.codec}", "--seed=1"]
        path = self.directory / f"{sizes}-{spec.codec}{ids}-format{self.format}"
        return complete(path, lambda part: self.program.generate([*flags, f"--out={part}"]))

    def copies(self, spec: IndexSpec, count: int) -> list[Path]:
        """The index and copies of it, `count` directories in all."""
        original = self.make(spec)
        names = [f"{original.name}-copy{number}" for number in range(2, count + 1)]
        return [
            original,
            *(complete(original.with_name(name), lambda part: shutil.copytree(original, part)) for name in names),
        ]

    def queries(self, spec: IndexSpec) -> Path:
        """A file of queries of two to four terms of an index, in lines of words."""
        path = self.directory / f"queries-terms{spec.vocabulary}.txt"
        drawn = self.program.run({"experiment": "query-file", "count": GENERATED_QUERIES, **spec.sizes})
        path.write_text("\n".join(drawn["lines"]) + "\n")
        return path


def complete(path: Path, write: Callable[[Path], object]) -> Path:
    """Writes a directory that does not exist, under another name first: one that exists is complete."""
    if not path.exists():
        part = path.with_name(f"{path.name}.part")
        # An interrupted run has left it.
        shutil.rmtree(part, ignore_errors=True)
        write(part)
        part.rename(path)
    return path


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
