"""PISA behind the line protocol of `tierdex-bench serve`, by its Python binding.

    peer.py version
    peer.py index TOKENS DIR --memory BYTES
    peer.py serve DIR [--k1 K1] [--b B]

The binding answers a list of queries in one call. A batch is such calls, as few as the arrays of hits allow; the time
of making and emptying those arrays is not counted, that of filling them is, a Python string a hit included. Queries
are drawn one by one, so that the time from one to the next is a latency. The binding counts no matches: COUNT and
TOP_k_COUNT are UNSUPPORTED, and so are queries that mix required and other words, filters, phrases, groups, prefixes
and fuzzy words.
"""

import argparse
import itertools
import json
import logging
import os
import sys
import time
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path

# BM25 as the other engines have it.
K1, B = 1.2, 0.75
ENCODING = "block_simdbp"
# Largest k of a small result, and largest number of words of a short query: see `algorithm`.
FEW_HITS, FEW_WORDS = 100, 5
# Capacity of the arrays of one call, in hits.
HITS_MAX = 1 << 22
# All in one run: what the binding merges from several runs has postings of documents that do not hold the term.
DOCUMENTS_A_RUN = 1 << 31
UNSUPPORTED = "UNSUPPORTED"


def main():
    """Runs a command; what fails is one line on standard error."""
    arguments = parse_arguments()
    try:
        if arguments.command == "version":
            print(f"PISA by pyterrier_pisa {version('pyterrier_pisa')}")
        elif arguments.command == "index":
            index(arguments.tokens, arguments.dir)
        else:
            serve(arguments.dir, arguments.k1, arguments.b)
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def parse_arguments():
    parser = argparse.ArgumentParser(description="PISA behind the line protocol of tierdex-bench serve")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version")
    indexing = commands.add_parser("index")
    indexing.add_argument("tokens", type=Path)
    indexing.add_argument("dir", type=Path)
    indexing.add_argument("--memory", type=int, help="ignored")
    serving = commands.add_parser("serve")
    serving.add_argument("dir", type=Path)
    serving.add_argument("--k1", type=float, default=K1)
    serving.add_argument("--b", type=float, default=B)
    return parser.parse_args()


def index(tokens, folder):
    """Indexes lines by word frequencies, so that the binding applies no tokenizer of its own."""
    quiet()
    import pyterrier_pisa

    # Here, for the method that makes the indexer does not heed its own argument of that name.
    made = pyterrier_pisa.PisaIndex(str(folder), stemmer="none", stops="none", batch_size=DOCUMENTS_A_RUN)
    with open(tokens, encoding="utf-8", newline="\n") as lines:
        made.toks_indexer("tokens", scale=1.0).index(documents(lines))
    # Compresses the lists and computes the bounds of blocks, and keeps both beside the index.
    context(folder, K1, B)
    print(f"{made.num_docs()} documents")


def documents(lines):
    for ordinal, line in enumerate(lines):
        yield {"docno": str(ordinal), "tokens": Line(line.rstrip("\n"))}


class Line:
    """The tokens of a document, counted when they are asked for: a run keeps all its documents."""

    def __init__(self, text):
        self.text = text

    def items(self):
        return Counter(self.text.split(" ")).items()


def quiet():
    """Nothing but answers on standard output."""
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")


def context(folder, k1, b):
    """What queries are answered from: the index, mapped, with the bounds of its blocks, which are made for other constants
    the first time that these are asked for."""
    from pyterrier_pisa import _pisathon

    made = _pisathon.RetrievalContext()
    _pisathon.prepare_index(made, str(folder), ENCODING, "bm25", "", bm25_k1=k1, bm25_b=b)
    return made


def serve(folder, k1, b):
    quiet()
    # What is not Python prints as well, where bounds are made.
    answers = os.dup(1)
    os.dup2(2, 1)
    server = Server(folder, k1, b)
    sys.stdout.flush()
    os.dup2(answers, 1)
    say("READY")
    for line in sys.stdin:
        try:
            say(server.reply(line.rstrip("\n")))
        except (OSError, ValueError, RuntimeError) as error:
            say(f"ERROR {error}")


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Server:
    """Answers lines."""

    def __init__(self, folder, k1, b):
        for path in sorted(folder.iterdir()):
            path.read_bytes()
        self.context = context(folder, k1, b)
        self.hits = Hits()

    def reply(self, line):
        if line.startswith("!BATCH\t"):
            return self.batch(*line.split("\t")[1:])
        request = parse(line)
        if request is None:
            return UNSUPPORTED
        command, name, k, words = request
        queries = Queries([words])
        size = self.hits.fill(self.context, name, k, queries, 1)
        if command == "TOP":
            return str(size)
        hits = zip(*self.hits.first(size))
        return " ".join(f"{document}:{score}" for document, score in hits)

    def batch(self, file, threads, latencies):
        """Runs the lines of a file, those of one form after another."""
        with open(file, encoding="utf-8", newline="\n") as lines:
            requests = [parse(line.rstrip("\n")) for line in lines if line != "\n"]
        known = [(place, request) for place, request in enumerate(requests) if request is not None]
        known.sort(key=lambda pair: pair[1][:3])
        times, wall, total = {}, 0, 0
        for (_, name, k), group in itertools.groupby(known, key=lambda pair: pair[1][:3]):
            group = list(group)
            step = max(1, HITS_MAX // k)
            for start in range(0, len(group), step):
                part = group[start : start + step]
                queries = Queries([request[3] for _, request in part])
                total += self.hits.fill(self.context, name, k, queries, int(threads))
                wall += queries.wall()
                times.update(zip((place for place, _ in part), queries.latencies()))
        if latencies != "-":
            ordered = (times.get(place, 0) for place in range(len(requests)))
            Path(latencies).write_text("".join(f"{one}\n" for one in ordered), encoding="utf-8")
        return summary(len(requests), sorted(times.values()), wall, total)


def summary(lines, times, wall, total):
    def at(percent):
        return times[min(len(times) * percent // 100, len(times) - 1)] if times else 0

    return json.dumps(
        {
            "n": lines,
            "wall_ns": wall,
            "p50_ns": at(50),
            "p99_ns": at(99),
            "max_ns": at(100),
            "sum": total,
            "unsupported": lines - len(times),
        }
    )


class Queries:
    """Queries for one call, with the clock's time when each was drawn and when the call ended."""

    def __init__(self, queries):
        self.queries = [(place, dict.fromkeys(words, 1.0)) for place, words in enumerate(queries)]
        self.times = []

    def __len__(self):
        return len(self.queries)

    def __iter__(self):
        clock, times = time.perf_counter_ns, self.times
        for query in self.queries:
            times.append(clock())
            yield query

    def end(self):
        self.times.append(time.perf_counter_ns())

    def wall(self):
        return self.times[-1] - self.times[0]

    def latencies(self):
        """True of one thread; of more, the times from one query to the next of whichever thread."""
        return (after - before for before, after in itertools.pairwise(self.times))


class Hits:
    """Arrays that a call fills. They are made once and grow, so that their memory is there when the clock runs."""

    def __init__(self):
        self.capacity = self.size = 0

    def fill(self, context, name, k, queries, threads):
        """Runs the queries; gives the number of hits."""
        from pyterrier_pisa import _pisathon

        self.reserve(k * len(queries))
        size = _pisathon.retrieve(
            context,
            name,
            queries,
            k=k,
            threads=threads,
            pretokenised=True,
            query_weighted=0,
            result_qidxs=self.query_indexes,
            result_docnos=self.names,
            result_ranks=self.ranks,
            result_scores=self.scores,
        )
        queries.end()
        self.size = size
        return size

    def first(self, size):
        return self.names[:size], self.scores[:size]

    def reserve(self, hits):
        import numpy

        if hits > self.capacity:
            self.capacity = hits
            self.query_indexes, self.ranks = numpy.zeros(hits, numpy.int32), numpy.zeros(hits, numpy.int32)
            self.scores, self.names = numpy.zeros(hits, numpy.float32), numpy.empty(hits, object)
        elif self.size:
            # The binding overwrites what stands there without giving it back.
            self.names[: self.size] = None


def algorithm(words, required, k):
    """The fastest of its algorithms for a query of this form, as far as they were tried on English text."""
    if required:
        return "ranked_and"
    if len(words) > FEW_WORDS:
        return "maxscore"
    if k > FEW_HITS:
        return "block_max_maxscore"
    return "block_max_wand" if len(words) == 1 else "wand"


def parse(line):
    """Command, algorithm, k and words of a line; none if it is not supported."""
    command, _, query = line.partition("\t")
    name, _, digits = command.partition("_")
    words = query.split()
    required = [word for word in words if word.startswith("+")]
    plain = not any(word[0] in "-#" or any(sign in word for sign in '"(*~') for word in words)
    if name not in ("TOP", "DOCS") or not digits.isdigit() or int(digits) == 0 or not plain:
        return None
    if required and len(required) < len(words):
        return None
    k = int(digits)
    return name, algorithm(words, required, k), k, [word.removeprefix("+") for word in words]


if __name__ == "__main__":
    main()
