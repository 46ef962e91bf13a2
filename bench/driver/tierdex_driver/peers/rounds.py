"""Measures engines in memory: they alternate on each set and command, round after round.

The first pass runs each query once. It finds the engines that have an answer, and how often the queries of a set are
repeated, equally for all engines, so that a batch takes long enough to be timed. Warm-up rounds are discarded: Lucene gets
at least three, because it compiles code while it runs. Another engine is the first in each round.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tierdex_driver.definitions import Cell
from tierdex_driver.peers import check
from tierdex_driver.peers.engines import Contender
from tierdex_driver.peers.server import Server
from tierdex_driver.peers.sets import Set
from tierdex_driver.peers.settings import Settings
from tierdex_driver.peers.text import say
from tierdex_driver.store import Row, Store

TIMES_MAX = 1000
WARM_COMPILED = 3
# Longest batch of the slowest engine, as a multiple of the requested time.
SLOWEST = 10
# Round of the first pass.
FIRST = 0


@dataclass(frozen=True)
class Case:
    """A set and a command, with a number of threads."""

    set: Set
    command: str
    threads: int
    file: Path

    def cell(self, engine: str) -> Cell:
        settings = {"threads": str(self.threads), "set": self.set.name, "command": self.command, "engine": engine}
        return Cell("speed", tuple(settings.items()))

    def write(self, times: int = 1) -> None:
        self.file.write_text("".join(f"{self.command}\t{query}\n" for query in self.set.queries) * times)

    def first(self, store: Store, engine: str) -> Row:
        return dict(store.lines[str(self.cell(engine)), FIRST]["rows"][0])

    def supports(self, store: Store, engine: str) -> bool:
        return bool(self.first(store, engine)["unsupported"] == 0)

    def is_done(self, store: Store, engines: Sequence[str], rounds: int) -> bool:
        return all(
            store.has(self.cell(engine), FIRST)
            and (
                not self.supports(store, engine)
                or all(store.has(self.cell(engine), round) for round in range(1, rounds + 1))
            )
            for engine in engines
        )

    def times(self, store: Store, engines: Sequence[str], batch_ns: int) -> int:
        """How often the queries are repeated in a batch."""
        walls: list[int] = [self.first(store, engine)["wall_ns"] for engine in engines if self.supports(store, engine)]
        if not walls:
            return 1
        wanted = batch_ns * self.threads
        most = min(max(wanted * SLOWEST // max(*walls, 1), 1), TIMES_MAX)
        return min(max(-(-wanted // max(min(walls), 1)), 1), most)


def cases_of(settings: Settings, sets: list[Set]) -> list[Case]:
    return [
        Case(one, command, threads, settings.sets_dir / f"{one.name}-{command}.batch")
        for threads in settings.threads
        for one in sets
        for command in settings.commands_of(one.recipe)
    ]


def speed(batch: dict[str, int], times: int = 1) -> Row:
    """The row of a batch."""
    qps = batch["n"] / max(batch["wall_ns"], 1) * 1e9
    return {"qps": qps, "p50_ns": batch["p50_ns"], "p99_ns": batch["p99_ns"], "sum": batch["sum"] // times}


def measure(settings: Settings, store: Store, contenders: list[Contender], sets: list[Set]) -> None:
    """Compares answers and measures what is missing in the store."""
    names = [one.name for one in contenders]
    missing = [case for case in cases_of(settings, sets) if not case.is_done(store, names, settings.round_count)]
    unchecked = check.unchecked(store, sets, names)
    if not contenders or not (missing or unchecked):
        return
    with ExitStack() as stack:
        servers = {}
        for one in contenders:
            say(f"starting {one.name}")
            server = Server(one.name, one.serve_command(settings), settings.work)
            servers[one.name] = stack.enter_context(server)
        if unchecked:
            say("comparing answers")
            check.compare(store, unchecked, {name: check.sample(unchecked, server) for name, server in servers.items()})
        for threads in settings.threads:
            cases = [case for case in missing if case.threads == threads]
            Rounds(settings, store, servers, "lucene").run(cases)


@dataclass(frozen=True)
class Rounds:
    settings: Settings
    store: Store
    servers: dict[str, Server]
    # The engine that compiles code while it runs.
    compiled: str

    def run(self, cases: list[Case]) -> None:
        times = {case: self._first_pass(case) for case in cases}
        warm = self.settings.warm_count - 1
        for number in range(warm + self.settings.round_count if cases else 0):
            round = number - warm + 1
            if round == 1:
                for case in cases:
                    for _ in range(max(WARM_COMPILED - warm, 0)):
                        if self.compiled in self._engines(case):
                            self.servers[self.compiled].batch(case.file, case.threads)
            say(f"{'warm-up' if round < 1 else 'round'} {round if round > 0 else number + 1}, {cases[0].threads} threads")
            for case in cases:
                names = self._engines(case)
                first = number % max(len(names), 1)
                for name in names[first:] + names[:first]:
                    if not self.store.has(case.cell(name), round):
                        self._batch(case, name, round, times[case])

    def _engines(self, case: Case) -> list[str]:
        return [name for name in self.servers if case.supports(self.store, name)]

    def _first_pass(self, case: Case) -> int:
        """Runs the queries once, and writes the batch of the rounds; returns how often it has them."""
        case.write()
        for name, server in self.servers.items():
            batch = server.batch(case.file, case.threads)
            if not self.store.has(case.cell(name), FIRST):
                row = {"unsupported": batch["unsupported"], "wall_ns": batch["wall_ns"]}
                self.store.add(case.cell(name), FIRST, batch["wall_ns"] / 1e9, [row], None)
        times = case.times(self.store, list(self.servers), self.settings.batch_ms * 1_000_000)
        case.write(times)
        return times

    def _batch(self, case: Case, name: str, round: int, times: int) -> None:
        began = time.monotonic()
        batch = self.servers[name].batch(case.file, case.threads)
        if round > FIRST:
            row = speed(batch, times) | {"times": times}
            self.store.add(case.cell(name), round, time.monotonic() - began, [row], None)
