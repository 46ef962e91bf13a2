"""The query sets: their names, groups and patterns.

A pattern is a query with placeholders; the words of a query differ.

| placeholder | a word |
|---|---|
| `h` | a term in more than 1% of the documents |
| `M`, `l` | a term in 0.001% to 1% of the documents; in fewer, at least two |
| `m` | such a term as `M` in at least 200 documents |
| `x` | `h` or `m` with equal odds; before `~1` or `~2` one of at least four or six letters |
| `p` | the first three to five characters of such a term, at least one less than it has |
"""

from __future__ import annotations

from dataclasses import dataclass

GROUPS = ("flat", "mixed", "phrases", "shapes")
LIMITED = ("single-h", "and-hh")
# Flat sets that are compared unless flags name others.
COMPARED = (*LIMITED, "single-m", "and-mm", "and-3-5", "or-hh", "or-mm", "or-3-5", "game-and", "game-or", "questions-or")
FILES = {
    "game": "search-benchmark-game.jsonl",
    "questions": "msmarco-passage.dev-subset.tsv",
    "terabyte": "terabyte05.efficiency.tsv",
}
# Names and patterns.
MIXED = """
must-m-filter-h: +m #h, must-h-filter-h: +h #h, must-m-not-h: +m -h, must-h-not-h: +h -h, must-m-should-h: +m h,
must-h-should-h: +h h, should-hh-filter-h: h h #h, should-hh-not-h: h h -h
"""
SHAPES = """
nested-1: +(x x) +(x x), nested-2: +x +(x x), nested-3: (+x +x) x, nested-4: (x x x) -(x x),
nested-5: +(x (+x +x)) +(x x) -x, nested-6: ((+x +x) (+x +x)) -x, nested-7: +(x x x) #(x x) x, nested-8: (x x) (+x #x),
nested-9: +x -(x x), nested-10: +(x x) x, minimum-2-of-3: (x x x)~2, minimum-2-of-4: (x x x x)~2,
minimum-3-of-5: (x x x x x)~3, minimum-filter: #x +(x x x x)~2, minimum-not: +(x x x x)~2 -x,
prefix-alone: p*, prefix-m: +m #p*, prefix-h: +h #p*, prefix-should: m p*, prefix-two: +p* +p*, prefix-or: +m +(p* p*),
prefix-not: +h -p*, fuzzy-1: x~1, fuzzy-2: x~2, fuzzy-and: +x~1 +h, fuzzy-or: x~1 m
"""


@dataclass(frozen=True)
class Recipe:
    """How the queries of a set are made: by one of `pattern`, `classes`, `file` and `words`."""

    name: str
    group: str
    pattern: str = ""
    # Three to five terms, the placeholder of each one of these two with equal odds.
    classes: str = ""
    # File of real queries.
    file: str = ""
    # Sign of each term of real queries and of three to five terms.
    sign: str = ""
    # Words of a phrase; with a slop they are in another order or with a gap.
    words: int = 0
    slop: int = 0

    @property
    def is_compared(self) -> bool:
        """Whether the set is measured, and part of the means, where its group is."""
        return self.group != "flat" or self.name in COMPARED

    @property
    def is_counted(self) -> bool:
        """Whether all engines match the same documents. They expand fuzzy words to different terms."""
        return "x~" not in self.pattern

    def has_command(self, command: str) -> bool:
        """Whether a command is measured unless flags name others."""
        if self.group == "shapes":
            return command == "TOP_10" or (command == "COUNT" and self.is_counted)
        return self.group != "phrases" or command != "TOP_1024"


def flat() -> list[Recipe]:
    recipes = [Recipe(f"single-{letter.lower()}", "flat", letter) for letter in "hMl"]
    signs = {"and": "+", "or": ""}
    for name, sign in signs.items():
        pairs = {letter.lower() * 2: f"{sign}{letter} {sign}{letter}" for letter in "hMl"}
        recipes += [Recipe(f"{name}-{letters}", "flat", pattern) for letters, pattern in pairs.items()]
        recipes += [Recipe(f"{name}-3-5{tail}", "flat", classes=two, sign=sign) for tail, two in (("", "hM"), ("-h", "hh"))]
    for source, file in FILES.items():
        recipes += [Recipe(f"{source}-{name}", "flat", file=file, sign=sign) for name, sign in signs.items()]
    return recipes


def patterns(group: str, text: str) -> list[Recipe]:
    pairs = (one.strip().split(": ") for one in text.split(","))
    return [Recipe(name, group, pattern) for name, pattern in pairs]


ALL: tuple[Recipe, ...] = (
    *flat(),
    *patterns("mixed", MIXED),
    *patterns("shapes", SHAPES),
    *(Recipe(f"phrase-{words}", "phrases", words=words) for words in (2, 3, 4)),
    *(Recipe(f"slop-{words}", "shapes", words=words, slop=words + 1) for words in (2, 3)),
)
