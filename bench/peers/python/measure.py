"""Measures the Python package, beside the command `tierdex`, PISA and bm25s: the figures of docs/python.md.

    python measure.py import
    python measure.py batch INDEX QUERIES.tsv [--command tierdex] [-k 10] [--rounds 5]
    python measure.py index DOCS.jsonl [--command tierdex] [--bm25s] [--rounds 3]
    python measure.py experiment COLLECTIONS [--rounds 5]
    python measure.py threads INDEX QUERIES.tsv
    python measure.py memory INDEX QUERIES.tsv

Rounds of the contenders alternate, so that the load of the machine is the same for all; the best round of each counts.
QUERIES.tsv has lines of id, tab, text; DOCS.jsonl has members id and text; COLLECTIONS is a folder of judged
collections, each a folder of docs.jsonl, queries.tsv and qrels.txt.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tierdex


def rounds(count: int, contenders: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The fewest seconds of each contender; a contender returns the seconds of one round."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(count):
        for name, run in contenders.items():
            best[name] = min(best[name], run())
    return best


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def read_queries(path: Path, count: int | None = None) -> list[tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [tuple(line.split("\t", 1)) for line in lines if "\t" in line]
    return [(pair[0], pair[1]) for pair in pairs[:count]]


def measure_import(_: argparse.Namespace) -> None:
    """A fresh interpreter for each round; NumPy and the interpreter itself are not imported before."""
    program = "import time; t = time.perf_counter(); import tierdex; print(time.perf_counter() - t)"
    times = sorted(
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
        for _ in range(20)
    )
    print(f"import tierdex: median {1000 * times[10]:.1f} ms, best {1000 * times[0]:.1f} ms")


def measure_batch(arguments: argparse.Namespace) -> None:
    queries = read_queries(arguments.queries, 10_000)
    index = tierdex.Index.open(arguments.index, threads=arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        (tsv := Path(folder) / "queries.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in queries))
        (one := Path(folder) / "one.tsv").write_text(f"{queries[0][0]}\t{queries[0][1]}\n")
        texts, qids = [text for _, text in queries], [qid for qid, _ in queries]

        def command(file: Path) -> float:
            run = [arguments.command, "batch", arguments.index, "--queries", file, "--syntax", "terms"]
            run += ["--run", Path(folder) / "run", "-k", str(arguments.k), "--threads", str(arguments.threads)]
            return seconds(lambda: subprocess.run(run, check=True, capture_output=True))

        def batch() -> Any:
            return index.search_batch(texts, arguments.k, qids=qids, syntax="terms")

        # The time of the command includes a start and an open index; that of one query is subtracted.
        best = rounds(
            arguments.rounds,
            {
                "command": lambda: command(tsv),
                "start of the command": lambda: command(one),
                "package": lambda: seconds(batch),
                "package, with a run file": lambda: seconds(lambda: batch().to_trec(Path(folder) / "run2")),
            },
        )
    base = best["command"] - best.pop("start of the command")
    for name, time_of in best.items():
        time_of = base if name == "command" else time_of
        rate = len(queries) / time_of
        print(f"{name}: {time_of:.2f} s, {rate:,.0f} queries/s, {base / time_of:.2f} of the command")


def measure_index(arguments: argparse.Namespace) -> None:
    with arguments.docs.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    print(f"{len(documents):,} documents, {arguments.docs.stat().st_size / 1e6:.0f} MB of JSON lines")
    folder = Path(tempfile.mkdtemp(dir=arguments.docs.parent))
    threads = arguments.threads

    def package() -> None:
        index = tierdex.Index.create(folder / "package", tierdex.Schema(stored=False), overwrite=True)
        with index.writer(memory="1G", threads=threads) as writer:
            writer.add_many(documents)

    def command() -> None:
        run = [
            arguments.command,
            "index",
            arguments.docs,
            "--out",
            folder / "command",
            "--replace",
            "--store",
            "none",
        ]
        run += ["--memory", "1G", "--threads", str(threads)]
        subprocess.run(run, check=True, capture_output=True)

    def bm25s() -> None:
        import bm25s as peer

        tokens = peer.tokenize([document["text"] for document in documents], stopwords=[], show_progress=False)
        peer.BM25(method="lucene", k1=1.2, b=0.75).index(tokens, show_progress=False)

    contenders = {"package": package, "command": command}
    timed = {name: (lambda work=work: seconds(work)) for name, work in contenders.items()}
    best = rounds(arguments.rounds, timed)
    if arguments.bm25s:
        best["bm25s"] = seconds(bm25s)
    for name, time_of in best.items():
        rate, ratio = len(documents) / time_of, best["package"] / time_of
        print(f"{name}: {time_of:.1f} s, {rate:,.0f} documents/s; the package has {1 / ratio:.2f} of its speed")
    subprocess.run(["rm", "-r", folder], check=True)


def pisa_weights(index: tierdex.Index) -> dict[str, float]:
    """The inverse document frequency of each term in PISA, divided by that in tierdex.

    PISA's is ln((N - n + 0.5) / (n + 0.5)), at least 1e-6; tierdex adds 1 to the argument of the logarithm.
    """
    count = len(index)
    odds = {term.term: (count - term.documents + 0.5) / (term.documents + 0.5) for term in index.terms()}
    return {term: max(1e-6, math.log(value)) / math.log1p(value) for term, value in odds.items()}


def measure_experiment(arguments: argparse.Namespace) -> None:
    import bm25s
    import numpy as np
    import pandas as pd
    import pyterrier as pt
    from ir_measures import AP, R, nDCG
    from pyterrier_pisa import PisaIndex

    from tierdex.pyterrier import TierdexIndex

    class Bm25s(pt.Transformer):
        """The retriever of bm25s over the same tokens."""

        def __init__(self, docnos: list[str], tokens: list[list[str]]) -> None:
            super().__init__()
            self.docnos, self.model = np.array(docnos), bm25s.BM25(method="lucene", k1=1.2, b=0.75)
            self.model.index(tokens, show_progress=False)

        def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
            k = min(1000, len(self.docnos))
            tokens = [list(Counter(toks).elements()) for toks in frame["query_toks"]]
            found, scores = self.model.retrieve(tokens, k=k, show_progress=False)
            rows = []
            for qid, documents, values in zip(frame["qid"], found, scores, strict=True):
                kept = values > 0
                docnos, values = self.docnos[documents[kept]], values[kept]
                rank = np.arange(len(docnos))
                rows.append(pd.DataFrame({"qid": qid, "docno": docnos, "score": values, "rank": rank}))
            return pd.concat(rows)

    class PisaIdf(pt.Transformer):
        """Weights of query terms with which tierdex has the inverse document frequencies of PISA."""

        def __init__(self, weights: dict[str, float], once: bool = False) -> None:
            super().__init__()
            self.weights, self.once = weights, once

        def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
            def weighted(toks: dict[str, int]) -> dict[str, float]:
                known = {term: count for term, count in toks.items() if term in self.weights}
                return {term: (1 if self.once else count) * self.weights[term] for term, count in known.items()}

            return frame.assign(query_toks=frame["query_toks"].map(weighted))

    for collection in sorted(path for path in arguments.collections.iterdir() if path.is_dir()):
        docs = [json.loads(line) for line in (collection / "docs.jsonl").open(encoding="utf-8")]
        topics = pd.DataFrame(read_queries(collection / "queries.tsv"), columns=["qid", "query"])
        names = ["qid", "iteration", "docno", "label"]
        qrels = pd.read_csv(collection / "qrels.txt", sep=r"\s+", names=names, dtype={"qid": str, "docno": str})
        with tempfile.TemporaryDirectory() as folder:
            index = TierdexIndex(Path(folder) / "tierdex", threads=1)
            analyze = tierdex.Index.create(Path(folder) / "analysis").analyze
            texts = [f"{doc.get('title') or ''} {doc.get('text') or ''}" for doc in docs]
            tokens = [analyze(text) for text in texts]
            docnos = [str(doc["id"]) for doc in docs]
            joined = [{"docno": docno, "text": " ".join(of)} for docno, of in zip(docnos, tokens, strict=True)]
            topics["query_toks"] = [dict(Counter(analyze(query))) for query in topics.pop("query")]
            index.index(joined)
            schema = tierdex.Schema(text=tierdex.Text(norms="exact"), stored=False)
            exact = TierdexIndex(Path(folder) / "exact", schema=schema, threads=1)
            exact.index(joined)
            pisa = PisaIndex(str(Path(folder) / "pisa"), text_field="toks", stemmer="none", stops="none")
            counts = [
                {"docno": docno, "toks": dict(Counter(of))} for docno, of in zip(docnos, tokens, strict=True)
            ]
            pisa.toks_indexer(scale=1.0).index(counts)
            # PISA counts a repeated query term once, unless `query_weighted` is set.
            pisa_options = {"k1": 1.2, "b": 0.75, "num_results": 1000, "threads": 1, "toks_scale": 1.0}
            weights = pisa_weights(exact.opened)
            systems = {
                "tierdex": index.bm25(),
                "tierdex, idf of PISA": PisaIdf(weights) >> exact.bm25(),
                "tierdex, idf of PISA, each term once": PisaIdf(weights, once=True) >> exact.bm25(),
                "pisa": pisa.bm25(query_weighted=True, **pisa_options),
                "pisa, each term once": pisa.bm25(query_weighted=False, **pisa_options),
                "bm25s": Bm25s(docnos, tokens),
            }
            tables = []
            for _ in range(arguments.rounds):
                table = pt.Experiment(
                    list(systems.values()),
                    topics,
                    qrels[["qid", "docno", "label"]],
                    [nDCG @ 10, AP @ 1000, R @ 100, "mrt"],
                    names=list(systems),
                )
                tables.append(table.set_index("name"))
            best = tables[0].assign(mrt=pd.concat([table["mrt"] for table in tables], axis=1).min(axis=1))
            print(f"{collection.name}: {len(docs)} documents, {len(topics)} topics")
            print(best[["nDCG@10", "AP@1000", "R@100", "mrt"]].to_string(float_format="%.4f"), flush=True)


def measure_threads(arguments: argparse.Namespace) -> None:
    """Two threads of searches beside one, and the speed of a loop in Python while a batch runs."""
    texts = [text for _, text in read_queries(arguments.queries, 2000)]
    index = tierdex.Index.open(arguments.index, threads=2)

    def searches(part: list[str]) -> None:
        for text in part:
            index.search(text, k=10, syntax="terms")

    def both() -> None:
        threads = [threading.Thread(target=searches, args=(texts[start::2],)) for start in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    best = rounds(5, {"one": lambda: seconds(lambda: searches(texts)), "two": lambda: seconds(both)})
    print(f"two threads: {best['one'] / best['two']:.2f} times the queries/s of one")

    def counted(stop: threading.Event) -> float:
        start, count = time.perf_counter(), 0
        while not stop.is_set():
            count += 1
        return count / (time.perf_counter() - start)

    def loop(work: Callable[[], Any]) -> float:
        stop, rate = threading.Event(), []
        thread = threading.Thread(target=lambda: rate.append(counted(stop)))
        thread.start()
        work()
        stop.set()
        thread.join()
        return rate[0]

    single = tierdex.Index.open(arguments.index, threads=1)
    alone = max(loop(lambda: time.sleep(1)) for _ in range(3))
    beside = max(loop(lambda: single.search_batch(texts, 1000, syntax="terms")) for _ in range(3))
    print(f"a loop in Python beside a batch on one thread: {beside / alone:.2f} of its speed alone")


def measure_memory(arguments: argparse.Namespace) -> None:
    import psutil

    texts = [text for _, text in read_queries(arguments.queries, 2000)]
    index, process = tierdex.Index.open(arguments.index, dram="100M", threads=1, hits_max=10), psutil.Process()

    def searches(count: int) -> None:
        for number in range(count):
            index.search(texts[number % len(texts)], k=10, syntax="terms")

    searches(5000)
    before = process.memory_info().rss
    searches(10_000)
    print(f"10,000 searches: {(process.memory_info().rss - before) / 1e6:+.2f} MB of resident memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    processors = os.cpu_count() or 1
    for name, run in (
        ("import", measure_import),
        ("batch", measure_batch),
        ("index", measure_index),
        ("experiment", measure_experiment),
        ("threads", measure_threads),
        ("memory", measure_memory),
    ):
        command = commands.add_parser(name, help=run.__doc__)
        command.set_defaults(run=run)
        if name in ("batch", "threads", "memory"):
            command.add_argument("index", type=Path)
            command.add_argument("queries", type=Path)
        if name in ("batch", "index"):
            command.add_argument("--command", default="tierdex")
            command.add_argument("--threads", type=int, default=processors)
        if name == "batch":
            command.add_argument("-k", type=int, default=10)
        if name == "index":
            command.add_argument("docs", type=Path)
            command.add_argument("--bm25s", action="store_true")
        if name == "experiment":
            command.add_argument("collections", type=Path)
        command.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
