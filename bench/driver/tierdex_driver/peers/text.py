"""The text as every engine gets it: tokens separated by spaces, one document a line.

Tokens are the runs of letters and digits of title and text, in lower case. Tokens of more than 200 bytes and documents
without tokens are omitted, because engines treat them differently. Further copies consist of halves of two documents: of n
documents, number i of copy c is the first half of document i and the second half of document (7,919 i + 104,729 c) mod n.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO

import click

from tierdex_driver.errors import Failed
from tierdex_driver.peers.settings import Settings

TOKEN_BYTES_MAX = 200
# Primes, so that each copy combines different halves.
DOCUMENT_STEP, COPY_STEP = 7919, 104_729
ZSTD = bytes.fromhex("28b52ffd")
BLOCK_BYTES = 1 << 24
SPACES = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
# Canonical classes of vowel signs and the like; the others are accents.
VOWEL_CLASSES = {0, *range(10, 200)}


@dataclass(frozen=True)
class Corpus:
    """The tokenized text, and the number of documents of each token in the order of their bytes."""

    path: Path
    bytes: int
    documents: int
    terms: dict[str, int]


def say(line: str) -> None:
    """Prints a progress message."""
    click.echo(line, err=True)


def identity(path: Path) -> str:
    """What distinguishes inputs: name, size and time."""
    data = path.stat()
    return f"{path.name} {data.st_size} {data.st_mtime_ns}\n"


def prepare(settings: Settings) -> Corpus:
    """The tokens of the input, which are reused if they are those of the same file."""
    same = identity(settings.input)
    make(settings.work, same, lambda: documents(settings.input))
    if settings.copies > 1:
        make(settings.data_dir, same, lambda: copies(settings.work / "tokens.txt", settings.copies))
    return load(settings.data_dir)


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
    (directory / "terms.tsv").write_text(terms, encoding="utf-8", newline="\n")
    mark.write_text(same)


def load(directory: Path) -> Corpus:
    path = directory / "tokens.txt"
    count = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            count += block.count(b"\n")
    lines = (line.split("\t") for line in (directory / "terms.tsv").read_text(encoding="utf-8").split("\n")[:-1])
    return Corpus(path, path.stat().st_size, count, {term: int(number) for term, number in lines})


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked by the program `zstd` if it is compressed."""
    with path.open("rb") as file:
        if file.read(4) != ZSTD:
            file.seek(0)
            yield file
            return
    command = ["zstd", "-dcq", "--long=31", str(path)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
    except OSError as error:
        raise Failed(f"cannot unpack {path}: {error.strerror}; install zstd") from error
    assert process.stdout
    with process.stdout:
        yield process.stdout
    if process.wait():
        raise Failed(f"zstd cannot unpack {path}")


def documents(path: Path) -> Iterator[str]:
    """The lines of tokens of a file of JSON lines."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
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
    """Letters and digits, and the signs that belong to the letters of some scripts."""
    marks = (chr(code) for code in range(0x300, 0xFE00))
    signs = [mark for mark in marks if unicodedata.category(mark) in ("Mn", "Mc")]
    vowels = "".join(sign for sign in signs if unicodedata.combining(sign) in VOWEL_CLASSES)
    return re.compile(rf"(?:[^\W_]|[{vowels}])+")


def copies(path: Path, count: int) -> Iterator[str]:
    """The lines of a file, and of its further copies."""
    firsts, seconds = [], []
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            words = line.rstrip("\n").split(" ")
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
    paths = []
    with corpus.path.open("rb") as lines:
        for number in range(-(-corpus.documents // each)):
            paths.append(directory / f"{number}.txt")
            with paths[-1].open("wb") as file:
                file.writelines(islice(lines, each))
    return paths
