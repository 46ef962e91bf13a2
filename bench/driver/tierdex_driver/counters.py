"""Counters of the processor: events that `perf stat` counts, with the metrics of the top-down method (Yasin, 2014), or
instructions, branches, and misses of two caches as callgrind simulates them.

Counting is off until the cell writes into a pipe, so that only its measured repetition is counted. Table 5.1 of the
APCache thesis has the metrics for Intel's cores from Skylake to Cascade Lake: slots = 4 clocks; bad speculation = issued -
retired + 4 recovery cycles; back end = the rest; L3 stalls = misses of L2 - misses of L3, and so on. Later cores count the
four parts themselves (`slots`). AMD's parts are those of `perf` for Zen 4 and Zen 5, with 6 and 8 slots a cycle.
"""

import json
import math
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from tierdex_driver.errors import Failed
from tierdex_driver.store import Row

Counts = dict[str, float]

GENERIC = ("instructions", "cycles", "cache-misses")
INTEL_STALLS = {"clocks": (0x3C, 0, 0), "l1d": (0xA3, 0x0C, 12), "l2": (0xA3, 0x05, 5), "l3": (0xA3, 0x06, 6)}
SKYLAKE = INTEL_STALLS | {
    "not_delivered": (0x9C, 1, 0), "issued": (0x0E, 1, 0), "retired": (0xC2, 2, 0), "recovery": (0x0D, 1, 0),
    "three_uops": (0xB1, 1, 3), "mem_any": (0xA3, 0x14, 20), "stores": (0xA2, 8, 0),
}  # fmt: skip
ZEN = {
    "front_end": (0x1A0, 0x01, 0), "back_end": (0x1A0, 0x1E, 0), "dispatched": (0xAA, 7, 0), "retired": (0xC1, 0, 0),
    "no_retire": (0xD6, 0x02, 0), "no_retire_load": (0xD6, 0xA2, 0),
}  # fmt: skip
MEMORY_BOUND = "topdown-mem-bound"
FIXED = ("slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound")
SKYLAKE_MODELS = (0x4E, 0x55, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6)
# The first-level cache of the simulated processor, and a last-level cache of 32 MiB.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
KINDS = {
    "Ir": "simulated_instructions",
    "D1mr": "simulated_l1_misses",
    "DLmr": "simulated_ll_misses",
    "Bc": "simulated_branches",
    "Bcm": "simulated_branch_misses",
}
TIMES = ("qps", "first_qps", "p50_us", "p99_us", "seconds", "first_seconds", "mean_us")


def raw(events: dict[str, tuple[int, int, int]]) -> list[str]:
    return [f"cpu/event={e:#x},umask={u:#x},cmask={c},name={name}/" for name, (e, u, c) in events.items()]


def events(cpuinfo: str, kernel_events: set[str]) -> list[str]:
    """The events of a processor as `perf` names them: those that all count, and those of the top-down method."""
    value = dict(re.findall(r"^(\S[^\t:]*)\t*: (.*)$", cpuinfo.split("\n\n")[0], re.M))
    vendor, family, model = (value.get(name, "") for name in ("vendor_id", "cpu family", "model"))
    found = list(GENERIC)
    if vendor == "GenuineIntel" and set(FIXED) <= kernel_events:
        fixed = [*FIXED, *{MEMORY_BOUND} & kernel_events]
        return [*found, "{" + ",".join(fixed) + "}", *raw(INTEL_STALLS)]
    if vendor == "GenuineIntel" and family == "6" and int(model) in SKYLAKE_MODELS:
        return found + raw(SKYLAKE)
    # Zen 4 has these models of family 25, of which Zen 3 has the others.
    is_zen_4 = family == "25" and (0x10 <= int(model) <= 0x1F or 0x60 <= int(model) <= 0xAF)
    if vendor == "AuthenticAMD" and (is_zen_4 or family == "26"):
        return found + raw(ZEN)
    return found


def events_here() -> list[str]:
    directory = Path("/sys/bus/event_source/devices/cpu/events")
    known = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    return events(Path("/proc/cpuinfo").read_text(), known)


def why_not() -> str | None:
    """Why this process cannot count: `perf` is missing, or there are no counters that it may use. None if it can."""
    if not shutil.which("perf"):
        return "perf is not installed"
    done = subprocess.run(["perf", "stat", "-j", "-e", "instructions", "true"], capture_output=True, text=True)
    failed = done.returncode or "<not" in done.stderr
    return "performance counters: perf cannot count instructions on this machine" if failed else None


class PerfStat:
    """The pipes and the output of one `perf stat`."""

    def __init__(self, directory: Path, counted: list[str] | None = None):
        self.output, self.pipes = directory / "perf.json", [directory / "perf.control", directory / "perf.ack"]
        for path in (self.output, *self.pipes):
            path.unlink(missing_ok=True)
        for path in self.pipes:
            os.mkfifo(path)
        control = ",".join(map(str, self.pipes))
        self.command = [
            "perf", "stat", "-j", "-o", str(self.output), "-D", "-1", "--control", f"fifo:{control}",
            "-e", ",".join(counted or events_here()), "--",
        ]  # fmt: skip

    def counts(self) -> Counts:
        """The counts by event, extrapolated where events took turns; without those that were not counted."""
        found: Counts = {}
        for line in self.output.read_text().splitlines():
            if line.startswith("{"):
                event = json.loads(line)
                # Values are texts where events are not supported or not counted; `:u` is that of unprivileged users.
                with suppress(ValueError):
                    found[event.get("event", "").removesuffix(":u")] = float(event.get("counter-value", ""))
        return found

    def row(self, row: Row) -> Row:
        """The row of a cell with its metrics."""
        return row | metrics(self.counts(), row["queries"])


@np.errstate(divide="ignore", invalid="ignore")
def metrics(counts: Counts, queries: int) -> Row:
    """Amounts per query and shares. Metrics whose events were not counted are left out."""
    # Events that were not counted are no numbers, and neither is what is computed from them.
    of = pd.Series(counts, dtype=float).reindex(sorted({*GENERIC, *SKYLAKE, *ZEN, *FIXED, MEMORY_BOUND}))
    cycles, clocks = of["cycles"], of["clocks"]
    if "slots" in counts:
        slots, retiring, bad, front, back = of[list(FIXED)]
        memory = of[MEMORY_BOUND]
    elif "dispatched" in counts:
        slots = cycles * (8 if "cpu family\t: 26" in Path("/proc/cpuinfo").read_text() else 6)
        retiring, front, back = of["retired"], of["front_end"], of["back_end"]
        bad = of["dispatched"] - retiring
        memory = back * of["no_retire_load"] / of["no_retire"]
    else:
        slots, retiring, front, memory = 4 * clocks, of["retired"], of["not_delivered"], math.nan
        bad = max(of["issued"] - retiring + 4 * of["recovery"], 0)
        back = slots - front - bad - retiring
    parts = {"retiring": retiring, "bad_speculation": bad, "frontend": front, "backend": back}
    of_back_end = {"memory": memory / slots * cycles, "core": (back - memory) / slots * cycles}
    stalls = {
        "core": clocks - of["three_uops"],
        "memory": of["mem_any"] + of["stores"],
        "l1": of["mem_any"] - of["l1d"],
        "l2": of["l1d"] - of["l2"],
        "l3": of["l2"] - of["l3"],
        "external": of["l3"],
    }
    amounts = [("instructions", of["instructions"]), ("llc_misses", of["cache-misses"]), ("cycles", cycles)]
    shares = [("llc_mpki", 1000 * of["cache-misses"] / of["instructions"])]
    for unit, whole, named in (("slots", slots, parts), ("cycles", cycles, of_back_end), ("cycles", clocks, stalls)):
        amounts += [(f"{name}_{unit}", value) for name, value in named.items()]
        shares += [(f"{name}_share", value / whole) for name, value in named.items()]
    found = [*((name, value / max(queries, 1)) for name, value in amounts), *shares]
    return {name: max(float(value), 0.0) for name, value in found if math.isfinite(value)}


class Callgrind:
    """The words before a program that is simulated, and the output of the simulator."""

    def __init__(self, directory: Path):
        if not shutil.which("valgrind"):
            raise Failed("callgrind is part of valgrind, which is not installed")
        self.output = directory / "callgrind.out"
        # Counting begins with the first repetition.
        self.command = [
            "valgrind", "--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes", "--simulate-hwpref=yes", *CACHES,
            "--toggle-collect=*first_repetition*", f"--callgrind-out-file={self.output}",
        ]  # fmt: skip

    def row(self, row: Row) -> Row:
        """Counts per query and misses per 1,000 instructions. Times are left out: the simulator changes them."""
        lines = dict(re.findall(r"^(events|totals|summary): (.*)$", self.output.read_text(), re.MULTILINE))
        totals = lines.get("totals", lines.get("summary"))
        if "events" not in lines or not totals:
            raise Failed(f"{self.output} has no totals")
        counts = dict(zip(lines["events"].split(), map(int, totals.split()), strict=False))
        found = {name: value for name, value in row.items() if name not in TIMES}
        found |= {name: counts.get(kind, 0) / max(row["queries"], 1) for kind, name in KINDS.items()}
        thousands = max(counts.get("Ir", 0), 1) / 1000
        return found | {
            "simulated_l1_mpki": counts.get("D1mr", 0) / thousands,
            "simulated_ll_mpki": counts.get("DLmr", 0) / thousands,
        }
