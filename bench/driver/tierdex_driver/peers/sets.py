"""Makes query sets: drawn from the terms of the text by document frequency, cut from its lines, or real.

Terms are drawn by the two-queue scheme: the terms of a class are in a queue in random order, from which the next one is
taken; with the probability of repeats a random one of the last hundred is used instead. Phrases are adjacent words at
random bytes of the text, so frequent ones are drawn more often. All draws are SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
"""

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tierdex_driver.errors import Failed
from tierdex_driver.peers.recipes import Recipe
from tierdex_driver.peers.settings import Settings
from tierdex_driver.peers.text import Corpus, say, tokens

REPEATS_MAX = 100
# Draws after which no further term is found, and places of the text that are tried for a phrase.
DRAWS_MAX, TRIES_MAX = 1000, 1000
# Documents of a term of the placeholder `m`, at least.
COMMON_MIN = 200
SEVERAL = ("hM", "hh")
PREFIX_CHARS = (3, 4, 5)
LETTERS_MIN = {"~1": 4, "~2": 6}
# Bytes that are read at a place: those of six of the longest words.
WINDOW_BYTES = 1206
BITS = (1 << 64) - 1


class Random:
    """SplitMix64."""

    def __init__(self, seed: int):
        self.state = seed

    def bits(self) -> int:
        self.state = (self.state + 0x9E37_79B9_7F4A_7C15) & BITS
        mixed = ((self.state ^ (self.state >> 30)) * 0xBF58_476D_1CE4_E5B9) & BITS
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D0_49BB_1331_11EB) & BITS
        return mixed ^ (mixed >> 31)

    def below(self, bound: int) -> int:
        return ((self.bits() >> 32) * bound) >> 32

    def shuffle(self, values: list[str]) -> None:
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1)
            values[last], values[other] = values[other], values[last]


@dataclass(frozen=True)
class Set:
    """Queries of one kind, as the protocol writes them."""

    name: str
    recipe: Recipe
    queries: tuple[str, ...]


def make(settings: Settings, corpus: Corpus) -> list[Set]:
    """The selected sets, without those that have no queries; also written below the work directory."""
    directory = settings.data / "sets"
    directory.mkdir(exist_ok=True)
    terms = classes_of(corpus)
    sets = []
    for recipe in settings.recipes:
        for percent in (0,) if recipe.file or recipe.has_positions else settings.repeat:
            random, name = Random(settings.seed), recipe.name + (f"-rp{percent}" if percent else "")
            if recipe.file:
                queries = real(settings, corpus, recipe, random)
            elif recipe.has_positions:
                queries = phrases(corpus, recipe.pattern, settings.count, random)
            else:
                queries = Drawing(terms, percent, random).queries(recipe.pattern, settings.count)
            queries = queries[: settings.count]
            (directory / f"{name}.txt").write_text("".join(f"{query}\n" for query in queries), "utf-8")
            if queries:
                sets.append(Set(name, recipe, tuple(queries)))
            else:
                say(f"set {name} is omitted: there are no such queries")
    return sets


def classes_of(corpus: Corpus) -> dict[str, list[str]]:
    """The terms of each placeholder; those of one document have none."""
    counts, documents = pd.Series(corpus.terms, dtype=int), corpus.documents
    frequent, rare = counts * 100 > documents, counts * 100_000 < documents
    medium = ~frequent & ~rare
    chosen = {"h": frequent, "M": medium, "m": medium & (counts >= COMMON_MIN), "l": ~frequent & rare & (counts > 1)}
    return {letter: list(counts.index[chosen[letter]]) for letter in chosen}


class NoTerms(Exception):
    """There are not enough terms for a query."""


class Drawing:
    """The queues from which queries are drawn."""

    def __init__(self, classes: dict[str, list[str]], percent: int, random: Random):
        self.classes, self.percent, self.random = classes, percent, random
        self.waiting: dict[str, list[str]] = {letter: [] for letter in classes}
        self.repeats: dict[str, deque[str]] = {letter: deque(maxlen=REPEATS_MAX) for letter in classes}

    def queries(self, pattern: str, count: int) -> list[str]:
        """The queries of a pattern, fewer if there are not enough terms."""
        found: list[str] = []
        with suppress(NoTerms):
            while len(found) < count:
                found.append(self.several(pattern) if pattern.lstrip("+") in SEVERAL else self.fill(pattern))
        return found

    def several(self, pattern: str) -> str:
        words: list[str] = []
        for _ in range(3 + self.random.below(3)):
            self.add(pattern[-2:][self.random.below(2)], words)
        return join(words, pattern[:-2])

    def fill(self, pattern: str) -> str:
        """The pattern with a word in place of each placeholder."""
        query, words = "", list[str]()
        for at, letter in enumerate(pattern):
            if letter in self.classes:
                self.add(letter, words)
            elif letter in "xp":
                common = "hm"[self.random.below(2)]
                chars = PREFIX_CHARS[self.random.below(len(PREFIX_CHARS))] if letter == "p" else 0
                self.add(common, words, chars, LETTERS_MIN.get(pattern[at + 1 : at + 3], 0))
            query += words[-1] if letter in "hMmlxp" else letter
        return query

    def add(self, letter: str, words: list[str], chars: int = 0, letters: int = 0) -> None:
        """Draws a term that is not among `words`, and appends it: its first `chars` characters if `chars` is not 0, else a
        term of at least `letters` letters.

        Raises NoTerms if none of many draws is suitable.
        """
        for _ in range(DRAWS_MAX):
            term = self.next(letter)
            if chars:
                term = term[: min(chars, len(term) - 1)]
            suits = len(term) >= PREFIX_CHARS[0] if chars else not letters or (len(term) >= letters and term.isalpha())
            if suits and term not in words:
                words.append(term)
                return
        raise NoTerms

    def next(self, letter: str) -> str:
        waiting, repeats = self.waiting[letter], self.repeats[letter]
        if repeats and self.random.below(100) < self.percent:
            return repeats[self.random.below(len(repeats))]
        if not waiting:
            waiting += self.classes[letter]
            self.random.shuffle(waiting)
        if not waiting:
            raise NoTerms
        repeats.append(waiting.pop())
        return repeats[-1]


def join(words: list[str], sign: str) -> str:
    return " ".join(sign + word for word in words)


def phrases(corpus: Corpus, pattern: str, count: int, random: Random) -> list[str]:
    """Distinct phrases, fewer if the text has no more."""
    found: dict[str, None] = {}
    _, length, slop = pattern.split('"')
    with corpus.path.open("rb") as file:
        for _ in range(count * TRIES_MAX):
            if len(found) == count:
                break
            window = os.pread(file.fileno(), WINDOW_BYTES, random.bits() % max(corpus.bytes, 1))
            words = loose(window, int(length), random) if slop else adjacent(window, int(length))
            if words:
                found[f'"{" ".join(words)}"{slop}'] = None
    return list(found)


def adjacent(window: bytes, count: int) -> list[str] | None:
    """The first whole words of a piece of text, unless a line ends between them."""
    found = re.match(rb"[^ \n]*[ \n]((?:[^ \n]* ){%d}[^ \n]*)[ \n]" % (count - 1), window)
    return found[1].decode().split(" ") if found else None


def loose(window: bytes, count: int, random: Random) -> list[str] | None:
    """Different words that are near each other: with equal odds in another order, or with one between them left out."""
    leaves_out = random.below(2) == 0
    words = adjacent(window, count + leaves_out)
    if not words:
        return None
    if leaves_out:
        del words[1 + random.below(count - 1)]
    if len(set(words)) < count:
        return None
    in_order = list(words)
    while not leaves_out and words == in_order:
        random.shuffle(words)
    return words


def real(settings: Settings, corpus: Corpus, recipe: Recipe, random: Random) -> list[str]:
    """Queries of a file: terms that no document has are removed from disjunctions. Conjunctions with such a term, and
    queries with fewer than two terms, are omitted."""
    found: list[str] = []
    path = settings.queries and settings.queries / recipe.file
    if path and not path.is_file():
        say(f"{recipe.file} is not in the directory of queries")
    for text in texts(path, recipe) if path and path.is_file() else ():
        words = list(dict.fromkeys(tokens(text)))
        known = [word for word in words if word in corpus.terms]
        if len(known) >= 2 and not (recipe.sign and len(known) < len(words)):
            found.append(join(known, recipe.sign))
    random.shuffle(found)
    return found


def texts(path: Path, recipe: Recipe) -> Iterator[str]:
    """The queries of a file; of one with tags those that are conjunctions or disjunctions."""
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        try:
            if line and path.suffix == ".tsv":
                yield line.split("\t", 1)[1]
            elif line:
                value = json.loads(line)
                if ("intersection" if recipe.sign else "union") in value["tags"]:
                    yield str(value["query"])
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Failed(f"{path}:{number}: is no query") from error
