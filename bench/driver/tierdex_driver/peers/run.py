"""A run: builds the engines, prepares text, sets and indexes, measures what is missing, and writes the tables."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from tierdex_driver.peers import engines, indexing, limit, rounds, sets, tables, text
from tierdex_driver.peers.settings import Settings
from tierdex_driver.store import Store

# Flags that must be equal for measurements to be compared.
FLAGS = (
    "copies", "segments", "bm25", "norms", "own_variants", "seed", "count", "limit", "beyond_own", "tierdex_spare",
    "read_ahead_kb", "batch",
)  # fmt: skip


def run(settings: Settings) -> None:
    settings.work.mkdir(parents=True, exist_ok=True)
    built, omitted = engines.prepare(settings)
    corpus = text.prepare(settings)
    store = Store(settings.out / "search.jsonl", header(settings, built))
    every = sets.make(settings, corpus)
    parties = []
    for positions in (False, True):
        chosen = [one for one in every if one.recipe.has_positions == positions]
        if chosen:
            found, reasons = engines.contenders(settings, built, positions)
            omitted += reasons
            parties.append(rounds.Party(found, rounds.cases_of(settings, chosen)))
    indexes = indexing.prepare(settings, corpus, [one for party in parties for one in party.contenders])
    try:
        for party in parties:
            (limit.measure if settings.limit else rounds.measure)(settings, store, party)
    finally:
        shown = tables.every(store, corpus, parties, indexes)
        warnings = [f"- {line}" for line in omitted + tables.warnings(store, parties)]
        report = settings.out / "report.md"
        report.write_text("\n".join([*head(corpus, built), *shown, *warnings]) + "\n", "utf-8")
        click.echo("\n".join([*shown, *warnings, str(report)]))


def cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def header(settings: Settings, built: list[engines.Engine]) -> dict[str, Any]:
    """What must be equal for measurements to be compared."""
    flags = {name: getattr(settings, name) for name in FLAGS}
    return flags | {
        "bm25": settings.bm25 and list(settings.bm25),
        "input": text.identity(settings.input).strip(),
        "cpu": cpu_model(),
        "kernel": os.environ.get("TIERDEX_KERNEL"),
        "engines": {engine.kind: engine.digest() for engine in built},
    }


def head(corpus: text.Corpus, built: list[engines.Engine]) -> list[str]:
    """The first lines of a report. Of absolute paths they have the last component, because reports are published."""
    words = [re.sub(r"^(--[a-z-]+=)?/.*/", r"\1", word) for word in sys.argv[1:]]
    lines = ["# Queries a second beside other engines", "", f"`tierdex-driver {shlex.join(words)}`", ""]
    lines += [f"- CPU: {cpu_model()}; {os.cpu_count()} threads", *(f"- {one.kind}: {one.version}" for one in built)]
    return [*lines, f"- {corpus.documents} documents, {corpus.bytes / 1e6:.1f} MB, {len(corpus.terms)} terms", ""]
