"""Documents and indexes for the tests."""

from __future__ import annotations

import os
import random
import shutil
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
