"""Indexes the text by each engine, one thread each, and stores the resources next to the indexes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from tierdex_driver.peers.engines import Contender, output
from tierdex_driver.peers.settings import Settings
from tierdex_driver.peers.text import Corpus, parts, say

# Runs a program in a process with one child, because the kernel reports the peak memory of all children of a process, and
# that of a child includes its parent's before it executes the program.
MEASURE = """
import resource, subprocess, sys, time
start = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
wall = time.monotonic() - start
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("\\n", usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss << 10)
sys.exit(status != 0)
"""


def prepare(settings: Settings, corpus: Corpus, contenders: list[Contender]) -> None:
    """Indexes as often as the flags say, and once if an index is missing or older than its engine."""
    indexes = {one.index_name(settings): one for one in contenders}
    plan = {name: rounds(settings, one) for name, one in indexes.items()}
    usages: dict[str, list[str]] = {name: [] for name in indexes}
    for round in range(max(plan.values(), default=0)):
        for name, one in indexes.items():
            if round < plan[name]:
                say(f"indexing, {name}, round {round + 1} of {plan[name]}")
                usages[name].append(index(settings, corpus, one))
                if round + 1 == plan[name]:
                    mark(one.directory(settings)).write_text("".join(f"{usage}\n" for usage in usages[name]))


def rounds(settings: Settings, one: Contender) -> int:
    done = mark(one.directory(settings))
    fresh = done.exists() and done.stat().st_mtime >= one.engine.files[0].stat().st_mtime
    return max(settings.index_rounds, 0 if fresh else 1)


def mark(directory: Path) -> Path:
    """The file that says that an index is complete, with CPU seconds, seconds and peak bytes of each round."""
    return directory.with_name(f"{directory.name}.usage")


def index(settings: Settings, corpus: Corpus, one: Contender) -> str:
    """Indexes once and returns the resources."""
    directory = one.directory(settings)
    directory.parent.mkdir(parents=True, exist_ok=True)
    mark(directory).unlink(missing_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    split = one.kind == "tierdex" and one.segments > 1
    place = settings.data_dir / "parts"
    paths = parts(corpus, one.segments, place) if split else [corpus.path]
    cpu, wall, peak = 0.0, 0.0, 0
    for command in one.index_commands(settings, corpus, paths):
        used = output([sys.executable, "-c", MEASURE, *command]).split()
        cpu, wall, peak = cpu + float(used[0]), wall + float(used[1]), max(peak, int(used[2]))
    shutil.rmtree(place, ignore_errors=True)
    return f"{cpu} {wall} {peak}"


def usage(settings: Settings, contenders: list[Contender]) -> list[dict[str, Any]]:
    """The medians of the resources of each index, and its size."""
    found = []
    for name, one in {one.index_name(settings): one for one in contenders}.items():
        directory = one.directory(settings)
        measured = pd.read_csv(mark(directory), sep=" ", header=None, names=["cpu", "wall", "peak"]).median()
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        found.append(
            {
                "index": name,
                "kind": one.kind,
                "tail": one.index_tail,
                "bytes": size,
                **{str(column): value for column, value in measured.items()},
            }
        )
    return found
