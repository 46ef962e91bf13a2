"""A run: builds the engines, prepares text, sets and indexes, measures what is missing, and writes the tables."""

from __future__ import annotations

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


def run(settings: Settings) -> None:
    settings.check()
    settings.work.mkdir(parents=True, exist_ok=True)
    built, omitted = engines.prepare(settings)
    corpus = text.prepare(settings)
    directory = settings.out or settings.work / "results"
    store = Store(directory / "search.jsonl", header(settings, built))
    parties = []
    all_sets = sets.make(settings, corpus)
    for positions in (False, True):
        chosen = [one for one in all_sets if bool(one.recipe.words) == positions]
        if chosen:
            found, lines = engines.contenders(settings, built, positions)
            omitted += lines
            parties.append(tables.Party(found, chosen, rounds.cases_of(settings, chosen)))
    indexing.prepare(settings, corpus, [one for party in parties for one in party.contenders])
    measure = limit.measure if settings.limit else rounds.measure
    try:
        for party in parties:
            measure(settings, store, party.contenders, party.sets)
    finally:
        report = directory / "report.md"
        found_tables = tables.every(settings, store, corpus, parties)
        lines = tables.warnings(store, parties)
        report.write_text(markdown(settings, corpus, built, omitted, found_tables, lines))
        click.echo("\n".join(table.markdown() for table in found_tables))
        click.echo("\n".join([*omitted, *lines, str(report)]))


def cpu_model() -> str:
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def header(settings: Settings, built: list[engines.Engine]) -> dict[str, Any]:
    """What must be equal for measurements to be compared."""
    names = ("copies", "segments", "bm25", "norms", "own_variants", "seed", "query_count", "limit", "beyond_own")
    limits = ("tierdex_spare", "tierdex_flags", "read_ahead_kb") if settings.limit else ("batch_ms",)
    found = {name: getattr(settings, name) for name in names + limits}
    return found | {
        "input": text.identity(settings.input).strip(),
        "bm25": settings.bm25 and list(settings.bm25),
        "cpu": cpu_model(),
        "threads": os.cpu_count(),
        "kernel": os.environ.get("TIERDEX_KERNEL"),
        "engines": {engine.kind: engine.digest() for engine in built},
    }


def markdown(
    settings: Settings,
    corpus: text.Corpus,
    built: list[engines.Engine],
    omitted: list[str],
    found: list[tables.Table],
    warnings: list[str],
) -> str:
    # Of an absolute path only the last component, because reports are published.
    words = [re.sub(r"^(--[a-z-]+=)?/.*/", r"\1", word) for word in sys.argv[1:]]
    lines = ["# Queries a second beside other engines", "", f"`tierdex-driver {shlex.join(words)}`", ""]
    lines += [f"- CPU: {cpu_model()}; {os.cpu_count()} threads"]
    lines += [f"- text: {corpus.documents} documents, {corpus.bytes / 1e6:.1f} MB of tokens, {len(corpus.terms)} terms"]
    lines += [f"- {engine.kind}: {engine.version}" for engine in built]
    lines += [f"- {line}" for line in omitted] + [""]
    lines += [table.markdown() for table in found]
    if warnings:
        lines += ["## Disagreements", "", *(f"- {line}" for line in warnings), ""]
    return "\n".join(lines)
