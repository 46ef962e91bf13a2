"""Parquet and Arrow files of pyarrow, polars and DuckDB give the command the index of the same JSON lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from corpus import tierdex_command

COUNT = 1000
MEMBERS = ["text:text", "tags:text", "who:text:from=meta.author", "lang:text"]
FIELDS = [flag for member in MEMBERS for flag in ("--field", member)]


def rows() -> list[dict[str, object]]:
    def row(number: int) -> dict[str, object]:
        words = " ".join(f"w{(number * 7919 + word * word) % 997}" for word in range(30 + number % 50))
        tags = None if number % 5 == 0 else [f"tag{number % (tag + 3)}" for tag in range(number % 4)]
        return {
            "id": f"d{number}",
            "title": None if number % 7 == 0 else f"Title {number}",
            "text": f"{words} größe 漢字",
            "tags": tags,
            "meta": {"author": None if number % 3 == 0 else f"Author {number % 17}", "pages": number},
            "lang": ["en", "de", None][number % 3],
            "year": 1900 + number % 120,
        }

    return [row(number) for number in range(COUNT)]


def table() -> pa.Table:
    meta = pa.struct([("author", pa.string()), ("pages", pa.int32())])
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("title", pa.string()),
            ("text", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("meta", meta),
            ("lang", pa.string()),
            ("year", pa.int64()),
        ]
    )
    return pa.Table.from_pylist(rows(), schema=schema)


def write_parquet(**options: object) -> Callable[[pa.Table, Path], None]:
    return lambda table, path: pq.write_table(table, path, **options)


def write_dictionary(table: pa.Table, path: Path) -> None:
    lang = table["lang"].combine_chunks().dictionary_encode()
    table = table.set_column(table.schema.get_field_index("lang"), "lang", lang)
    pyarrow.feather.write_feather(table, path, compression="zstd", chunksize=150)


def write_stream(table: pa.Table, path: Path) -> None:
    with pyarrow.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=210)


def write_duckdb(table: pa.Table, path: Path) -> None:
    connection = duckdb.connect()
    connection.register("articles", table)
    connection.execute(f"COPY (SELECT * FROM articles) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "snappy.parquet": write_parquet(compression="snappy", row_group_size=300),
    "gzip.parquet": write_parquet(compression="gzip", data_page_version="2.0"),
    "lz4.parquet": write_parquet(compression="lz4", use_dictionary=False, data_page_size=1000),
    "delta.parquet": write_parquet(
        compression="zstd",
        use_dictionary=False,
        column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY", "id": "DELTA_BYTE_ARRAY"},
    ),
    "lz4.arrow": lambda table, path: pyarrow.feather.write_feather(table, path, compression="lz4"),
    "dictionary.arrow": write_dictionary,
    "stream.arrows": write_stream,
    "polars.parquet": lambda table, path: pl.from_arrow(table).write_parquet(path, row_group_size=250),
    "polars.arrow": lambda table, path: pl.from_arrow(table).write_ipc(path),
    "duckdb.parquet": write_duckdb,
}


@pytest.mark.parametrize("name", WRITERS)
def test_files_give_the_index_of_the_same_lines(tmp_path: Path, name: str) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    (tmp_path / "docs.jsonl").write_text(lines)
    WRITERS[name](table(), tmp_path / name)
    for source, out in [("docs.jsonl", "expected"), (name, "found")]:
        command = [tierdex_command(), "index", source, "--out", out, *FIELDS, "--on-error", "fail"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert done.stdout.startswith(f"{COUNT:,} documents, "), done.stdout
    for path in (tmp_path / "expected").iterdir():
        assert (tmp_path / "found" / path.name).read_bytes() == path.read_bytes(), path.name
