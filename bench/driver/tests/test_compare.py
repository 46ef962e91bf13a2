"""Comparisons of two builds: pairs that alternate, equal answers, verdicts, and errors in one line."""

import io
import json
import stat
import sys
from pathlib import Path

import pytest

from tierdex_driver import compare, machine
from tierdex_driver.cli import run as run_command
from tierdex_driver.errors import Failed, Usage
from tierdex_driver.process import Program

# A program whose time a query is that of its name, and whose checksum may depend on it.
BUILD = """#!{python}
import json, pathlib, sys
cell = json.load(sys.stdin)
name = pathlib.Path(sys.argv[0]).name
with open({log!r}, "a") as log:
    log.write(name + "\\n")
checksum = name if cell["k"] == 7 else "same"
print(json.dumps(dict(seconds=float(name), queries=10, hits=1, matches=2, checksum=checksum)))
"""


def build(directory: Path, seconds: str) -> Program:
    path = directory / seconds
    path.write_text(BUILD.format(python=sys.executable, log=str(directory / "log")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Program(path)


def cells(*values: dict[str, object]) -> list[compare.ComparedCell]:
    return compare.read_cells(io.StringIO("\n".join(json.dumps(value) for value in values)))


def test_pairs_alternate_and_the_table_says_which_build_is_faster(tmp_path: Path) -> None:
    builds = (build(tmp_path, "0.4"), build(tmp_path, "0.2"))
    both = cells({"name": "and", "k": 10}, {"k": 20})
    compare.run(builds, both, 6, 8)
    assert (tmp_path / "log").read_text().split()[:8] == ["0.4", "0.2", "0.4", "0.2", "0.2", "0.4", "0.2", "0.4"]
    lines = compare.table(both).splitlines()
    assert lines[1].split() == ["and", "25.0", "50.0", "6", "2.000", "2.000", "2.000", "faster"]
    assert lines[2].startswith("cell 2") and lines[3].startswith("geometric mean")
    assert len(compare.row_lines(both).splitlines()) == 12


def test_different_answers_and_processes_that_fail_end_the_run(tmp_path: Path) -> None:
    builds = (build(tmp_path, "0.4"), build(tmp_path, "0.2"))
    with pytest.raises(Failed, match="cell 1: the answers of both builds differ"):
        compare.run(builds, cells({"k": 7}), 6, 6)
    with pytest.raises(Failed, match=r"cell 1: build A: exit code 1: .*KeyError"):
        compare.run(builds, cells({"q": 7}), 6, 6)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.98, 1.02, "equal within 3%"), (1.01, 1.2, "faster"), (0.8, 0.99, "slower"), (0.9, 1.1, "undecided")],
)
def test_the_interval_decides(low: float, high: float, expected: str) -> None:
    assert compare.verdict(low, high) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no cell"), ("nonsense", "line 1"), ('{"k": 1}\n{"name": 3}', "line 2"), ("[1]", "line 1")],
)
def test_malformed_cells_are_usage_errors(text: str, words: str) -> None:
    with pytest.raises(Usage, match=words):
        compare.read_cells(io.StringIO(text))


def test_sizes_have_units() -> None:
    assert machine.bytes_of("60M") == 60 << 20 and machine.bytes_of(5) == 5
    with pytest.raises(Usage, match="`much` is no size"):
        machine.bytes_of("much")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paper"], "name figures"),
        (["paper", "apcache/fig-99", "--scale", "small"], "`apcache/fig-99`"),
        (["paper", "all", "--scale", "tiny"], "tiny"),
        (["papers"], "papers"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["tierdex-bench", *words])
    assert run_command() == 2
    error = capsys.readouterr().err
    assert error.startswith("tierdex-bench: ") and message in error and error.count("\n") == 1
