"""Stubs, types and doctests."""

from __future__ import annotations

import doctest
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tierdex

MODULES = [
    "tierdex",
    "tierdex._index",
    "tierdex._schema",
    "tierdex._evaluation",
    "tierdex.ciff",
    "tierdex.pyterrier",
]
ALLOWED = ["--allowlist", "tests/stubtest_allowlist.txt"]


def test_stubs_describe_the_native_classes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "tierdex", "--mypy-config-file", "pyproject.toml", *ALLOWED],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-p", "tierdex"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright runs in Node.js")
def test_all_public_types_are_known(tmp_path: Path) -> None:
    """Except those that NumPy, pandas and PyTerrier leave open."""
    pytest.importorskip("pyright")
    # pyright looks for packages of the first Python in PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--ignoreexternal", "--verifytypes", "tierdex"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
    )
    assert "Type completeness score: 100%" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_examples_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = Path(__file__).parent.parent / "README.md"
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0 and results.attempted > 5


def test_all_public_names_have_docstrings() -> None:
    for name in tierdex.__all__:
        item = getattr(tierdex, name)
        assert isinstance(item, str) or item.__doc__, name
        for member, value in vars(item).items() if isinstance(item, type) else []:
            if not member.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{member}"
