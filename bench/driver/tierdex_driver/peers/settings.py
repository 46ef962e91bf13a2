"""The flags of a comparison, and the command that has them."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from tierdex_driver.errors import Usage
from tierdex_driver.machine import bytes_of
from tierdex_driver.peers.recipes import ALL, FILES, GROUPS, LIMITED, Recipe

ENGINES = ("tierdex", "tantivy", "lucene", "pisa", "seekstorm")
# They keep their indexes in memory.
UNLIMITED = ("pisa", "seekstorm")
COMMANDS = ("TOP_10", "TOP_1024", "TOP_1024_COUNT", "COUNT")
LIMITED_COMMANDS = ("TOP_10", "TOP_1024_COUNT")
# Flags that need a limit, and those that exclude it.
LIMIT_FLAGS = {"beyond_own", "tierdex_spare", "read_ahead_kb"}
MEMORY_FLAGS = {"segments", "k1", "b", "own_variants", "threads"}
# Divisor of the limit: the default share that is not in the memory budget of tierdex.
SPARE = 10


class Settings(SimpleNamespace):
    """The flags, with the defaults that depend on others."""

    def __init__(self, given: set[str], **flags: Any) -> None:
        """Raises Usage if a value or a combination is invalid; `given` has the names of the flags of the command line."""
        quick, limit = flags["quick"], flags["limit"]
        short = quick or limit
        defaults = {"rounds": 3 if short else 7, "warm": 2 if short else 4, "count": 100 if quick else 500}
        defaults |= {"batch": 20 if quick else 100, "out": flags["work"] / "results"}
        defaults["tierdex_spare"] = min(flags["tierdex_spare"] or (limit or 0) // SPARE, limit or 0)
        super().__init__(**flags | {name: flags[name] or value for name, value in defaults.items()})
        self.data: Path = self.work / f"copies-{self.copies}" if self.copies > 1 else self.work
        constants = (1.2 if self.k1 is None else self.k1, 0.75 if self.b is None else self.b)
        self.bm25 = None if self.k1 is None and self.b is None else constants
        for name in sorted(given & (MEMORY_FLAGS if self.limit else LIMIT_FLAGS)):
            flag = f"--{name.replace('_', '-')}"
            raise Usage(f"{flag} and --limit exclude each other" if self.limit else f"{flag} needs --limit")
        for command in self.commands:
            if not re.fullmatch(r"COUNT|TOP_[1-9]\d*(_COUNT)?", command):
                raise Usage(f"`{command}` is no command to measure; there are COUNT, TOP_k and TOP_k_COUNT")
        names = self.sets or (LIMITED if self.limit else ("flat", "mixed", "phrases"))
        self.recipes = list(dict.fromkeys(recipe for name in names for recipe in self.named(name)))
        if self.limit and any(recipe.has_positions for recipe in self.recipes):
            raise Usage("phrases are not measured under a limit")

    def named(self, name: str) -> list[Recipe]:
        """The sets of a name or group."""
        if name == "all":
            return [recipe for recipe in ALL if not (self.limit and recipe.has_positions)]
        found = [one for one in ALL if one.name == name or (one.group == name and one.is_compared)]
        if not found:
            names = ", ".join(["all", *GROUPS, *(recipe.name for recipe in ALL)])
            raise Usage(f"no query set is called `{name}`; there are {names}")
        return found

    def commands_of(self, recipe: Recipe) -> list[str]:
        default = LIMITED_COMMANDS if self.limit else COMMANDS
        return list(self.commands) or [command for command in default if recipe.has_command(command)]


class Listed(click.ParamType[Any]):
    """Values of one type, separated by commas."""

    name = "list"

    def __init__(self, of: Any) -> None:
        self.of = of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        words = value.split(",") if isinstance(value, str) else value
        return tuple(self.of.convert(word, param, ctx) for word in words)


def size(_context: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """The bytes of a size, which is greater than 0."""
    if text is not None and bytes_of(text) <= 0:
        raise Usage(f"the size `{text}` must be greater than 0")
    return None if text is None else bytes_of(text)


PATH = click.Path(path_type=Path)
POSITIVE = click.IntRange(1)
INPUT = click.Path(path_type=Path, exists=True, dir_okay=False)
SETS = f"Query sets by name or group: all, {', '.join(GROUPS)} [default: flat,mixed,phrases; single-h,and-hh with --limit]."


@click.command("search")
@click.option("--input", type=INPUT, required=True, help="JSON lines with the members title and text; .zst by zstd.")
@click.option("--work", type=PATH, required=True, help="Directory for tokens and indexes, which the next run reuses.")
@click.option("--out", type=PATH, help="Directory of search.jsonl and report.md [default: results in WORK].")
@click.option("--copies", type=click.IntRange(1, 1000), default=1, help="Copies of the text; further ones join halves.")
@click.option("--queries", type=PATH, help=f"Directory of real queries: {', '.join(FILES.values())}.")
@click.option("--quick", is_flag=True, help="Fewer queries and rounds.")
@click.option("--engines", type=Listed(click.Choice(ENGINES)), default=ENGINES, help="Engines [default: all].")
@click.option("--sets", type=Listed(click.STRING), default=(), help=SETS)
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
@click.option("--limit", callback=size, help="Memory limit of each engine, in a control group, such as 50M.")
@click.option("--beyond-own", is_flag=True, help="The limit is for the index only.")
@click.option("--tierdex-spare", callback=size, help="Bytes that tierdex leaves to the page cache [default: a tenth].")
@click.option("--read-ahead-kb", type=POSITIVE, help="Read-ahead of the device of WORK during the run.")
@click.option("--norms", type=click.Choice(["byte", "exact"]), default="byte", help="Document lengths of tierdex.")
@click.option("--index-rounds", type=click.IntRange(0), default=0, help="Rounds of indexing [default: if needed].")
@click.option("--memory", type=POSITIVE, default=256, help="Megabytes for buffered postings while indexing.")
@click.pass_context
def search(context: click.Context, /, **flags: Any) -> None:
    """Compare queries a second of tierdex, Tantivy, Lucene, PISA and SeekStorm on the same text."""
    from tierdex_driver.peers.run import run

    given = {name for name in flags if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    run(Settings(given, **flags))
