"""Checks that tierdex and PISA exchange indexes by CIFF files, both ways.

    cargo install ciff
    python check_ciff.py COLLECTIONS

The crate `ciff` of PISA's authors has the commands ciff2pisa and pisa2ciff. COLLECTIONS is that of measure.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pyterrier_pisa import PisaIndex

import tierdex


def check(collection: Path, folder: Path) -> None:
    schema = tierdex.Schema(text=tierdex.Text(norms="exact"), stored=False)
    index = tierdex.Index.create(folder / "tierdex", schema)
    with (collection / "docs.jsonl").open(encoding="utf-8") as lines, index.writer() as writer:
        documents = [json.loads(line) for line in lines]
        writer.add_many(documents)
    toks = [Counter(index.analyze(f"{doc.get('title') or ''} {doc.get('text') or ''}")) for doc in documents]
    pisa = PisaIndex(str(folder / "pisa"), text_field="toks", stemmer="none", stops="none")
    docnos = [str(doc["id"]) for doc in documents]
    pisa.toks_indexer(scale=1.0).index({"docno": a, "toks": dict(b)} for a, b in zip(docnos, toks, strict=True))

    # Our file becomes the same inverted index that PISA makes of the same tokens.
    report = tierdex.ciff.export(index, folder / "ours.ciff")
    subprocess.run(["ciff2pisa", "-c", folder / "ours.ciff", "-o", folder / "converted"], check=True)
    pairs = [(f"converted.{ending}", f"pisa/inv.{ending}") for ending in ("docs", "freqs", "sizes")]
    pairs += [(f"converted.{ending}", f"pisa/fwd.{ending}") for ending in ("terms", "documents")]
    for ours, theirs in pairs:
        assert (folder / ours).read_bytes() == (folder / theirs).read_bytes(), ours

    # The file of PISA's index has the same terms, hits and scores as our index.
    names = {"-c": "pisa/inv", "-t": "pisa/fwd.terms", "-d": "pisa/fwd.documents", "-o": "theirs.ciff"}
    options = [word for option, name in names.items() for word in (option, folder / name)]
    subprocess.run(["pisa2ciff", "--description", "PISA", *options], check=True)
    imported = tierdex.ciff.import_(folder / "theirs.ciff", folder / "imported", schema)
    assert list(imported.terms()) == list(index.terms())
    lines = (collection / "queries.tsv").read_text(encoding="utf-8").splitlines()
    queries = [line.split("\t", 1)[1] for line in lines if "\t" in line]
    expected, found = (one.search_batch(queries, syntax="terms") for one in (index, imported))
    assert (found.documents == expected.documents).all() and (found.scores == expected.scores).all()
    assert found.ids().to_list() == expected.ids().to_list()
    print(f"{collection.name}: equal; {report.postings:,} postings, {len(found.scores):,} hits", flush=True)


for folder in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
    with tempfile.TemporaryDirectory() as scratch:
        check(folder, Path(scratch))
