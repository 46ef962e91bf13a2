"""Threads, forks, signals, pickles, memory."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import joblib
import pytest

import tierdex
from corpus import WORDS, build, documents
from tierdex import Index

QUERIES = [f"{a} {b}" for a, b in zip(WORDS, WORDS[3:], strict=False)]


def found(index: Index, queries: list[str]) -> dict[str, dict[str, float]]:
    return index.search_batch(queries, k=10).to_dict()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_an_opened_index_works_in_other_processes(index: Index, method: str) -> None:
    expected = found(index, QUERIES)
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for run in pool.map(found, [index] * 4, [QUERIES] * 4, timeout=120):
            assert run == expected


def test_cloudpickle_and_joblib(index: Index) -> None:
    expected = found(index, QUERIES)
    assert found(pickle.loads(cloudpickle.dumps(index)), QUERIES) == expected
    runs = joblib.Parallel(n_jobs=2)(joblib.delayed(found)(index, QUERIES) for _ in range(2))
    assert list(runs) == [expected, expected]


def test_ray(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        # The workers import this module by its name, from the folder of the tests.
        remote = ray.remote(found).options(runtime_env={"env_vars": {"PYTHONPATH": os.path.dirname(__file__)}})
        assert ray.get([remote.remote(index, QUERIES)] * 2, timeout=120) == [found(index, QUERIES)] * 2
    finally:
        ray.shutdown()


def in_child(body: object) -> None:
    """Runs a function in a forked child, which must end well within a minute."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            body()  # type: ignore[operator]
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended) == 0


def test_a_fork_in_the_middle_of_a_batch(index: Index) -> None:
    expected = found(index, QUERIES)
    before = index.search("word1")
    stop = threading.Event()

    def searches() -> None:
        while not stop.is_set():
            index.search_batch(QUERIES * 20, k=100)

    def body() -> None:
        global_hits = before.ids
        assert found(index, QUERIES) == expected and index.search("word1").ids == global_hits
        # Objects of the parent are dropped without waiting for its threads.
        index.close()

    threads = [threading.Thread(target=searches) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            in_child(body)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert found(index, QUERIES) == expected


@pytest.mark.parametrize("what", ["search", "search_batch", "check", "commit"])
def test_a_signal_handler_that_forks(tmp_path: Path, what: str) -> None:
    """The child gets an error from the call that waits, as the threads that it waits for are not there."""
    script = """
import os, signal, sys, tierdex

def fork(*_):
    global child
    if child is None:
        child = os.fork()
        if child == 0:
            signal.alarm(20)

def rows():
    for number in range(40_000):
        yield {"id": number, "text": f"word{number % 7} word{number} " * 20}

index = tierdex.Index.create(sys.argv[1])
writer = index.writer(threads=1)
writer.add_many(rows())
if sys.argv[2] != "commit":
    writer.close()
query = " ".join(f"word{number}*" for number in range(7))
calls = {
    "search": lambda: index.search(query, k=1000),
    "search_batch": lambda: index.search_batch([query] * 500),
    "check": index.check,
    "commit": lambda: writer.commit(merge=True),
}
child, parent = None, os.getpid()
signal.signal(signal.SIGALRM, fork)
signal.setitimer(signal.ITIMER_REAL, 0.001)
try:
    calls[sys.argv[2]]()
    while child is None:
        signal.pause()
except tierdex.UsageError as error:
    assert os.getpid() != parent and "process" in str(error), error
if os.getpid() == parent:
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    run = [sys.executable, "-c", script, str(tmp_path / "i"), what]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_writer_belongs_to_its_process(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    writer = index.writer()
    writer.add_many(documents(3000))

    def body() -> None:
        with pytest.raises(tierdex.UsageError, match="parent process"):
            writer.add({"id": "x"})
        with pytest.raises(tierdex.BusyError):
            index.writer()

    in_child(body)
    writer.close()
    assert len(index) == 3000


INTERRUPTED = """
import os, signal, sys, threading, itertools
import tierdex
index = tierdex.Index.open(sys.argv[1])
what = sys.argv[2]
reported = threading.Event()

def send(done, total):
    if not reported.is_set():
        reported.set()
        os.kill(os.getpid(), signal.SIGINT)

try:
    if what == "batch":
        index.search_batch(["word1 word2 word3"] * 5_000_000, k=10, progress=send)
    else:
        with index.writer(memory="16M") as writer:
            writer.add_many(({"id": n, "text": "word " * 50} for n in itertools.count()), progress=send)
except KeyboardInterrupt:
    print("interrupted", len(index), len(index.search("word1")))
"""


@pytest.mark.parametrize("what", ["batch", "write"])
def test_control_c_stops_work(index: Index, tmp_path: Path, what: str) -> None:
    copy = build(tmp_path / "i", documents(200))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, copy.path, what], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "interrupted 200 10\n", done.stderr


def test_threads_share_an_index_beside_a_writer(tmp_path: Path) -> None:
    index = build(tmp_path / "i", documents(500))
    ended = threading.Event()

    def searches() -> int:
        rounds = 0
        while not ended.is_set() or rounds == 0:
            hits = index.search("word1 word2", k=5)
            assert len(hits) == 5 and all(hit.text for hit in hits)
            rounds += 1
        return rounds

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        rounds = [pool.submit(searches) for _ in range(4)]
        for number in range(5):
            with index.writer() as writer:
                writer.add_many(documents(100, seed=number))
            index.refresh()
        ended.set()
        assert all(round.result() for round in rounds)
    assert len(index) == 1000


def test_work_runs_without_the_gil(index: Index) -> None:
    """Two calls that wait for each other: one of them would hold the GIL for ever."""
    meet = threading.Barrier(2, timeout=60)
    passed: list[int] = []

    def once(number: int) -> None:
        def report(done: int, total: int | None) -> None:
            if number not in passed:
                passed.append(number)
                meet.wait()

        index.search_batch(QUERIES * 50, k=100, progress=report)

    threads = [threading.Thread(target=once, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert sorted(passed) == [0, 1] and not meet.broken


GROWTH = """
import sys, psutil, tierdex
index = tierdex.Index.open(sys.argv[1])

def searches(count):
    for number in range(count):
        hits = index.search(f"word{number % 200} word{number % 31}", k=20)
        assert hits[0].title and len(hits.scores) > 0

searches(3000)
before = psutil.Process().memory_info().rss
searches(10_000)
print(psutil.Process().memory_info().rss - before)
"""


def test_memory_does_not_grow(index: Index) -> None:
    """Ten thousand searches in a process of their own."""
    run = [sys.executable, "-c", GROWTH, index.path]
    grown = int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    assert grown < 1 << 20


LIMIT_FILES = ["memory.limit_in_bytes", "memory.max"]

LIMITED = """
import os, sys, tierdex
from pathlib import Path
queries = [f"word{number} word{number * 7 % 200} word{number * 3 % 31}" for number in range(200)]
# What the interpreter, NumPy and the modules of the package take counts outside of the group.
with tierdex.Index.open(sys.argv[1], dram=sys.argv[2], hits_max=100, threads=2) as index:
    index.search_batch(queries[:5], k=100).scores
(Path(sys.argv[3]) / "cgroup.procs").write_text(str(os.getpid()))
index = tierdex.Index.open(sys.argv[1], dram=sys.argv[2], hits_max=100, threads=2)
assert sum(index.stats()["memory"].values()) <= index.stats()["dram"]
for number in range(10_000):
    index.search(queries[number % 200], k=10)
print(len(index.search_batch(queries, k=100).scores))
"""


@pytest.fixture
def control_group() -> Iterator[Path]:
    """The folder of a memory control group, version 1 or 2."""
    for root in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        group = root / f"tierdex-python-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if any((group / name).exists() for name in LIMIT_FILES):
            yield group
            group.rmdir()
            return
        group.rmdir()
    pytest.skip("no permission to create a memory control group")


def test_searches_in_a_control_group_of_the_budget(index: Index, control_group: Path) -> None:
    dram = 24 << 20
    for name in LIMIT_FILES:
        if (control_group / name).exists():
            (control_group / name).write_text(str(dram * 12 // 10))
    run = [sys.executable, "-c", LIMITED, index.path, str(dram), control_group]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "20000\n"), done.stderr


def test_the_import_is_light() -> None:
    """The package does not import what only some of its functions need."""
    code = "import sys, tierdex; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("numpy", "pandas", "pyarrow", "pyterrier", "ir_measures", "tqdm"):
        assert f"'{heavy}'" not in loaded
