"""Comparisons with other engines: text, query sets, and runs of programs that speak the protocol."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tierdex_driver import machine
from tierdex_driver.cli import run as run_command
from tierdex_driver.errors import Failed, Usage
from tierdex_driver.peers import check, engines, recipes, sets, settings, text

# An engine: of `a b` the lines with one of the words match, of `+a +b` those with both. The peer SeekStorm counts one
# match too many, and Tantivy with the advice `random` ends at once.
ENGINE = """#!{python}
import json, pathlib, shutil, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join([name, *words[:1]]) + "\\n")
if "version" in words[0]:
    print(name, "1.0")
elif words[0] == "index":
    tokens = next(word for word in words if word.endswith(".txt"))
    directory = pathlib.Path(next(word for word in words if "indexes" in word))
    directory.mkdir(exist_ok=True)
    shutil.copy(tokens, directory / "tokens")
elif "random" in words:
    sys.exit("no memory")
else:
    lines = [set(line.split()) for line in (pathlib.Path(words[1]) / "tokens").read_text().splitlines()]
    def answer(line):
        command, query = line.split("\\t")
        terms = [word.lstrip("+") for word in query.split()]
        suits = all if "+" in query else any
        found = [number for number, words in enumerate(lines) if suits(term in words for term in terms)]
        if command.startswith("DOCS"):
            return " ".join(f"{{number}}:1.5" for number in found[:10])
        return len(found) + (name == "tierdex-peer-seekstorm")
    print("READY", flush=True)
    for line in sys.stdin:
        if line.startswith("!BATCH"):
            batch = open(line.split("\\t")[1]).read().splitlines()
            with open({log!r}, "a") as log:
                log.write("batch " + name + "\\n")
            wall = len(batch) * (1000 if name == "tierdex-bench" else 2000)
            total = sum(map(answer, batch))
            found = dict(n=len(batch), wall_ns=wall, p50_ns=1, p99_ns=2, max_ns=3, sum=total, unsupported=0)
            print(json.dumps(found), flush=True)
        else:
            print(answer(line.rstrip()), flush=True)
"""
PROGRAMS = ("tierdex", "tierdex-bench", "tierdex-peer-tantivy", "tierdex-peer-seekstorm")
TEXT = "".join(json.dumps({"title": "The", "text": f"w{i % 7} common x{i % 50}y, {i}"}) + "\n" for i in range(200))


def corpus(path: Path, terms: dict[str, int], documents: int = 100_000) -> text.Corpus:
    return text.Corpus(path, path.stat().st_size if path.exists() else 0, documents, terms)


def test_random_numbers_are_those_of_splitmix64() -> None:
    random = sets.Random(1234567)
    assert [random.bits() for _ in range(2)] == [6457827717110365317, 3203168211198807973]


def test_tokens_are_lower_case_runs_of_letters_and_digits(tmp_path: Path) -> None:
    path = tmp_path / "docs.jsonl"
    lines = [{"title": "The Oath", "text": "don't  ÉTÉ_12\n"}, {"text": "..."}, {"text": f"हिन्दी {'a' * 201} b"}]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    assert list(text.documents(path)) == ["the oath don t été 12", "हिन दी b"]
    path.write_text('{"title": "a"}\n{}\n')
    with pytest.raises(Failed, match=r"docs.jsonl:2: has neither"):
        list(text.documents(path))


def test_copies_and_parts_have_the_documents_in_order(tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text("a b c\nd\ne f\n")
    # 7,919 is 2 and 104,729 is 2 modulo 3: the second halves of copy 1 are those of 2, 1, 0.
    assert list(text.copies(path, 2)) == ["a b c", "d", "e f", "a b f", "d", "e c"]
    paths = text.parts(corpus(path, {}, 3), 2, tmp_path / "parts")
    assert [one.read_text() for one in paths] == ["a b c\nd\n", "e f\n"]


def drawing(percent: int = 0) -> sets.Drawing:
    words = ("of", "the", "there", "thereby", "wherever", "2004")
    terms = {f"h{i:03}": 2000 for i in range(300)} | {f"m{i}": 7 for i in range(50)} | {"low": 2}
    terms |= dict.fromkeys(words, 2000) | {f"medium{letter}": 300 for letter in "abcdefghij"}
    classes = sets.classes_of(corpus(Path("none"), terms, 1_000_000 // 10))
    assert len(classes["h"]) == 306 and len(classes["M"]) == 61 and len(classes["m"]) == 10 and not classes["l"]
    return sets.Drawing(classes, percent, sets.Random(1))


def recipe(name: str) -> recipes.Recipe:
    return next(one for one in recipes.ALL if one.name == name)


def test_drawn_terms_come_once_before_one_comes_twice_unless_they_are_repeats() -> None:
    assert len(set(drawing().queries("h", 306))) == 306
    assert 110 < len(set(drawing(50).queries("h", 300))) < 190
    # The same text and seed give the same queries in each version.
    assert drawing().queries("+hM", 2) == ["+mediumi +m26 +mediumj +h006", "+h173 +m44 +h036 +low"]


def test_patterns_have_words_of_their_classes() -> None:
    drawn = drawing()
    for query in [drawn.fill("+m -(h p*)~2 x~2") for _ in range(100)]:
        m, h, p, x = query.split(" ")
        assert m.startswith("+medium") and h.startswith("-(")
        assert 3 <= len(p.removesuffix("*)~2")) <= 5
        assert x in ("thereby~2", "wherever~2") or x.startswith("medium")
    assert drawing().queries("l l", 3) == []


def test_phrases_are_of_one_document() -> None:
    assert sets.adjacent(b"x ab c\nd", 2) == ["ab", "c"] and sets.adjacent(b"\nab c d", 2) == ["ab", "c"]
    assert [sets.adjacent(window, 2) for window in (b"x ab\nc d ", b"x ab c", b"xyz")] == [None] * 3
    random = sets.Random(1)
    found = [sets.loose(b"x a b c d\n", 2, random) for _ in range(100)]
    assert {" ".join(words) for words in found if words} == {"b a", "a c"}
    assert sets.loose(b"x a a a\n", 2, random) is None


def test_unknown_terms_of_real_queries_are_removed_or_their_query(tmp_path: Path) -> None:
    lines = [{"query": "+A +b", "tags": ["intersection"]}, {"query": "a c", "tags": ["intersection", "union"]}]
    lines += [{"query": "a, b? c a", "tags": ["union"]}]
    (tmp_path / "search-benchmark-game.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    flags = parsed("--queries", str(tmp_path))
    known = corpus(Path("none"), {"a": 2, "b": 2})
    found = [sets.real(flags, known, recipe(name), sets.Random(1)) for name in ("game-and", "game-or")]
    assert found == [["+a +b"], ["a b"]]


def parsed(*words: str) -> settings.Settings:
    context = settings.search.make_context("search", ["--input", __file__, "--work", "work", *words])
    given = {word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}
    return settings.Settings(given, **context.params)


def test_sets_are_named_one_by_one_or_by_group() -> None:
    def names(*words: str) -> list[str]:
        return [one.name for one in parsed(*words).recipes]

    assert names("--sets", "phrases,phrase-2,or-hh") == ["phrase-2", "phrase-3", "phrase-4", "or-hh"]
    assert names() == names("--sets", "flat,mixed,phrases") and len(names()) == 22
    assert set(names("--limit", "50M")) == {"single-h", "and-hh"} and len(names("--sets", "shapes")) == 28
    assert "phrase-2" not in names("--limit", "50M", "--sets", "all") and "or-ll" in names("--sets", "all")
    assert parsed().commands_of(recipe("fuzzy-or")) == ["TOP_10"]
    assert parsed().commands_of(recipe("phrase-2")) == ["TOP_10", "TOP_1024_COUNT", "COUNT"]
    assert parsed("--b", "0.4").bm25 == (1.2, 0.4) and parsed().bm25 is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sets", "and-xx"], "no query set"),
        (["--commands", "TOP_0"], "no command"),
        (["--limit", "50M", "--sets", "phrase-2"], "phrases"),
        (["--limit", "50M", "--segments", "8"], "exclude"),
        (["--beyond-own"], "--beyond-own needs --limit"),
        (["--limit", "0"], "greater than 0"),
    ],
)
def test_wrong_flags_are_usage_errors(words: list[str], message: str) -> None:
    with pytest.raises(Usage, match=message):
        parsed(*words)


def test_the_budget_of_tierdex_is_what_the_limit_leaves() -> None:
    assert engines.cache_flags(parsed("--limit", "1000")) == ["--dram", "900"]
    assert engines.cache_flags(parsed("--limit", "1000", "--beyond-own")) == ["--cache", "dram:900"]
    assert engines.cache_flags(parsed("--limit", "1000", "--tierdex-spare", "10")) == ["--dram", "990"]


def test_a_constant_factor_of_scores_is_no_difference_and_counts_are() -> None:
    expected: check.Sample = {"set": {"a": (3, {1: 2.0, 2: 1.0}), "b": (1, None), "c": (None, {})}}
    found: check.Sample = {"set": {"a": (3, {1: 4.0, 5: 2.0, 6: 1.0}), "b": (2, None), "c": (7, {})}}
    row = check.difference(expected["set"], found["set"])
    assert row["counted"] == 2 and row["differ"] == 1 and row["first"] == "`b` 2, not 1"
    assert row["overlap"] == pytest.approx((1 / 3 + 1) / 2) and row["scores"] == pytest.approx(0)


Search = Callable[..., int]


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    """Runs the command with the engines of this file, which a program in place of Cargo names."""
    for name in PROGRAMS:
        (tmp_path / name).write_text(ENGINE.format(python=sys.executable, log=str(tmp_path / "log")))
        (tmp_path / name).chmod(0o755)
    lines = "\n".join(json.dumps({"executable": str(tmp_path / name)}) for name in PROGRAMS)
    (tmp_path / "cargo").write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\n")
    (tmp_path / "cargo").chmod(0o755)
    monkeypatch.setenv("CARGO", str(tmp_path / "cargo"))
    (tmp_path / "docs.jsonl").write_text(TEXT)

    def run(*words: str) -> int:
        head = ["tierdex-driver", "search", "--input", str(tmp_path / "docs.jsonl"), "--work", str(tmp_path / "work")]
        monkeypatch.setattr(sys, "argv", [*head, "--sets", "single-h,or-hh", "--count", "5", "--batch", "1", *words])
        return run_command()

    return run


def batches(directory: Path) -> int:
    return (directory / "log").read_text().count("batch")


def rows(directory: Path, name: str) -> list[dict[str, Any]]:
    lines = (directory / "work/results/search.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines[1:]) if line["cell"].startswith(name)]


def test_engines_alternate_and_an_interrupted_run_continues(tmp_path: Path, search: Search) -> None:
    words = ["--engines", "tierdex,tantivy,seekstorm", "--commands", "COUNT", "--rounds", "3", "--warm", "2"]
    assert search(*words) == 0
    measured = rows(tmp_path, "speed")
    # Two sets of three engines: the first pass and three rounds; one more is a warm-up.
    assert len(measured) == 24 and batches(tmp_path) == 30
    order = [line["cell"].split("engine=")[1] for line in measured if line["round"] in (1, 2) and "or-hh" in line["cell"]]
    assert order == ["tantivy", "seekstorm", "tierdex", "seekstorm", "tierdex", "tantivy"]
    report = (tmp_path / "work/results/report.md").read_text()
    # SeekStorm has other matches, so it is not the best peer.
    assert "tantivy |  2.00 | 2.00 to 2.00" in report and "or-hh COUNT: sums of answers differ" in report
    assert "--work work" in report and "| tierdex " in report.split("## Indexing")[1]
    path = tmp_path / "work/results/search.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    assert search(*words) == 0
    assert sorted(line["cell"] for line in rows(tmp_path, "speed")) == sorted(line["cell"] for line in measured)
    # One set: its first pass, a warm-up, and the two batches that were missing.
    assert batches(tmp_path) == 30 + 3 + 3 + 2
    assert search(*words) == 0 and batches(tmp_path) == 38
    assert search(*words, "--seed", "2") == 2


def test_a_peer_that_does_not_run_in_the_limit_is_omitted(
    tmp_path: Path, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = machine.Group(1, tmp_path / "group")
    group.path.mkdir()
    (group.path / "memory.oom_control").write_text("oom_kill 1\n")

    monkeypatch.setattr(machine, "new_group", lambda *_: nullcontext(group))
    words = ["--engines", "tierdex,tantivy,seekstorm", "--limit", "50M", "--rounds", "2"]
    assert search(*words) == 0
    assert {row["rows"][0]["admitted"] for row in rows(tmp_path, "trial") if "random" in row["cell"]} == {False}
    assert len(rows(tmp_path, "speed")) == 2 * 2 * 2 * 2 and (group.path / "cgroup.procs").exists()
    report = (tmp_path / "work/results/report.md").read_text()
    assert "- tantivy random does not run in 52428800 bytes: killed: out of memory" in report
    assert "## Under the limit" in report and "seekstorm" not in report.split("## Queries")[1]
    assert search(*words) == 0 and batches(tmp_path) == 16


def test_each_part_of_the_text_becomes_a_segment(tmp_path: Path, search: Search) -> None:
    assert search("--engines", "tierdex,tantivy", "--segments", "2", "--own-variants", "--rounds", "1") == 0
    log = (tmp_path / "log").read_text().splitlines()
    # Two segments, and one for the variant; the peer makes its segments itself.
    assert log.count("tierdex index") == 3 and log.count("tierdex-peer-tantivy index") == 1
    assert sorted(path.name for path in (tmp_path / "work/indexes").glob("*.usage")) == [
        "tantivy-2.usage", "tierdex-2.usage", "tierdex.usage",
    ]  # fmt: skip
    assert not (tmp_path / "work/parts").exists()
    assert "tierdex k1 0.9 b 0.4" in (tmp_path / "work/results/report.md").read_text()


def test_a_tierdex_that_ends_fails_the_run(tmp_path: Path, search: Search, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tierdex-bench").write_text("#!/bin/sh\necho no index >&2\n")
    assert search("--engines", "tierdex") == 1
    assert capsys.readouterr().err.endswith("tierdex-bench: tierdex ended; its last line: no index\n")
