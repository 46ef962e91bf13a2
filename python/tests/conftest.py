"""Indexes that several tests share."""

from __future__ import annotations

import pytest

import tierdex
from corpus import build, documents


@pytest.fixture(scope="session")
def corpus() -> list[dict[str, object]]:
    return documents(3000)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory, corpus: list[dict[str, object]]) -> tierdex.Index:
    return build(tmp_path_factory.mktemp("session") / "index", corpus)
