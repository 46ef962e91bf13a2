"""The commands of the driver. `tierdex-bench` starts them."""

import hashlib
import os
import shutil
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

import click

from tierdex_driver import compare as comparison
from tierdex_driver import definitions, machine, report
from tierdex_driver.data import DataSets, default_directory, name_of_commit
from tierdex_driver.errors import Usage
from tierdex_driver.measure import Context, Missing
from tierdex_driver.peers.settings import search
from tierdex_driver.process import Program
from tierdex_driver.run import Run
from tierdex_driver.store import Store

# The default of Linux. Some devices of virtual machines have 8 MB, with which the modes that read through the page cache
# evict what they need.
READ_AHEAD_KB = 128
COUNTERS = "Count by `perf stat`, or simulate, in the figures that need counters."
PATH = click.Path(path_type=Path)
EXISTING = click.Path(exists=True, path_type=Path)
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run experiments of tierdex."""


main.add_command(search)


def find_program() -> Program:
    path = os.environ.get("TIERDEX_BENCH") or shutil.which("tierdex-bench")
    if not path:
        raise Usage("tierdex-bench is not installed (cargo install --path bench); TIERDEX_BENCH may name it")
    return Program(Path(path))


@main.command()
@click.argument("names", nargs=-1)
@click.option("--list", "lists", is_flag=True, help="Print the names of all figures.")
@click.option("--scale", type=click.Choice(definitions.SCALES), help="Size of the data and number of rounds.")
@click.option("--out", type=PATH, default=Path("results"), show_default=True, help="Output directory.")
@click.option("--index", type=DIRECTORY, help="Use this index, in place of generated ones.")
@click.option("--data", type=PATH, default=default_directory, help="Directory of indexes, which are kept.")
@click.option("--region", default="hugetlb", show_default=True, help="Memory region of caches.")
@click.option("--tier", help="Memory region of the second tier, such as numa:1.")
@click.option("--slow-tier", help="Delay in nanoseconds that emulates a second tier.")
@click.option("--counters", type=click.Choice(["perf", "callgrind"]), help=COUNTERS)
@click.option("--no-group", is_flag=True, help="No control groups: no memory limits, no emulated devices.")
@click.option("--plots", is_flag=True, help="Draw a plot of each figure.")
def paper(names: tuple[str, ...], lists: bool, plots: bool, **flags: Any) -> None:
    """Measure figures of papers, or of a file of definitions, and judge their claims.

    NAMES are names of figures or papers, `all`, or paths of TOML files.
    """
    every = definitions.read_all()
    if lists:
        click.echo(list_text(every))
        return
    scale, index, counters = flags["scale"], flags["index"], flags["counters"]
    if not names or not scale:
        raise Usage("name figures, papers, `all` or a file of definitions, and a --scale")
    figures = definitions.select(every, names)
    if index:
        figures = [replace(figure, index=name_of_commit(index)) for figure in figures]
    if counters == "perf":
        figures = [one for one in figures if any(cell.get("counters") for cell in one.cells(scale))]
    if counters == "callgrind":
        every, figures = ([one.simulated() for one in some if "simulated" in one.plot] for some in (every, figures))
    program = find_program()
    facts = program.run({"experiment": "machine"})
    data = DataSets(flags["data"], program, facts["format"])
    context = Context(
        program, data, facts, flags["region"], flags["tier"], flags["slow_tier"], not flags["no_group"], counters
    )
    directory = flags["out"] / scale / (counters or "")
    more = (f" --index {index.name}" if index else "") + (f" --counters {counters}" if counters else "")
    run = Run(context, Missing(context), Store(directory / "cells.jsonl", header(context)), scale)
    try:
        with ExitStack() as stack:
            if context.groups and not run.missing.groups:
                stack.enter_context(machine.read_ahead(index or data.directory, READ_AHEAD_KB))
            run.measure(figures)
    finally:
        context.pages.release()
        known = {figure.name: figure for figure in [*every, *figures]}.values()
        results = [report.Result.of(figure, scale, run.store, run.missing) for figure in known]
        shown = [result for result in results if result.rows or result.figure in figures]
        summary = directory / "summary.md"
        command = f"tierdex-bench paper {' '.join(names)} --scale {scale}{more}"
        summary.write_text(report.markdown(shown, scale, command) + "\n")
        click.echo(f"{report.counts(shown)}\n{summary}")
        if plots:
            draw_plots([result for result in results if result.figure in figures], directory)
    run.check(figures)


def draw_plots(results: list[report.Result], directory: Path) -> None:
    from tierdex_driver.plots import draw

    for result in results:
        path = directory / f"{result.figure.name}.svg"
        if draw(result.figure, result.rows, path):
            click.echo(str(path))


def header(context: Context) -> dict[str, object]:
    """What must be equal for measurements to be compared. Paths are left out, because results are published."""
    facts = {name: context.facts[name] for name in ("version", "cpu", "threads", "memory_bytes")}
    build = hashlib.sha256(context.program.path.read_bytes()).hexdigest()[:16]
    return facts | {
        "build": build,
        "region": context.region.split(":")[0],
        "tier": context.tier and (context.tier if context.tier.startswith("numa") else context.tier.split(":")[0]),
        "slow_tier": context.slow_tier,
        "groups": context.groups,
        "counters": context.counters,
    }


@main.command()
@click.argument("a", type=EXISTING)
@click.argument("b", type=EXISTING)
@click.option("--pairs", default=10, show_default=True, help="Pairs of each cell, at least 6.")
@click.option("--pairs-max", default=40, show_default=True, help="At most: more are run while intervals are wide.")
@click.option("--rows", type=click.File("w", lazy=False), metavar="PATH", help="Write a line of JSON for each pair.")
def compare(a: Path, b: Path, pairs: int, pairs_max: int, rows: TextIO | None) -> None:
    """Compare two builds of tierdex-bench, A and B, by the cells of standard input, one line of JSON each."""
    if not comparison.PAIRS_MIN <= pairs <= pairs_max:
        raise Usage(f"--pairs must be {comparison.PAIRS_MIN} or more, and --pairs-max at least --pairs")
    cells = comparison.read_cells(sys.stdin)
    try:
        comparison.run((Program(a), Program(b)), cells, pairs, pairs_max)
    finally:
        if any(cell.pairs for cell in cells):
            click.echo(comparison.table(cells))
            if rows:
                rows.write(comparison.row_lines(cells))


def list_text(figures: list[definitions.Figure]) -> str:
    lines = []
    for title, group in groupby(figures, lambda figure: figure.paper["title"]):
        lines += ["", title, *(f"  {figure.name:<34} {figure.data['title']}" for figure in group)]
    count = sum(not figure.is_control for figure in figures)
    return "\n".join(lines).strip() + f"\n\n{count} tables and figures"


def run() -> int:
    """Runs a command and returns the exit code: 1 for a failure, 2 for wrong usage, 130 for Ctrl-C."""
    # What was changed on the machine is restored as after Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        main.main(standalone_mode=False, prog_name="tierdex-bench")
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        click.echo(f"tierdex-bench: {error.format_message()}", err=True)
        return error.exit_code
    except OSError as error:
        click.echo(f"tierdex-bench: {error.filename or 'a file'}: {error.strerror}", err=True)
        return 1
    return 0
