"""Counters of the processor, simulated by callgrind: instructions, branches, and misses of two caches."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tierdex_driver.errors import Failed
from tierdex_driver.store import Row

OUTPUT = "callgrind.out"
# The first-level cache of the simulated processor, and a last-level cache of 32 MiB.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
KINDS = {
    "Ir": "simulated_instructions",
    "D1mr": "simulated_l1_misses",
    "DLmr": "simulated_ll_misses",
    "Bc": "simulated_branches",
    "Bcm": "simulated_branch_misses",
}


def callgrind_command(directory: Path) -> list[str]:
    """The words before a program that is simulated. Counting begins with the first repetition."""
    if not shutil.which("valgrind"):
        raise Failed("callgrind is part of valgrind, which is not installed")
    return [
        "valgrind", "--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes", "--simulate-hwpref=yes", *CACHES,
        "--toggle-collect=*first_repetition*", f"--callgrind-out-file={directory / OUTPUT}",
    ]  # fmt: skip


def simulated_row(row: Row, directory: Path) -> Row:
    """Counts per query and misses per 1,000 instructions. Times are left out: the simulator changes them."""
    text = (directory / OUTPUT).read_text()
    kinds = re.search(r"^events: (.*)$", text, re.M)
    totals = re.search(r"^(?:totals|summary): (.*)$", text, re.M)
    if not kinds or not totals:
        raise Failed(f"{directory / OUTPUT} has no totals")
    counts = dict(zip(kinds[1].split(), map(int, totals[1].split()), strict=False))
    times = ("qps", "first_qps", "p50_us", "p99_us", "seconds", "first_seconds", "mean_us")
    found = {name: value for name, value in row.items() if name not in times}
    found |= {name: counts.get(kind, 0) / max(row["queries"], 1) for kind, name in KINDS.items()}
    thousands = max(counts.get("Ir", 0), 1) / 1000
    found["simulated_l1_mpki"] = counts.get("D1mr", 0) / thousands
    found["simulated_ll_mpki"] = counts.get("DLmr", 0) / thousands
    return found
