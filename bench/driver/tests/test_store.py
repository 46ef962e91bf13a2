"""The file of finished measurements: it survives kills, and does not mix machines."""

from pathlib import Path

import pytest

from tierdex_driver.definitions import Cell
from tierdex_driver.errors import Failed, Usage
from tierdex_driver.run import different_answers
from tierdex_driver.store import Store

CELL = Cell("sizes", (("docs", "5"),))


def test_finished_cells_are_read_back_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    store = Store(path, {"cpu": "this"})
    store.add(CELL, 1, 0.5, [{"qps": 10}])
    store.add(CELL, 2, 0.5, "killed")
    del store
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"cell": "sizes do')
    store = Store(path, {"cpu": "this"})
    assert path.read_bytes() == whole
    assert store.rows(CELL) == [{"docs": "5", "qps": 10, "round": 1}]
    assert store.has(CELL, 1) and not store.has(CELL, 2)
    store.add(CELL, 2, 0.5, [{"qps": 12}])
    assert store.rounds(CELL) == [1, 2]


def test_another_machine_and_another_run_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    store = Store(path, {"cpu": "this"})
    with pytest.raises(Usage, match="another run"):
        Store(path, {"cpu": "this"})
    del store
    with pytest.raises(Usage, match="another cpu"):
        Store(path, {"cpu": "other"})
    path.write_text('{"cpu":"this"}\nnonsense\n')
    with pytest.raises(Failed, match="line 2 is malformed"):
        Store(path, {"cpu": "this"})


def test_a_failure_is_known_until_the_cell_succeeds(tmp_path: Path) -> None:
    store = Store(tmp_path / "cells.jsonl", {})
    store.add(CELL, 1, 0.1, "killed: out of memory")
    assert store.failure(CELL) == "killed: out of memory"
    store.add(CELL, 1, 0.1, [{}])
    assert store.failure(CELL) is None


def test_different_answers_to_the_same_queries_are_found() -> None:
    def row(codec: str, kind: str, checksum: str) -> dict[str, str]:
        return {"codec": codec, "class": kind, "checksum": checksum, "mode": "memory"}

    same = [row("raw", "H", "1"), row("vbyte", "H", "1"), row("vbyte", "M", "2")]
    assert different_answers(same) is None
    found = different_answers([*same, row("pfor", "H", "3")])
    assert found and "codec pfor" in found
