"""Measures a cell: turns its settings into the input of `tierdex-bench cell`, prepares the machine, and returns rows."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from tierdex_driver import counters, machine
from tierdex_driver.counters import Callgrind, PerfStat
from tierdex_driver.data import INDEX_SETTINGS, DataSets, IndexSpec
from tierdex_driver.definitions import Cell
from tierdex_driver.errors import CellFailed, Failed, Usage
from tierdex_driver.process import Program, finish, stop
from tierdex_driver.store import Row

# Value of a setting that stands for the second memory tier, which the flags of a run name.
TIER = "tier"
MODES = ("memory", "direct", "base", "base-prefetch", "hybrid", "hybrid-prefetch")
# The settings of a cell with queries beside those of its index, and their defaults.
SETTINGS: dict[str, str | int | float] = {
    "class": "H", "shape": "AND", "repeats": 25, "count": 300, "mode": "direct", "k": 1024, "k1": 1.2, "b": 0.75,
    "exhaustive": "true", "threads": 1, "size": "100", "dram": "50M", "region": "", "meta-tier": "", "keep-in": "dram",
    "policy": "s3-fifo", "depth": 32, "lookahead": "", "segment": 32768, "lookahead-samples": 0, "device": "ssd",
    "cores": 1, "kernel": "", "counters": "",
}  # fmt: skip
# Queries of a simulated cell, at most: one takes fifty times as long in the simulator.
SIMULATED_QUERIES_MAX = 20


@dataclass
class Context:
    """What the cells of a run share."""

    program: Program
    data: DataSets
    facts: dict[str, Any]
    region: str
    tier: str | None
    slow_tier: str | None
    groups: bool
    counters: str | None = None
    pages: machine.HugePages = field(default_factory=machine.HugePages)
    drawn: dict[str, dict[str, Any]] = field(default_factory=dict)

    def once(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request whose answer never changes."""
        key = json.dumps(request, sort_keys=True)
        if key not in self.drawn:
            self.drawn[key] = self.program.run(request)
        return self.drawn[key]


def measure(cell: Cell, context: Context) -> list[Row]:
    """The rows of a cell.

    Raises CellFailed if it cannot be measured.
    """
    spec = IndexSpec.of(cell)
    settings = {name: typed(value) for name, value in cell.settings if name not in INDEX_SETTINGS}
    request: dict[str, Any] = {"experiment": cell.experiment}
    directory, device = str(context.data.directory), cell.get("device", "ssd")
    match cell.experiment, spec:
        case "queries", IndexSpec():
            return measure_queries(cell, spec, context)
        case "sizes", IndexSpec():
            return [sizes(spec, context)]
        case "explored", IndexSpec():
            request |= {"index": str(context.data.make(spec)), **workload(settings_of(cell))}
        case "indexing", IndexSpec():
            request |= {"dir": directory, "codec": spec.codec, **spec.sizes}
        case "codecs", _:
            request |= settings | {"codec": cell.get("codec") or None}
            request |= {"index": str(context.data.make(spec))} if spec else {}
        case "intersect" | "policies", _:
            request |= {name: value for name, value in settings.items() if name != "device"}
            if cell.experiment == "intersect":
                if request.keys() & {"hdd", "work"}:
                    raise Usage(f"{cell}: write `device` for `hdd`; `work` is the directory of --data")
                request |= {"work": directory, "hdd": device == "hdd"}
            if spec:
                request["index"] = str(context.data.make(spec))
                if spec.existing and "queries" not in request:
                    raise Usage(f"{cell}: an existing index has no generated queries; name `queries`, or leave out `index`")
                request.setdefault("queries", str(context.data.queries(spec)))
            with throttled(device, context.data.directory) as throttle:
                return list(context.program.run(request, throttle.words() if throttle else [])["rows"])
        case _:
            raise Usage(f"{cell}: `docs`, `postings` and `vocabulary` are missing")
    return list(context.program.run(request)["rows"])


def typed(text: str) -> Any:
    """A setting as a JSON value: a number or a boolean where it reads as such."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def settings_of(cell: Cell) -> dict[str, Any]:
    """The settings of a cell with queries, or their defaults.

    Raises Usage if there is no such setting, or a number is none.
    """
    found = dict(SETTINGS)
    for name, text in cell.settings:
        if name in SETTINGS:
            try:
                found[name] = type(SETTINGS[name])(text)
            except ValueError as error:
                raise Usage(f"{cell}: `{name}` is {text}, and must be a number") from error
        elif name not in INDEX_SETTINGS:
            known = ", ".join(sorted({*SETTINGS, *INDEX_SETTINGS}))
            raise Usage(f"{cell}: there is no setting `{name}`; the settings are {known}")
    return found


def workload(settings: dict[str, Any]) -> dict[str, Any]:
    return {"seed": 1} | {name: settings[name] for name in ("class", "shape", "repeats", "count")}


def sizes(spec: IndexSpec, context: Context) -> Row:
    request = {"experiment": "sizes", "index": str(context.data.make(spec)), "ids-only": spec.ids_only}
    return dict(context.once(request)["rows"][0])


def reads_of(settings: dict[str, Any], context: Context) -> dict[str, Any]:
    """How the lists of a cell are read: the member `reads` of its process."""
    mode, keep = settings["mode"], settings["keep-in"]
    if mode == "memory":
        slow = {"slow-tier": context.slow_tier} if keep == TIER and context.slow_tier else {}
        return {"by": "searcher", "region": real_region(keep, context)} | slow
    region = real_region(settings["region"], context)
    # The memory of dictionaries, skip data and norms. A region with a file gets one of its own.
    meta = f"{region}.meta" if region.split(":")[0] in ("file", "dax") else region
    reads = {
        "dram": settings["dram"],
        "size": f"{settings['size']}%",
        "region": region,
        "meta-tier": real_region(settings["meta-tier"] or meta, context),
        "depth": settings["depth"],
    }
    if mode == "direct":
        return {"by": "engine", "policy": settings["policy"]} | reads
    lookahead = settings["lookahead"] or ("16" if mode == "base-prefetch" else "adaptive")
    more = {"lookahead": lookahead, "segment": settings["segment"], "samples": settings["lookahead-samples"]}
    return {"by": "lists", "mode": mode} | reads | more


def real_region(name: str, context: Context) -> str:
    """A memory region; that of the second tier, or of an emulated one in DRAM, for the placeholder."""
    return (context.tier or "dram") if name == TIER else name or context.region


def input_of(cell: Cell, index: Path, context: Context) -> dict[str, Any]:
    """The input of the process of a cell, without its memory limit."""
    settings = settings_of(cell)
    if settings["mode"] not in MODES:
        raise Usage(f"{cell}: `mode` is one of {', '.join(MODES)}")
    asked = workload(settings)
    if context.counters == "callgrind":
        asked["count"] = min(asked["count"], SIMULATED_QUERIES_MAX)
    drawn = context.once({"experiment": "draw", "index": str(index), **asked})
    exhaustive = settings["exhaustive"] == "true"
    return {
        "index": str(index),
        "queries": drawn["queries"],
        "reads": reads_of(settings, context),
        "count": exhaustive,
        "exhaustive": exhaustive,
        **{name: settings[name] for name in ("k", "k1", "b", "threads")},
    }


def measure_queries(cell: Cell, spec: IndexSpec, context: Context) -> list[Row]:
    """Measures queries over an index. The setting `cores` is the number of processes that run at the same time, each
    with a copy of the index and a cache of its own (APCache thesis, section 8.2.3), pinned to a processor."""
    cores, device = settings_of(cell)["cores"], cell.get("device", "ssd")
    indexes = context.data.copies(spec, cores)
    one = input_of(cell, indexes[0], context)
    kernel = cell.get("kernel")
    if context.counters and cores > 1:
        raise CellFailed("counters are of one process: leave out `cores`")
    counter: Callgrind | PerfStat | None = None
    if context.counters == "perf":
        counter = PerfStat(context.data.directory)
    elif context.counters == "callgrind":
        counter = Callgrind(context.data.directory)
        # The fastest that valgrind runs: it does not know AVX-512.
        kernel = [name for name in context.facts["kernels"] if not name.startswith("avx512")][-1]
    plan = context.once({"experiment": "plan", "cell": one})
    one = plan["cell"]
    context.pages.reserve(plan["huge_pages"] * cores)
    with ExitStack() as stack:
        disk = stack.enter_context(machine.seek_disk(context.program.path, indexes)) if device == "hdd" else None
        throttle = stack.enter_context(throttled(device, indexes[0]))
        if context.groups:
            machine.drop_page_cache()
        processes, groups = [], []
        for number, index in enumerate(disk["directories"] if disk else indexes):
            place: dict[str, Any] = {"processor": number} if cell.get("cores") else {}
            group = None
            if context.groups and one.get("limit"):
                group = stack.enter_context(machine.memory_group(machine.bytes_of(one["limit"])))
                place["join"] = [str(group.procs)]
            if disk:
                place["throttle"] = disk["delay"]
            elif throttle and group and throttle.version == group.version == 2:
                # A process is in one group of version 2.
                group.limit_reads(index, device_rate(device) or 0)
            elif throttle:
                place["throttle"] = str(throttle.procs)
            if isinstance(counter, PerfStat):
                place["perf"] = list(map(str, counter.pipes))
            before = counter.command if counter else []
            process = context.program.start(one | {"index": str(index), "process": place}, before, kernel)
            stack.callback(stop, process)
            processes.append(process)
            groups.append(group)
        found = [row_of(finish(process), one, group) for process, group in zip(processes, groups, strict=True)]
    row = sum_of_processes(found)
    samples = row.pop("lookahead_samples", [])
    if device == "hdd":
        # The system counts reads from block devices only.
        row["bytes_fetched"] = None
    if counter:
        row = counter.row(row)
    row["emulated"] = device != "ssd" or (cell.get("keep-in") == TIER and bool(context.slow_tier))
    return [row | sizes(spec, context), *sample_rows(samples)]


def device_rate(device: str) -> int | None:
    """The read rate of a device in bytes a second, if it is throttled."""
    match device:
        case "ssd" | "hdd":
            return None
        case "sas":
            return machine.SAS_BYTES_PER_SECOND
    with suppress(Usage, OverflowError):
        rate = machine.bytes_of(device)
        if rate > 0:
            return rate
    raise Usage(f"`device` is ssd, sas, hdd or bytes a second such as 575M, not {device}")


@contextmanager
def throttled(device: str, directory: Path) -> Iterator[machine.Group | None]:
    """A group whose members read the disk of a directory at the rate of a slower device; None if it is not slower."""
    if rate := device_rate(device):
        with machine.new_group("blkio", "io") as group:
            group.limit_reads(directory, rate)
            yield group
    else:
        yield None


def row_of(measured: dict[str, Any], one: dict[str, Any], group: machine.Group | None) -> Row:
    row: Row = {"limit_bytes": machine.bytes_of(one["limit"]) if group else None}
    row |= {"peak_bytes": group.peak() if group else None, "limit_met": group.limit_met() if group else None}
    row |= measured
    row["qps"] = measured["queries"] / max(measured["seconds"], 1e-9)
    row["first_qps"] = measured["queries"] / max(measured["first_seconds"], 1e-9)
    if lists := row.pop("lists", None):
        row["miss_rate"] = lists["misses"] / max(lists["hits"] + lists["misses"], 1)
        row |= {f"cache_{name}": lists[name] for name in ("hits", "misses", "reads", "waits")}
    return row


def sum_of_processes(rows: list[Row]) -> Row:
    """Joins processes that ran at the same time: speeds are summed, latencies averaged."""
    if any(row["checksum"] != rows[0]["checksum"] for row in rows):
        raise CellFailed("the processes of a cell answer the same queries differently")
    sums = {name: sum(row[name] for row in rows) for name in ("qps", "first_qps", "p50_us", "p99_us", "seconds", "queries")}
    row = rows[0] | {name: sums[name] for name in ("qps", "first_qps")}
    row |= {name: sums[name] / len(rows) for name in ("p50_us", "p99_us")}
    return row | {"mean_us": 1e6 * sums["seconds"] / max(sums["queries"], 1)}


def sample_rows(samples: list[list[int]]) -> list[Row]:
    """A row for each sample of the lookahead (completed queries, queries prefetched), and one with their mean."""
    rows: list[Row] = [{"ended": ended, "ahead": ahead} for ended, ahead in samples]
    return [*rows, {"ended": "all", "ahead_mean": fmean(ahead for _, ahead in samples)}] if samples else []


class Missing:
    """What this machine does not have. Cells that need it are not measured, and reports say why."""

    def __init__(self, context: Context):
        self.context = context
        data, program = context.data.directory, context.program.path
        self.groups = why_not(machine.memory_group(64 << 20)) if context.groups else "--no-group: no memory limits"
        self.throttle = self.groups or why_not(throttled("sas", data))
        self.disk = self.groups or why_not(machine.seek_disk(program, [data]))
        self.perf = counters.why_not() if context.counters == "perf" else None

    def of(self, cell: Cell) -> str | None:
        """Why a cell cannot be measured here; None if it can."""
        context, device, mode, cores = self.context, cell.get("device", "ssd"), cell.get("mode"), cell.get("cores", "1")
        of_device = self.disk if device == "hdd" else self.throttle if device_rate(device) else None
        if cell.get("index") and (cell.experiment == "indexing" or cores != "1"):
            return "--index: indexing, and several processes, need a generated index"
        if cell.experiment != "queries":
            return of_device
        if TIER in (cell.get("region"), cell.get("meta-tier")) and not context.tier:
            return "no second memory tier; name one by --tier, such as numa:1 or dax:PATH"
        if cell.get("keep-in") == TIER and not (context.tier or context.slow_tier):
            return "no second memory tier; name one by --tier, or emulate one by --slow-tier, such as 300"
        if cell.get("kernel") not in ("", *context.facts["kernels"]):
            return f"the processor does not run the kernel {cell.get('kernel')}"
        if context.counters == "callgrind" and (mode != "memory" or cell.get("keep-in") == TIER):
            return "callgrind simulates neither memory tiers nor prefetching, only an index in memory"
        if cell.get("counters") and not context.counters:
            return "counters are a run of their own: --counters perf, or --counters callgrind, which simulates some"
        needs_group = context.groups or mode in ("base", "base-prefetch")
        if reason := self.perf or of_device or (self.groups if needs_group else None):
            return reason
        if cores != "1" and real_region(cell.get("region"), context).split(":")[0] in ("file", "dax"):
            return f"{cores} processes cannot share a region with a file; use dram or hugetlb"
        return None


def why_not(needed: AbstractContextManager[Any]) -> str | None:
    """Why something that cells need cannot be had here; None if it can."""
    try:
        with needed:
            return None
    except Failed as error:
        return str(error)
