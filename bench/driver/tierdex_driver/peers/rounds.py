"""Measures engines in memory: they alternate on each set and command, round after round.

The first pass runs each query once. It finds the engines that have an answer, and how often the queries of a set are
repeated, equally for all engines, so that a batch takes long enough to be timed. Warm-up rounds are discarded: Lucene gets
at least three, because it compiles code while it runs. Another engine is the first in each round.
"""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tierdex_driver.definitions import Cell
from tierdex_driver.peers import check
from tierdex_driver.peers.engines import Contender
from tierdex_driver.peers.server import Server, serve
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
        pairs = {"threads": str(self.threads), "set": self.set.name, "command": self.command, "engine": engine}
        return Cell("speed", tuple(pairs.items()))

    def write(self, times: int = 1) -> None:
        self.file.write_text("".join(f"{self.command}\t{query}\n" for query in self.set.queries) * times, "utf-8")

    def walls(self, store: Store, engines: list[str]) -> dict[str, int]:
        """The nanoseconds of the first pass of each engine that has an answer."""
        rows = {name: row for name in engines for row in store.rows(self.cell(name)) if row["round"] == FIRST}
        return {name: max(row["wall_ns"], 1) for name, row in rows.items() if row["unsupported"] == 0}

    def is_done(self, store: Store, engines: list[str], rounds: int) -> bool:
        needed = [(name, FIRST) for name in engines]
        needed += [(name, round) for name in self.walls(store, engines) for round in range(1, rounds + 1)]
        return all(store.has(self.cell(name), round) for name, round in needed)


@dataclass(frozen=True)
class Party:
    """Contenders, and the cases that they run."""

    contenders: list[Contender]
    cases: list[Case]

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.contenders]

    @property
    def sets(self) -> list[Set]:
        return list(dict.fromkeys(case.set for case in self.cases))


def cases_of(settings: Settings, sets: list[Set]) -> list[Case]:
    return [
        Case(one, command, threads, settings.data / "sets" / f"{one.name}-{command}.batch")
        for threads in settings.threads
        for one in sets
        for command in settings.commands_of(one.recipe)
    ]


def speed(batch: dict[str, int], times: int = 1) -> Row:
    """The row of a batch."""
    qps = batch["n"] / max(batch["wall_ns"], 1) * 1e9
    return {"qps": qps, "p50_ns": batch["p50_ns"], "p99_ns": batch["p99_ns"], "sum": batch["sum"] // times}


def measure(settings: Settings, store: Store, party: Party) -> None:
    """Compares answers and measures what is missing in the store."""
    left = replace(party, cases=[case for case in party.cases if not case.is_done(store, party.names, settings.rounds)])
    if not left.cases:
        return
    with ExitStack() as stack:
        servers = {}
        for one in party.contenders:
            say(f"starting {one.name}")
            servers[one.name] = stack.enter_context(serve(one.name, one.serve_command(settings), settings.work))
        say("comparing answers")
        check.compare(store, left.sets, {name: check.sample(left.sets, server) for name, server in servers.items()})
        for threads in settings.threads:
            run_rounds(settings, store, servers, [case for case in left.cases if case.threads == threads])


def run_rounds(settings: Settings, store: Store, servers: dict[str, Server], cases: list[Case]) -> None:
    times = {case: first_pass(case, store, servers, settings.batch * 1_000_000) for case in cases}
    warm = settings.warm - 1
    for round in range(1 - warm, settings.rounds + 1):
        say(f"warm-up {round + warm} of {warm}" if round < 1 else f"round {round} of {settings.rounds}")
        for case in cases:
            names = list(case.walls(store, list(servers)))
            if round == 1 and "lucene" in names:
                for _ in range(WARM_COMPILED - warm):
                    servers["lucene"].batch(case.file, case.threads)
            first = (round + warm - 1) % max(len(names), 1)
            for name in names[first:] + names[:first]:
                if round < 1 or not store.has(case.cell(name), round):
                    batch = servers[name].batch(case.file, case.threads)
                    if round >= 1:
                        row = speed(batch, times[case]) | {"times": times[case]}
                        store.add(case.cell(name), round, batch["wall_ns"] / 1e9, [row])


def first_pass(case: Case, store: Store, servers: dict[str, Server], batch_ns: int) -> int:
    """Runs the queries once, and writes the batch of the rounds; returns how often it has them."""
    case.write()
    for name, server in servers.items():
        batch = server.batch(case.file, case.threads)
        if not store.has(case.cell(name), FIRST):
            row = {"unsupported": batch["unsupported"], "wall_ns": batch["wall_ns"]}
            store.add(case.cell(name), FIRST, batch["wall_ns"] / 1e9, [row])
    walls = case.walls(store, list(servers)).values() or [1]
    wanted = batch_ns * case.threads
    most = min(max(wanted * SLOWEST // max(walls), 1), TIMES_MAX)
    times = min(max(-(-wanted // min(walls)), 1), most)
    case.write(times)
    return times
