"""Documents, indexes and processes for the tests."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tierdex

WORDS = [f"word{number}" for number in range(200)]


def documents(count: int, seed: int = 1) -> list[dict[str, object]]:
    """Documents of random words, frequent ones more often."""
    choose = random.Random(seed)
    return [
        {
            "id": f"d{number}",
            "title": f"title {number}",
            "text": " ".join(choose.choices(WORDS, weights=range(200, 0, -1), k=choose.randrange(5, 60))),
        }
        for number in range(count)
    ]


def build(path: Path, docs: object, schema: tierdex.Schema | None = None, **options: object) -> tierdex.Index:
    """An index of documents."""
    index = tierdex.Index.create(path, schema)
    with index.writer(**options) as writer:  # type: ignore[arg-type]
        writer.add_many(docs)
    return index


def tierdex_command() -> str:
    """The command ``tierdex``; skips the test if there is none."""
    command = os.environ.get("TIERDEX_COMMAND") or shutil.which("tierdex")
    if command is None:
        pytest.skip("the command tierdex is not on PATH, and TIERDEX_COMMAND does not name it")
    return command


#: The beginning of each script.
COMMON = """
import collections, itertools, os, random, re, resource, signal, sys, threading, time
import pyarrow as pa
import tierdex

path = sys.argv[1]

def committed(index):
    index.refresh()
    ids = index.search("*:*", k=len(index)).ids
    assert len(set(ids)) == len(ids), "a document twice"
    return set(ids)

def run(*bodies):
    errors = []
    def catch(body):
        try:
            body()
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=catch, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
"""


def in_process(script: str, *arguments: object, seconds: float = 120) -> str:
    """Runs a script; returns what it printed."""
    run = [sys.executable, "-c", COMMON + textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout
