"""The query sets: their names, groups and patterns.

A pattern is a query with placeholders; the words of a query differ.

| placeholder | a word |
|---|---|
| `h` | a term in more than 1% of the documents |
| `M`, `l` | a term in 0.001% to 1% of the documents; in fewer, at least two |
| `m` | such a term as `M` in at least 200 documents |
| `hM`, `hh` | three to five terms, the placeholder of each one of the two with equal odds |
| `x` | `h` or `m` with equal odds; before `~1` or `~2` one of at least four or six letters |
| `p` | the first three to five characters of such a term, at least one less than it has |
| `"2"`, `"2"~3` | a phrase of two words of the text; with a slop of three, in another order or with other words between |
| `game` | a real query: the name of its file is in `FILES` |
"""

from dataclasses import dataclass

LIMITED = ("single-h", "and-hh")
# Flat sets that are compared unless flags name others.
COMPARED = (*LIMITED, "single-m", "and-mm", "and-3-5", "or-hh", "or-mm", "or-3-5", "game-and", "game-or", "questions-or")
FILES = {
    "game": "search-benchmark-game.jsonl",
    "questions": "msmarco-passage.dev-subset.tsv",
    "terabyte": "terabyte05.efficiency.tsv",
}
GROUPS = {
    "flat": """
        single-h: h, single-m: M, single-l: l, and-hh: +h +h, and-mm: +M +M, and-ll: +l +l, and-3-5: +hM, and-3-5-h: +hh,
        or-hh: h h, or-mm: M M, or-ll: l l, or-3-5: hM, or-3-5-h: hh, game-and: +game, game-or: game,
        questions-and: +questions, questions-or: questions, terabyte-and: +terabyte, terabyte-or: terabyte
    """,
    "mixed": """
        must-m-filter-h: +m #h, must-h-filter-h: +h #h, must-m-not-h: +m -h, must-h-not-h: +h -h, must-m-should-h: +m h,
        must-h-should-h: +h h, should-hh-filter-h: h h #h, should-hh-not-h: h h -h
    """,
    "phrases": 'phrase-2: "2", phrase-3: "3", phrase-4: "4"',
    "shapes": """
        nested-1: +(x x) +(x x), nested-2: +x +(x x), nested-3: (+x +x) x, nested-4: (x x x) -(x x),
        nested-5: +(x (+x +x)) +(x x) -x, nested-6: ((+x +x) (+x +x)) -x, nested-7: +(x x x) #(x x) x,
        nested-8: (x x) (+x #x), nested-9: +x -(x x), nested-10: +(x x) x, minimum-2-of-3: (x x x)~2,
        minimum-2-of-4: (x x x x)~2, minimum-3-of-5: (x x x x x)~3, minimum-filter: #x +(x x x x)~2,
        minimum-not: +(x x x x)~2 -x, prefix-alone: p*, prefix-m: +m #p*, prefix-h: +h #p*, prefix-should: m p*,
        prefix-two: +p* +p*, prefix-or: +m +(p* p*), prefix-not: +h -p*, fuzzy-1: x~1, fuzzy-2: x~2, fuzzy-and: +x~1 +h,
        fuzzy-or: x~1 m, slop-2: "2"~3, slop-3: "3"~4
    """,
}


@dataclass(frozen=True)
class Recipe:
    """How the queries of a set are made."""

    name: str
    group: str
    pattern: str

    @property
    def sign(self) -> str:
        """The sign of all terms, where they have the same."""
        return "+" if self.pattern.startswith("+") else ""

    @property
    def file(self) -> str | None:
        """The file of real queries."""
        return FILES.get(self.pattern.lstrip("+"))

    @property
    def has_positions(self) -> bool:
        return self.pattern.startswith('"')

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


PATTERNS = [(group, one.strip().split(": ")) for group, text in GROUPS.items() for one in text.split(",")]
ALL = [Recipe(name, group, pattern) for group, (name, pattern) in PATTERNS]
