"""The text as every engine gets it: tokens separated by spaces, one document a line.

Tokens are the runs of letters and digits of title and text, in lower case. Tokens of more than 200 bytes and documents
without tokens are omitted, because engines treat them differently. Of n documents, number i of a further copy c is the
first half of document i and the second half of document (7,919 i + 104,729 c) mod n.
"""

import json
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import click

from tierdex_driver.errors import Failed
from tierdex_driver.peers.settings import Settings

TOKEN_BYTES_MAX = 200
# Primes, so that each copy combines different halves.
DOCUMENT_STEP, COPY_STEP = 7919, 104_729
SPACES = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))


@dataclass(frozen=True)
class Corpus:
    """The tokenized text, and the number of documents of each token in the order of their bytes."""

    path: Path
    bytes: int
    documents: int
    terms: dict[str, int]


def say(line: str) -> None:
    click.echo(line, err=True)


def identity(path: Path) -> str:
    """Name, size and time of an input."""
    data = path.stat()
    return f"{path.name} {data.st_size} {data.st_mtime_ns}\n"


def prepare(settings: Settings) -> Corpus:
    """The tokens of the input, which are reused if they are those of the same file."""
    same = identity(settings.input)
    make(settings.work, same, lambda: documents(settings.input))
    if settings.copies > 1:
        make(settings.data, same, lambda: copies(settings.work / "tokens.txt", settings.copies))
    path = settings.data / "tokens.txt"
    with path.open("rb") as file:
        count = sum(1 for _ in file)
    lines = (line.split("\t") for line in (settings.data / "terms.tsv").read_text("utf-8").split("\n")[:-1])
    return Corpus(path, path.stat().st_size, count, {term: int(number) for term, number in lines})


def make(directory: Path, same: str, lines: Callable[[], Iterable[str]]) -> None:
    """Writes the tokens and their document frequencies, and removes the indexes of former ones."""
    mark = directory / "tokens.done"
    if mark.exists() and mark.read_text() == same:
        return
    say(f"writing {directory / 'tokens.txt'}")
    directory.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    shutil.rmtree(directory / "indexes", ignore_errors=True)
    counts: Counter[str] = Counter()
    part = directory / "tokens.part"
    with part.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines():
            counts.update(set(line.split(" ")))
            file.write(line + "\n")
    part.replace(directory / "tokens.txt")
    terms = "".join(f"{term}\t{count}\n" for term, count in sorted(counts.items()))
    (directory / "terms.tsv").write_text(terms, "utf-8", newline="\n")
    mark.write_text(same)


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, unpacked by the program `zstd` if its name ends in .zst."""
    if path.suffix != ".zst":
        with path.open("rb") as file:
            yield from file
        return
    if not shutil.which("zstd"):
        raise Failed(f"cannot unpack {path}; install zstd")
    with subprocess.Popen(["zstd", "-dcq", "--long=31", path], stdout=subprocess.PIPE) as process:
        assert process.stdout
        yield from process.stdout
    if process.returncode:
        raise Failed(f"zstd cannot unpack {path}")


def documents(path: Path) -> Iterator[str]:
    """The lines of tokens of a file of JSON lines."""
    for number, line in enumerate(lines_of(path), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise Failed(f"{path}:{number}: {error}") from error
        members = [value.get(name) for name in ("title", "text")] if isinstance(value, dict) else []
        texts = [text for text in members if isinstance(text, str)]
        if not texts:
            raise Failed(f"{path}:{number}: has neither a title nor a text")
        if found := [token for text in texts for token in tokens(text)]:
            yield " ".join(found)


def tokens(text: str) -> list[str]:
    if text.isascii():
        return [token for token in text.translate(SPACES).split() if len(token) <= TOKEN_BYTES_MAX]
    runs = (run.lower() for run in word().findall(text))
    return [token for token in runs if len(token.encode()) <= TOKEN_BYTES_MAX]


@cache
def word() -> re.Pattern[str]:
    """Letters and digits, and the vowel signs of some scripts, which have other combining classes than accents."""
    marks = (chr(code) for code in range(0x300, 0xFE00) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    vowels = "".join(mark for mark in marks if unicodedata.combining(mark) in {0, *range(10, 200)})
    return re.compile(rf"(?:[^\W_]|[{vowels}])+")


def copies(path: Path, count: int) -> Iterator[str]:
    """The lines of a file, and of its further copies."""
    firsts, seconds = [], []
    for line in path.read_text("utf-8").split("\n")[:-1]:
        words = line.split(" ")
        half = (len(words) + 1) // 2
        firsts.append(" ".join(words[:half]))
        # With the space before it, unless the document has one token.
        seconds.append("".join(f" {token}" for token in words[half:]))
    for copy in range(count):
        say(f"copy {copy + 1} of {count}")
        for number, first in enumerate(firsts):
            other = (number * DOCUMENT_STEP + copy * COPY_STEP) % len(firsts) if copy else number
            yield first + seconds[other]


def parts(corpus: Corpus, count: int, directory: Path) -> list[Path]:
    """Writes files of equally many documents each; the last may have fewer."""
    each = -(-corpus.documents // count)
    directory.mkdir(exist_ok=True)
    paths = [directory / f"{number}.txt" for number in range(-(-corpus.documents // each))]
    with corpus.path.open("rb") as lines:
        for path in paths:
            with path.open("wb") as file:
                file.writelines(islice(lines, each))
    return paths
