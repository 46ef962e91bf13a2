"""Counts of `perf stat` and the metrics from them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tierdex_driver.counters import PerfStat, events, metrics

CASCADE_LAKE = {
    "instructions": 2_000_000, "cache-misses": 1_500, "clocks": 1_000_000, "not_delivered": 400_000, "issued": 2_300_000,
    "retired": 2_000_000, "recovery": 25_000, "three_uops": 600_000, "mem_any": 250_000, "stores": 10_000, "l1d": 150_000,
    "l2": 120_000, "l3": 90_000,
}  # fmt: skip


def test_table_5_1_by_hand() -> None:
    found = metrics(CASCADE_LAKE, 10)
    expected = {
        "instructions": 200_000, "llc_misses": 150, "llc_mpki": 0.75, "frontend_slots": 40_000,
        "bad_speculation_slots": 40_000, "retiring_slots": 200_000, "backend_slots": 120_000, "core_cycles": 40_000,
        "memory_cycles": 26_000, "l1_cycles": 10_000, "l2_cycles": 3_000, "l3_cycles": 3_000, "external_cycles": 9_000,
        "backend_share": 0.3, "retiring_share": 0.5, "memory_share": 0.26, "external_share": 0.09,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_missing_events_and_zeros_leave_out_their_metrics() -> None:
    without = {name: count for name, count in CASCADE_LAKE.items() if name != "l2"}
    assert "l3_cycles" not in metrics(without, 1) and "memory_share" in metrics(without, 1)
    assert metrics({}, 1) == {}
    zero = metrics(dict.fromkeys(CASCADE_LAKE, 0), 5)
    assert zero["instructions"] == 0 and "llc_mpki" not in zero and "backend_share" not in zero


def test_parts_that_the_processor_counts_itself() -> None:
    counts = {
        "slots": 6_000, "topdown-retiring": 3_000, "topdown-bad-spec": 600, "topdown-fe-bound": 900,
        "topdown-be-bound": 1_500, "topdown-mem-bound": 1_200, "cycles": 1_200,
    }  # fmt: skip
    found = metrics(counts, 3)
    assert (found["retiring_slots"], found["retiring_share"], found["memory_cycles"]) == (1_000, 0.5, 80)
    assert found["core_share"] == pytest.approx(0.05)


def test_events_are_selected_by_the_processor() -> None:
    intel = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: x\n\nprocessor\t: 1\n"
    assert "cpu/event=0xa3,umask=0x6,cmask=6,name=l3/" in events(intel, set())
    fixed = {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound", "topdown-mem-bound"}
    assert any(event.startswith("{slots,") and "mem-bound}" in event for event in events(intel, fixed))
    assert any("name=no_retire_load" in event for event in events("vendor_id\t: AuthenticAMD\ncpu family\t: 26\n", set()))
    assert events("", set()) == ["instructions", "cycles", "cache-misses"]


def can_count() -> bool:
    """Whether `perf` may count page faults, for which no counter of the processor is needed."""
    command = ["perf", "stat", "-e", "page-faults", "true"]
    return bool(shutil.which("perf")) and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_count(), reason="perf is not installed, or not permitted")
def test_perf_counts_between_two_commands(tmp_path: Path) -> None:
    stat = PerfStat(tmp_path, ["page-faults"])
    shell = "read -rn4 a < $1"
    script = f'echo enable > "$0"; {shell}; ls / > /dev/null; echo disable > "$0"; {shell}'
    command = [*stat.command, "bash", "-c", script, *map(str, stat.pipes)]
    subprocess.run(command, check=True, timeout=60)
    assert stat.counts()["page-faults"] > 0
