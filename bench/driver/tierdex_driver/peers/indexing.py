"""Indexes the text by each engine, one thread each, and stores the resources next to the indexes."""

import shutil
import sys
from pathlib import Path

import pandas as pd

from tierdex_driver.peers.engines import Contender, run
from tierdex_driver.peers.settings import Settings
from tierdex_driver.peers.text import Corpus, parts, say

# Runs a program as the only child of a process, because the kernel reports the peak memory of all children together.
# The peak of a child includes that of its parent before, so the parent is a small process.
MEASURE = """
import resource, subprocess, sys, time
start = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
wall = time.monotonic() - start
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("\\n", usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss << 10)
sys.exit(status != 0)
"""
COLUMNS = ["cpu", "wall", "peak"]


def prepare(settings: Settings, corpus: Corpus, contenders: list[Contender]) -> pd.DataFrame:
    """Indexes as often as the flags say, and once if an index is missing or older than its engine.

    Returns the medians of CPU seconds, seconds and peak bytes, and the size in bytes, of each index.
    """
    indexes = {one.directory(settings): one for one in contenders}
    plan = dict.fromkeys(indexes, settings.index_rounds)
    for directory, one in indexes.items():
        done = mark(directory)
        if not done.exists() or done.stat().st_mtime < one.engine.files[0].stat().st_mtime:
            plan[directory] = max(settings.index_rounds, 1)
    for round in range(max(plan.values(), default=0)):
        for directory, one in indexes.items():
            if round < plan[directory]:
                say(f"indexing, {directory.name}, round {round + 1} of {plan[directory]}")
                before = mark(directory).read_text() if round else ""
                mark(directory).unlink(missing_ok=True)
                usage = index(settings, corpus, one)
                mark(directory).write_text(f"{before}{usage}\n")
    found = []
    for directory, one in indexes.items():
        measured = pd.read_csv(mark(directory), sep=" ", names=COLUMNS).median()
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        found.append([directory.name, one.kind, one.tail, size, *measured])
    return pd.DataFrame(found, columns=["index", "kind", "tail", "bytes", *COLUMNS])


def mark(directory: Path) -> Path:
    """The file that says that an index is complete, with a line for each round."""
    return directory.with_name(f"{directory.name}.usage")


def index(settings: Settings, corpus: Corpus, one: Contender) -> str:
    """Indexes once and returns the resources."""
    directory, place = one.directory(settings), settings.data / "parts"
    directory.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    split = one.kind == "tierdex" and one.segments > 1
    paths = parts(corpus, one.segments, place) if split else [corpus.path]
    commands = one.index_commands(settings, corpus, paths)
    used = [run([sys.executable, "-c", MEASURE, *command]).split()[-3:] for command in commands]
    shutil.rmtree(place, ignore_errors=True)
    cpu, wall = (sum(float(numbers[at]) for numbers in used) for at in (0, 1))
    return f"{cpu} {wall} {max(int(numbers[2]) for numbers in used)}"
