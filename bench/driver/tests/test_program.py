"""The commands with the real program, which TIERDEX_BENCH names: a figure of a file, and one that is continued."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "hits.toml"

pytestmark = pytest.mark.skipif("TIERDEX_BENCH" not in os.environ, reason="TIERDEX_BENCH names no program")


def run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    flags = ["--scale", "small", "--no-group", "--region", "dram", "--out", str(directory / "out")]
    command = [sys.executable, "-m", "tierdex_driver", "paper", *words, *flags, "--data", str(directory / "data")]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_example_of_the_guide_is_measured_judged_and_drawn(tmp_path: Path) -> None:
    done = run(tmp_path, str(EXAMPLE), "--plots")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out" / "small"
    lines = [json.loads(line) for line in (out / "cells.jsonl").read_text().splitlines()]
    # The line of the machine, and eight cells in two rounds.
    assert len(lines) == 1 + 8 * 2
    assert all(row["qps"] > 0 and row["hits"] > 0 for line in lines[1:] for row in line["rows"])
    # The second round measures the cells backwards.
    assert [line["cell"] for line in lines[1:9]] == [line["cell"] for line in lines[:8:-1]]
    assert "A thousand hits are slower than ten" in (out / "summary.md").read_text()
    assert (out / "example" / "hits.svg").read_text().startswith("<?xml")
    # As if the run had been killed while it wrote the third line.
    text = (out / "cells.jsonl").read_text().splitlines(keepends=True)
    (out / "cells.jsonl").write_text("".join(text[:2]) + text[2][:20])
    again = run(tmp_path, str(EXAMPLE))
    assert again.returncode == 0 and again.stdout.count(" round ") == 8 * 2 - 1


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ('mode = "memory"', 'mode = "fast"', 2, "`mode` is one of"),
        ('class = "H"', 'clas = "H"', 2, "no setting `clas`"),
        ('codec = ["raw", "pfor256-delta"]', 'codec = ["zip"]', 1, "zip"),
        ("docs = 100_000", 'docs = "many"', 2, "no number"),
    ],
)
def test_a_wrong_definition_is_one_line(tmp_path: Path, old: str, new: str, code: int, words: str) -> None:
    path = tmp_path / "wrong.toml"
    text = EXAMPLE.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = run(tmp_path, str(path))
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("name", ["policies", "intersection"])
def test_an_experiment_of_this_project_is_measured(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, str(EXAMPLE.parent.parent / "experiments" / f"{name}.toml"))
    assert done.returncode == 0, done.stderr
    assert "not measurable" not in (tmp_path / "out" / "small" / "summary.md").read_text().split("## ")[1]


def test_an_existing_index_is_measured_in_place_of_generated_ones(tmp_path: Path) -> None:
    index = tmp_path / "index"
    sizes = ["--docs=2000", "--postings=60000", "--vocabulary=3000", "--seed=1", f"--out={index}"]
    subprocess.run([os.environ["TIERDEX_BENCH"], "generate", *sizes], check=True, capture_output=True)
    done = run(tmp_path, str(EXAMPLE), "--index", str(index))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out/small/cells.jsonl").read_text().splitlines()]
    # Codecs are those of generated indexes.
    assert len(lines) == 1 + 4 * 2
    assert all(f"index={index}" in line["cell"] and "codec=" not in line["cell"] for line in lines[1:])
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["lock"]
    # Another commit is measured again.
    newer = tmp_path / "newer"
    sizes = [word.replace("--seed=1", "--seed=2").replace(str(index), str(newer)) for word in sizes]
    subprocess.run([os.environ["TIERDEX_BENCH"], "generate", *sizes], check=True, capture_output=True)
    index.rename(tmp_path / "older")
    newer.rename(index)
    assert run(tmp_path, str(EXAMPLE), "--index", str(index)).returncode == 0
    assert len((tmp_path / "out/small/cells.jsonl").read_text().splitlines()) == 1 + 2 * 4 * 2
    again = run(tmp_path, str(EXAMPLE), "--index", str(tmp_path / "none"))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1), again.stderr


def test_a_build_is_as_fast_as_itself_and_answers_alike(tmp_path: Path) -> None:
    program = os.environ["TIERDEX_BENCH"]
    sizes = ["--docs=2000", "--postings=60000", "--vocabulary=3000", "--seed=1", f"--out={tmp_path / 'index'}"]
    subprocess.run([program, "generate", *sizes], check=True, capture_output=True)
    queries = {"texts": ["+t0000001 +t0000002", "t0000003"]}
    reads = [{"by": "searcher"}, {"by": "engine", "dram": "60M", "size": "20%"}]
    cells = [{"name": one["by"], "index": str(tmp_path / "index"), "queries": queries, "reads": one} for one in reads]
    command = [sys.executable, "-m", "tierdex_driver", "compare", program, program, "--pairs", "6", "--pairs-max", "6"]
    command += ["--rows", str(tmp_path / "rows.jsonl")]
    done = subprocess.run(command, input="\n".join(map(json.dumps, cells)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["cell", "searcher", "engine", "geometric"]
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 12
    failed = subprocess.run(command, input='{"index": "none", "queries": {"texts": ["a"]}}', capture_output=True, text=True)
    assert failed.returncode == 1 and failed.stderr.startswith("tierdex-bench: cell 1: build A: exit code")
