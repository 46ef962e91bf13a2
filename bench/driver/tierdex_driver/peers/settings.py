"""The settings of a comparison, and the command that sets them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from tierdex_driver.compare import bytes_of
from tierdex_driver.errors import Usage
from tierdex_driver.peers.recipes import ALL, GROUPS, LIMITED, Recipe

ENGINES = ("tierdex", "tantivy", "lucene", "pisa", "seekstorm")
COMMANDS = ("TOP_10", "TOP_1024", "TOP_1024_COUNT", "COUNT")
LIMITED_COMMANDS = ("TOP_10", "TOP_1024_COUNT")
# They keep their indexes in memory.
UNLIMITED = ("pisa", "seekstorm")
# Divisor of the limit: the default share that is not in the memory budget of tierdex.
SPARE = 10


@dataclass(frozen=True)
class Settings:
    """The flags, as the command describes them."""

    input: Path
    work: Path
    out: Path | None = None
    copies: int = 1
    queries: Path | None = None
    quick: bool = False
    engines: tuple[str, ...] = ENGINES
    sets: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    segments: int = 1
    k1: float | None = None
    b: float | None = None
    own_variants: bool = False
    threads: tuple[int, ...] = (1,)
    rounds: int | None = None
    warm: int | None = None
    count: int | None = None
    batch: int | None = None
    repeat: tuple[int, ...] = (0,)
    seed: int = 1
    limit: int | None = None
    beyond_own: bool = False
    tierdex_spare: int | None = None
    tierdex_flags: str | None = None
    read_ahead_kb: int | None = None
    norms: str = "byte"
    index_rounds: int = 0
    memory: int = 256

    def check(self) -> None:
        """Raises Usage if a value or a combination is invalid."""
        for command in self.commands:
            if not re.fullmatch(r"COUNT|TOP_[1-9]\d*(_COUNT)?", command):
                raise Usage(f"`{command}` is no command to measure; there are COUNT, TOP_k and TOP_k_COUNT")
        changed = {field.name for field in fields(self) if getattr(self, field.name) != field.default}
        wrong = changed & ({"segments", "k1", "b", "own_variants", "threads"} if self.limit else LIMIT_FLAGS)
        for name in sorted(wrong):
            flag = f"--{name.replace('_', '-')}"
            raise Usage(f"{flag} and --limit exclude each other" if self.limit else f"{flag} needs --limit")
        if self.limit and any(recipe.words for recipe in self.recipes()):
            raise Usage("phrases are not measured under a limit")

    def recipes(self) -> list[Recipe]:
        """The selected query sets. Raises Usage if a name is unknown."""
        if not self.sets and self.limit:
            return [recipe for recipe in ALL if recipe.name in LIMITED]
        found: list[Recipe] = []
        for name in self.sets or ("flat", "mixed", "phrases"):
            if name == "all":
                named = [recipe for recipe in ALL if not (self.limit and recipe.words)]
            else:
                named = [one for one in ALL if one.name == name or (one.group == name and one.is_compared)]
            if not named:
                names = ", ".join(["all", *GROUPS, *(recipe.name for recipe in ALL)])
                raise Usage(f"no query set is called `{name}`; there are {names}")
            found += [recipe for recipe in named if recipe not in found]
        return found

    def commands_of(self, recipe: Recipe) -> list[str]:
        if self.commands:
            return list(self.commands)
        return [command for command in (LIMITED_COMMANDS if self.limit else COMMANDS) if recipe.has_command(command)]

    @property
    def bm25(self) -> tuple[float, float] | None:
        """k1 and b, if the flags set one of them."""
        if self.k1 is None and self.b is None:
            return None
        return (1.2 if self.k1 is None else self.k1, 0.75 if self.b is None else self.b)

    @property
    def short(self) -> bool:
        return self.quick or self.limit is not None

    @property
    def round_count(self) -> int:
        return self.rounds or (3 if self.short else 7)

    @property
    def warm_count(self) -> int:
        return self.warm or (2 if self.short else 4)

    @property
    def query_count(self) -> int:
        return self.count or (100 if self.quick else 500)

    @property
    def batch_ms(self) -> int:
        return self.batch or (20 if self.quick else 100)

    @property
    def spare(self) -> int:
        """Bytes of the limit for pages that tierdex reads through the page cache."""
        assert self.limit
        return min(self.limit // SPARE if self.tierdex_spare is None else self.tierdex_spare, self.limit)

    @property
    def data_dir(self) -> Path:
        """Directory for tokens, sets and indexes of this number of copies."""
        return self.work if self.copies == 1 else self.work / f"copies-{self.copies}"

    @property
    def sets_dir(self) -> Path:
        return self.data_dir / "sets"


LIMIT_FLAGS = {"beyond_own", "tierdex_spare", "tierdex_flags", "read_ahead_kb"}


class Listed(click.ParamType[Any]):
    """Values of one type, separated by commas."""

    name = "list"

    def __init__(self, of: Any) -> None:
        self.of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(self.of.convert(word, param, ctx) for word in value.split(","))


class Size(click.ParamType[Any]):
    """Bytes, or a number with K, M, G or T behind it."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        size = bytes_of(value)
        if size <= 0:
            self.fail(f"`{value}` must be greater than 0", param, ctx)
        return size


PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
POSITIVE = click.IntRange(1)


@click.command("search")
@click.option("--input", type=FILE, required=True, help="JSON lines with the members title and text, plain or zstd.")
@click.option("--work", type=PATH, required=True, help="Directory for tokens and indexes, which the next run reuses.")
@click.option("--out", type=PATH, help="Directory of search.jsonl and report.md [default: results in WORK].")
@click.option("--copies", type=click.IntRange(1, 1000), default=1, help="Copies of the text; further ones join halves.")
@click.option("--queries", type=PATH, help="Directory of real queries: " + ", ".join(
    dict.fromkeys(recipe.source for recipe in ALL if recipe.source)) + ".")  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer queries and rounds.")
@click.option("--engines", type=Listed(click.Choice(ENGINES)), default=ENGINES, help="Engines [default: all].")
@click.option("--sets", type=Listed(click.STRING), default=(), help="Query sets by name or group: all, "
              + ", ".join(GROUPS) + " [default: flat,mixed,phrases; single-h,and-hh with --limit].")  # fmt: skip
@click.option("--commands", type=Listed(click.STRING), default=(), help="COUNT, TOP_k, TOP_k_COUNT [default: by group].")
@click.option("--segments", type=click.IntRange(1, 64), default=1, help="Segments of each index, of equal size.")
@click.option("--k1", type=float, help="BM25 k1 [default: 1.2].")
@click.option("--b", type=float, help="BM25 b [default: 0.75].")
@click.option("--own-variants", is_flag=True, help="Also tierdex with eight segments, and with k1 0.9 and b 0.4.")
@click.option("--threads", type=Listed(click.IntRange(1, 1024)), default=(1,), help="Numbers of query threads.")
@click.option("--rounds", type=POSITIVE, help="Measured rounds [default: 7; 3 with --quick or --limit].")
@click.option("--warm", type=POSITIVE, help="Warm-up rounds, with --limit those of Lucene [default: 4; 2 as above].")
@click.option("--count", type=POSITIVE, help="Queries of a set [default: 500; 100 with --quick].")
@click.option("--batch", type=POSITIVE, help="Milliseconds of a batch of the fastest engine [default: 100; 20].")
@click.option("--repeat", type=Listed(click.IntRange(0, 100)), default=(0,), help="Percentages of repeated terms.")
@click.option("--seed", type=click.IntRange(0), default=1, help="Seed of the query sets.")
@click.option("--limit", type=Size(), help="Memory limit of each engine, in a control group, such as 50M.")
@click.option("--beyond-own", is_flag=True, help="The limit is for the index only.")
@click.option("--tierdex-spare", type=Size(), help="Bytes that tierdex leaves to the page cache [default: a tenth].")
@click.option("--tierdex-flags", help="Flags of `tierdex-bench serve`, instead of those derived from the limit.")
@click.option("--read-ahead-kb", type=POSITIVE, help="Read-ahead of the device of WORK during the run.")
@click.option("--norms", type=click.Choice(["byte", "exact"]), default="byte", help="Document lengths of tierdex.")
@click.option("--index-rounds", type=click.IntRange(0), default=0, help="Rounds of indexing [default: if needed].")
@click.option("--memory", type=POSITIVE, default=256, help="Megabytes for buffered postings while indexing.")
def search(**flags: Any) -> None:
    """Compare queries a second of tierdex, Tantivy, Lucene, PISA and SeekStorm on the same text."""
    from tierdex_driver.peers.run import run

    run(Settings(**flags))
