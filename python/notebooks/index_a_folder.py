# %% [markdown]
# # Index a folder and search it
#
# Reads all text files below a folder, splits them into paragraphs, and searches these.
#
# `python index_a_folder.py [FOLDER] [QUERY]`; without arguments it writes a few files to a temporary folder.

# %%
from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tierdex

EXAMPLE = {
    "disks/solid-state.txt": "A solid-state disk has no moving parts.\n\nIt reads random pages at once.",
    "disks/hard.md": "A hard disk has platters that turn.\n\nMoving the arm takes milliseconds.",
    "tape.txt": "Tape is read in order, from one end to the other.",
}

work = Path(tempfile.mkdtemp(prefix="tierdex-notebook-"))
folder = Path(sys.argv[1]) if len(sys.argv) > 1 else work / "folder"
query = sys.argv[2] if len(sys.argv) > 2 else '"moving parts" OR random*'
if len(sys.argv) < 2:
    for name, text in EXAMPLE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

# %% [markdown]
# ## Index
#
# `positions=True` allows phrases; `stem="english"` finds "part" for "parts". The writer commits at the end of
# the block.


# %%
def paragraphs(folder: Path) -> Iterator[dict[str, str]]:
    """Each paragraph of each text file as a document."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".txt", ".md") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            for number, paragraph in enumerate(text.split("\n\n")):
                name = str(path.relative_to(folder))
                yield {"id": f"{name}#{number}", "title": name, "text": paragraph}


schema = tierdex.Schema(text=tierdex.Text(stem="english", positions=True))
index = tierdex.Index.create(work / "index", schema)
with index.writer() as writer:
    added = writer.add_many(paragraphs(folder), progress=sys.stderr.isatty())
print(f"{added} paragraphs, {index.stats()['bytes']} bytes on disk")

# %% [markdown]
# ## Search

# %%
hits = index.search(query, k=10, count=True)
print(f"{hits.total} paragraphs match {query}")
for hit in hits:
    print(f"{hit.rank}. {hit.id}  {hit.score:.3f}  {hit.highlight()}")

# %% [markdown]
# A syntax error has a position; `syntax="lenient"` answers the rest of the query.

# %%
try:
    index.search('"moving parts')
except tierdex.QueryError as error:
    print(f"{error} (offset {error.position})")
lenient = index.search('"moving parts', syntax="lenient")
print(lenient.ids, lenient.warnings)
