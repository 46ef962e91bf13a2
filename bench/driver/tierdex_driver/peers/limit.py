"""Measures engines under a memory limit: from files, one engine at a time, with no page of the index in memory.

Each engine is tried first: its answers are compared, and a peer that does not run in the limit is omitted. A Lucene that
does not fit gets the limit beyond its own memory. A batch has a process and a control group of its own and sends each query
once; only Lucene runs it before, so that its code is compiled, and then the page cache of its group is dropped.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tierdex_driver import machine
from tierdex_driver.definitions import Cell
from tierdex_driver.errors import CellFailed, Failed
from tierdex_driver.peers import check
from tierdex_driver.peers.engines import Contender
from tierdex_driver.peers.rounds import Case, Party, speed
from tierdex_driver.peers.server import Server, serve
from tierdex_driver.peers.settings import Settings
from tierdex_driver.peers.text import say
from tierdex_driver.store import Row, Store

# The limit while the memory of a process itself is measured.
AMPLE_BYTES = 4 << 30


def trial_cell(engine: str) -> Cell:
    return Cell("trial", (("engine", engine),))


def measure(settings: Settings, store: Store, party: Party) -> None:
    """Tries the contenders and measures what is missing in the store."""
    rounds = range(1, settings.rounds + 1)
    names = [name for name in party.names if all(row["admitted"] for row in store.rows(trial_cell(name)))]
    if all(store.has(case.cell(name), round) for case in party.cases for name in names for round in rounds):
        return
    with ExitStack() as stack:
        if settings.read_ahead_kb:
            stack.enter_context(machine.read_ahead(settings.work, settings.read_ahead_kb))
        runner = Runner(settings, store, party)
        for case in party.cases:
            case.write()
        limits = runner.try_all()
        admitted = [one for one in party.contenders if one.name in limits]
        for round in rounds:
            say(f"round {round} of {settings.rounds}")
            first = (round - 1) % max(len(admitted), 1)
            for case in party.cases:
                for one in admitted[first:] + admitted[:first]:
                    if not store.has(case.cell(one.name), round):
                        runner.measure(one, limits[one.name], case, round)


@dataclass(frozen=True)
class Runner:
    """Runs contenders in control groups."""

    settings: Settings
    store: Store
    party: Party

    def try_all(self) -> dict[str, int]:
        """Stores and returns the limits of those that run in them, and compares their answers."""
        samples, limits = {}, {}
        for one in self.party.contenders:
            say(f"trying {one.name}")
            row = self._limits(one)
            limit, own = row["limit"], row["own"]
            note = f"{one.name} needs {own} bytes without its index; its limit is {limit}" if own else None
            try:
                with self._running(one, limit, "COUNT") as (server, _):
                    samples[one.name] = check.sample(self.party.sets, server)
                limits[one.name] = int(limit)
            except CellFailed as error:
                if one.kind == "tierdex":
                    raise
                note = f"{one.name} does not run in {limit} bytes: {error}"
            if note:
                say(note)
            self.store.add(trial_cell(one.name), 1, 0.0, [row | {"note": note, "admitted": one.name in limits}])
        check.compare(self.store, self.party.sets, samples)
        return limits

    def _limits(self, one: Contender) -> Row:
        """The limit of a contender, and its own memory if the limit is beyond that. They do not change once stored."""
        for row in self.store.rows(trial_cell(one.name)):
            return {name: row[name] for name in ("limit", "own", "read_ahead_kb")}
        limit, beyond = self.settings.limit, self.settings.beyond_own
        ahead = None
        with suppress(Failed):
            ahead = machine.number_of(machine.read_ahead_file(self.settings.work))
        # A Java virtual machine without enough memory is not killed at once; it pages its code in and out for minutes.
        own = self._own(one) if beyond or one.kind == "lucene" else 0
        if not beyond and own < limit:
            return {"limit": limit, "own": None, "read_ahead_kb": ahead}
        more = self.settings.tierdex_spare if one.kind == "tierdex" else limit
        return {"limit": own + more, "own": own, "read_ahead_kb": ahead}

    def _own(self, one: Contender) -> int:
        """Memory of the process without page cache after all queries; of tierdex with its postings cache."""
        with self._running(one, AMPLE_BYTES, "TOP_COUNT") as (server, group):
            check.sample(self.party.sets, server)
            for case in self.party.cases * self.settings.warm:
                server.batch(case.file)
            own = group.own_memory()
        if own is None:
            raise Failed(f"{group.path} does not say how much memory is used")
        return own

    @contextmanager
    def _running(self, one: Contender, limit: int, command: str) -> Iterator[tuple[Server, machine.Group]]:
        """A process with no page of its index in memory. Pages of its program are charged to its group as well."""
        words = one.serve_command(self.settings, command)
        machine.drop_pages(one.directory(self.settings))
        if not self.settings.beyond_own:
            machine.drop_pages(Path(words[0]))
        with (
            machine.memory_group(limit) as group,
            serve(one.name, [*group.words(), *words], self.settings.work) as server,
        ):
            yield server, group

    def measure(self, one: Contender, limit: int, case: Case, round: int) -> None:
        """Stores a batch, or why a peer failed."""
        line = self.store.measure(case.cell(one.name), round, partial(self._rows, one, limit, case))
        if "failed" in line:
            if one.kind == "tierdex":
                raise CellFailed(line["failed"])
            say(f"{case.set.name} {case.command}: {one.name}: {line['failed']}")

    def _rows(self, one: Contender, limit: int, case: Case) -> list[Row]:
        with self._running(one, limit, case.command) as (server, group):
            for _ in range(self.settings.warm if one.kind == "lucene" else 0):
                server.batch(case.file)
            group.reclaim()
            machine.drop_pages(one.directory(self.settings))
            before = server.bytes_fetched()
            batch = server.batch(case.file)
            after = server.bytes_fetched()
            fetched = None if before is None or after is None else (after - before) / max(batch["n"], 1)
            return [speed(batch) | {"fetched": fetched, "peak": group.peak(), "own": group.own_memory()}]
