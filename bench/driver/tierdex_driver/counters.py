"""Counters of the processor, simulated by callgrind: instructions, branches, and misses of two caches."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tierdex_driver.errors import Failed
from tierdex_driver.store import Row

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
