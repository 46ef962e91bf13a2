"""The notebooks run from start to end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"

#: A folder of judged collections, each a folder of docs.jsonl, queries.tsv and qrels.txt.
COLLECTIONS = os.environ.get("TIERDEX_COLLECTIONS")


def run(name: str, folder: Path, *arguments: str | Path) -> str:
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, NOTEBOOKS / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_index_a_folder(tmp_path: Path) -> None:
    assert "disks/solid-state.txt#0" in run("index_a_folder", tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("one\n\ntwo words")
    assert "a.txt#1" in run("index_a_folder", tmp_path, tmp_path / "mine", "words")


def test_an_experiment_and_its_plot(tmp_path: Path) -> None:
    collection = [Path(COLLECTIONS) / "cacm"] if COLLECTIONS else []
    arguments = [*collection, tmp_path / "plot.svg"] if collection else []
    printed = run("pyterrier_experiment", tmp_path, *arguments)
    assert "k1=1.2 b=0.75" in printed
    plot = Path(printed.splitlines()[-1].removeprefix("plot: "))
    assert "<svg" in plot.read_text()


def test_larger_than_memory_and_its_picture(tmp_path: Path) -> None:
    printed = run("larger_than_memory", tmp_path, "100000", tmp_path / "cache.svg")

    def numbers(start: str) -> list[float]:
        line = next(line for line in printed.splitlines() if line.startswith(start))
        return [float(number) for number in re.findall(r"\d+\.\d+", line)]

    assert numbers("the index is")[0] > 3
    over_all, over_few = numbers("hit rate")
    assert over_all < over_few - 0.1 and over_few > 0.9
    over_all, over_few = numbers("MB read")
    assert over_all > 0.3 and over_few < 0.1
    assert "<svg" in (tmp_path / "cache.svg").read_text()


if not NOTEBOOKS.is_dir():
    pytest.skip("the notebooks are not here", allow_module_level=True)
