"""Writers that threads share: no accepted document is lost or doubled, and no call waits for ever.

What could wait for ever runs in a process of its own, under a time limit.
"""

from __future__ import annotations

import os
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tierdex
from corpus import documents, in_process
from tierdex import Index


def test_documents_of_three_threads_beside_commits(tmp_path: Path) -> None:
    in_process(
        """
        index = tierdex.Index.create(path)
        writer = index.writer(memory="64M")
        done = threading.Event()

        def add(thread):
            for number in range(20_000):
                writer.add({"id": f"{thread}-{number}", "text": "some words of a short document"})

        def commit():
            while not done.is_set():
                writer.commit()

        committing = threading.Thread(target=commit)
        committing.start()
        run(*(lambda thread=thread: add(thread) for thread in range(3)))
        done.set()
        committing.join()
        writer.close()
        assert committed(index) == {f"{thread}-{number}" for thread in range(3) for number in range(20_000)}
        """,
        tmp_path / "i",
    )


EACH_AGAINST_EACH = """
class Calling(collections.UserDict):
    '''A document whose methods call the writer.'''
    def __getitem__(self, key):
        world.writer.added
        return super().__getitem__(key)
    def __contains__(self, key):
        world.writer.added
        return super().__contains__(key)
    def keys(self):
        world.add_quietly()
        return super().keys()

class Id:
    def __init__(self, number):
        self.number = number
    def __index__(self):
        world.add_quietly()
        return self.number

class Bad:
    def __repr__(self):
        world.add_quietly()
        return "bad"
    __str__ = __repr__

class World:
    def __init__(self, folder):
        self.index = tierdex.Index.create(folder)
        self.writer = self.index.writer(memory="32M", threads=1)
        self.numbers = itertools.count()
        self.accepted, self.maybe, self.rolled_back, self.lost = set(), set(), False, 0

    def document(self, kind=dict):
        return kind({"id": str(next(self.numbers)), "title": "t", "text": "words " * 2000})

    def add(self, kind=dict):
        document = self.document(kind)
        identifier = dict(document)["id"]
        self.writer.add(document)
        self.accepted.add(str(identifier))

    def add_quietly(self):
        try:
            self.add()
        except tierdex.UsageError:
            pass

    def add_index(self):
        number = next(self.numbers)
        self.writer.add({"id": Id(number), "text": "x"})
        self.accepted.add(str(number))

    def add_bad(self):
        try:
            self.writer.add({"id": Bad(), "text": "x"})
        except tierdex.UsageError as error:
            assert "str or int" in str(error) or "rolled back" in str(error) or "closed" in str(error)

    def many(self, make):
        '''Adds by add_many; the first documents of the call may be added if it raises.'''
        ids = []
        def documents():
            for _ in range(30):
                document = self.document(make)
                ids.append(str(dict(document)["id"]))
                yield document
        try:
            self.writer.add_many(documents())
        except BaseException:
            self.maybe.update(ids)
            raise
        self.accepted.update(ids)

    def add_raising(self):
        ids = []
        def documents():
            document = self.document()
            ids.append(document["id"])
            yield document
            self.add_quietly()
            raise ZeroDivisionError
        try:
            self.writer.add_many(documents())
        except ZeroDivisionError:
            self.accepted.update(ids)

    def add_arrow(self):
        documents = [self.document() for _ in range(30)]
        ids = [document["id"] for document in documents]
        try:
            self.writer.add_many(pa.Table.from_pylist(documents))
        except BaseException:
            self.maybe.update(ids)
            raise
        self.accepted.update(ids)

    def rollback(self):
        self.writer.rollback()
        self.rolled_back = True

ENTRIES = {
    "add": World.add,
    "add a mapping": lambda world: world.add(collections.UserDict),
    "add a mapping that calls": lambda world: world.add(Calling),
    "add an index that calls": World.add_index,
    "add a repr that calls": World.add_bad,
    "add many": lambda world: world.many(dict),
    "add many mappings that call": lambda world: world.many(Calling),
    "add many and raise": World.add_raising,
    "add arrow": World.add_arrow,
    "added": lambda world: world.writer.added,
    "commit": lambda world: world.writer.commit(),
    "rollback": World.rollback,
    "close": lambda world: world.writer.close(),
}

def repeat(entry):
    for _ in range(4):
        try:
            entry(world)
        except tierdex.UsageError as error:
            assert re.search("rolled back|is closed", str(error)), error
"""


def test_each_call_beside_each_other(tmp_path: Path) -> None:
    script = EACH_AGAINST_EACH + textwrap.dedent(
        """
        sys.setswitchinterval(1e-4)
        pairs = itertools.combinations_with_replacement(ENTRIES.items(), 2)
        for number, ((a, one), (b, other)) in enumerate(pairs):
            world = World(f"{path}/{number}")
            run(lambda: repeat(one), lambda: repeat(other))
            world.writer.close()
            found = committed(world.index)
            assert found <= world.accepted | world.maybe, (a, b)
            assert world.rolled_back or world.accepted <= found, (a, b, world.accepted - found)
        print(number)
        """
    )
    (tmp_path / "i").mkdir()
    assert int(in_process(script, tmp_path / "i", seconds=280)) == 90


def test_six_threads_at_random(tmp_path: Path) -> None:
    script = EACH_AGAINST_EACH + textwrap.dedent(
        """
        sys.setswitchinterval(1e-4)
        names = [name for name in ENTRIES if name not in ("rollback", "close")]

        def work(seed):
            choose = random.Random(seed)
            for _ in range(60):
                ENTRIES[choose.choice(names)](world)

        def read():
            while not ended.is_set():
                for hit in world.index.search("words", k=3):
                    assert hit.text and hit.id

        for number in range(4):
            world, ended = World(f"{path}/{number}"), threading.Event()
            readers = [threading.Thread(target=read) for _ in range(2)]
            for reader in readers:
                reader.start()
            run(*(lambda seed=seed: work(seed) for seed in range(6 * number, 6 * number + 6)))
            world.writer.close()
            ended.set()
            for reader in readers:
                reader.join()
            found = committed(world.index)
            assert found == world.accepted and not world.maybe, (found ^ world.accepted, world.maybe)
        """
    )
    (tmp_path / "i").mkdir()
    in_process(script, tmp_path / "i", seconds=280)


@pytest.mark.parametrize("beside", ["alone", "commits"])
def test_signals_that_raise(tmp_path: Path, beside: str) -> None:
    """Exceptions of a timer at any moment of add and add_many, which wait for the queue, and for the commits
    of another thread; a document that add took is committed."""
    in_process(
        """
        class Alarm(Exception):
            pass

        def alarm(*_):
            global alarms
            alarms += 1
            raise Alarm

        def documents():
            for _ in range(200):
                number = next(numbers)
                read.add(str(number))
                yield {"id": number, "text": "words " * 1000}

        index = tierdex.Index.create(path)
        alarms, numbers, accepted, read = 0, itertools.count(), set(), set()
        writer = index.writer(memory="32M", threads=1)
        ended, alone = threading.Event(), sys.argv[2] == "alone"

        def commit():
            while not ended.is_set():
                writer.commit()

        committing = threading.Thread(target=commit)
        if not alone:
            committing.start()
        signal.signal(signal.SIGALRM, alarm)
        while alarms < 100:
            before = writer.added
            number = next(numbers)
            signal.setitimer(signal.ITIMER_REAL, random.Random(number).uniform(1e-4, 2e-2))
            try:
                try:
                    writer.add({"id": number, "text": "words " * 1000})
                    accepted.add(str(number))
                    before += 1
                    writer.add_many(documents())
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Alarm:
                read.add(str(number))
            assert writer.added >= before or not alone
        ended.set()
        if not alone:
            committing.join()
        added = writer.added
        writer.close()
        found = committed(index)
        assert accepted <= found <= accepted | read and (len(found) == added or not alone)
        """,
        tmp_path / "i",
        beside,
    )


def test_a_signal_stops_a_commit_and_the_loss_is_named(tmp_path: Path) -> None:
    in_process(
        """
        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        count, lost = 20_000, ""
        # Until a commit takes long enough to be interrupted.
        while "documents since the last commit are lost" not in lost:
            index = tierdex.Index.create(path, overwrite=True)
            writer = index.writer(memory="64M", threads=1)
            texts = (" ".join(f"word{n * m}" for m in range(1, 60)) for n in range(count))
            writer.add_many({"id": n, "text": text} for n, text in enumerate(texts))
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            try:
                writer.commit()
                signal.pause()
            except KeyboardInterrupt as error:
                lost = getattr(error, "__notes__", [""])[0]
            if lost:
                for call in (writer.commit, writer.close, lambda: writer.add({"id": 1, "text": ""})):
                    try:
                        call()
                        raise AssertionError("no error")
                    except tierdex.CancelledError as later:
                        assert lost in str(later)
                assert f"{count} documents since" in lost and len(tierdex.Index.open(path)) == 0
            writer.rollback()
            count *= 2
        """,
        tmp_path / "i",
    )


def test_signal_handlers_that_call_the_writer(tmp_path: Path) -> None:
    in_process(
        """
        def handler(*_):
            global handled
            handled += 1
            writer.add({"id": f"handler-{handled}", "text": "x"})
            if handled % 5 == 0:
                writer.commit()

        index = tierdex.Index.create(path)
        writer = index.writer(memory="32M", threads=1)
        handled, numbers = 0, itertools.count()
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        while handled < 100:
            writer.add({"id": next(numbers), "text": "words " * 500})
            writer.add_many({"id": next(numbers), "text": "words " * 500} for _ in range(100))
            writer.commit()
        signal.setitimer(signal.ITIMER_REAL, 0)
        writer.close()
        expected = {str(n) for n in range(next(numbers))} | {f"handler-{n + 1}" for n in range(handled)}
        assert committed(index) == expected
        """,
        tmp_path / "i",
    )


def test_an_error_of_the_device_names_the_loss(tmp_path: Path) -> None:
    printed = in_process(
        """
        index = tierdex.Index.create(path)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        writer = index.writer(memory="16M", threads=1)
        writer.add({"id": "kept", "text": "word"})
        writer.commit()
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, resource.RLIM_INFINITY))
        added = 0
        for call in (writer.add, writer.add, lambda _: writer.commit(), lambda _: writer.close()):
            try:
                for number in itertools.count(added):
                    call({"id": number, "text": f"word{number} " * 100})
                    added += 1
            except tierdex.StorageError as error:
                assert f"{added} documents since the last commit are lost" in str(error), error
                assert "\\n" not in str(error)
        writer.rollback()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert committed(index) == {"kept"}
        print(added)
        """,
        tmp_path / "i",
    )
    assert int(printed) > 1000


def test_the_end_of_a_process_with_an_open_writer(tmp_path: Path) -> None:
    in_process(
        """
        index = tierdex.Index.create(path)
        writer = index.writer(memory="32M")
        # Not a table: Python ends a daemon thread where it is, and in the C++ code of pyarrow that is fatal.
        documents = [{"id": str(n), "text": "words " * 100} for n in range(1000)]

        def add():
            while True:
                writer.add_many(documents)

        threading.Thread(target=add, daemon=True).start()
        writer.add({"id": "a", "text": "b"})
        """,
        tmp_path / "i",
    )
    Index.open(tmp_path / "i").writer().rollback()


def test_a_fork_while_threads_add(tmp_path: Path) -> None:
    printed = in_process(
        """
        index = tierdex.Index.create(path)
        writer = index.writer(memory="32M")
        ended = threading.Event()

        def add():
            while not ended.is_set():
                writer.add({"id": "a", "text": "words " * 100})

        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                for call in (lambda: writer.add({"id": "x", "text": ""}), writer.commit, writer.close):
                    try:
                        call()
                    except tierdex.UsageError as error:
                        assert "parent process" in str(error)
                    else:
                        os._exit(1)
                del writer
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        ended.set()
        for thread in threads:
            thread.join()
        writer.close()
        print("closed")
        """,
        tmp_path / "i",
    )
    assert printed == "closed\n"


@pytest.mark.parametrize(("end", "message"), [("rollback", "rolled back"), ("close", "closed")])
def test_an_end_in_the_middle_of_add_many(tmp_path: Path, end: str, message: str) -> None:
    index = Index.create(tmp_path / "i")
    writer = index.writer()

    def documents() -> Iterator[dict[str, object]]:
        for number in range(40):
            if number == 20:
                other = threading.Thread(target=getattr(writer, end))
                other.start()
                other.join()
            yield {"id": number, "text": "w" * (100 << 10)}

    # Three documents are a piece.
    with pytest.raises(tierdex.UsageError, match=f"{message}; 18 documents of this call were added before"):
        writer.add_many(documents())
    assert len(index) == (18 if end == "close" else 0)
    assert writer.added == 0
    writer.close()
    writer.rollback()


def test_documents_before_an_error_are_added(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    rows = [{"id": str(number), "text": "x"} for number in range(10)]
    rows[7]["id"] = ""
    with index.writer() as writer:
        for documents in (rows, pa.Table.from_pylist(rows)):
            with pytest.raises(tierdex.UsageError, match="document 7: the id is empty"):
                writer.add_many(documents)
    assert len(index) == 14


def test_ids_that_would_break_runs(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    bad = ["", "a\tb", "a\nb", "\0", "a\x7f", "\x85", "\u2028", "\u2029"]
    with index.writer() as writer:
        for id in bad:
            row = {"id": id, "text": "x"}
            for add in (writer.add, lambda row: writer.add_many([row])):
                with pytest.raises(
                    tierdex.UsageError, match=r"the id (is empty|.* control character U\+00|.*202)"
                ):
                    add(row)
            with pytest.raises(tierdex.UsageError):
                writer.add_many(pa.Table.from_pylist([row]))
        with pytest.raises(tierdex.LimitError, match="too many digits"):
            writer.add({"id": 10**5000, "text": "x"})
        writer.add({"id": 10**100, "text": "x"})
        writer.add({"id": "with blanks", "text": "x"})
    assert index.search("x").ids == [str(10**100), "with blanks"]


def test_a_writer_that_is_not_closed_ends(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "i")
    for _ in range(3):
        writer = index.writer()
        writer.add_many(documents(100))
        del writer
    assert len(index) == 0 and not [name for name in os.listdir(tmp_path / "i") if "postings" in name]
