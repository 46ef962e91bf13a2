"""Effectiveness: the package, ir_measures and the command agree."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import tierdex
from corpus import tierdex_command

MEASURES = ["nDCG@10", "AP@1000", "R@100"]

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]


@pytest.fixture
def judged() -> tuple[Run, Qrels]:
    """A run with many ties, and judgments; one query has no hits, one no relevant document."""
    choose = random.Random(1)
    qrels = {
        f"q{query}": {f"d{number}": choose.choice([0, 0, 1, 2]) for number in choose.sample(range(200), 20)}
        for query in range(30)
    }
    qrels["q3"] = dict.fromkeys(qrels["q3"], 0)
    run = {
        f"q{query}": {
            f"d{number}": round(choose.random() * 20) / 4 for number in choose.sample(range(200), 150)
        }
        for query in range(30)
        if query != 5
    }
    # Differences that are lost in the precision of a score.
    run["q7"] = {f"d{number}": 1.0 + number * 1e-9 for number in range(150)}
    return run, qrels


def write(folder: Path, run: Run, qrels: Qrels) -> tuple[Path, Path]:
    run_file, qrels_file = folder / "run", folder / "qrels"
    lines = [f"{q} Q0 {doc} 1 {score} tag\n" for q, found in run.items() for doc, score in found.items()]
    run_file.write_text("".join(lines))
    judgments = [f"{q} 0 {doc} {grade}\n" for q, of in qrels.items() for doc, grade in of.items()]
    qrels_file.write_text("".join(judgments))
    return run_file, qrels_file


def test_runs_and_judgments_in_all_forms(judged: tuple[Run, Qrels], tmp_path: Path) -> None:
    run, qrels = judged
    expected = tierdex.eval(run, qrels, MEASURES)
    assert list(expected) == MEASURES and all(0 < value < 1 for value in expected.values())
    run_file, qrels_file = write(tmp_path, run, qrels)
    assert tierdex.eval(run_file, str(qrels_file)) == pytest.approx(expected, abs=1e-12)
    rows = [(q, doc, score) for q, found in run.items() for doc, score in found.items()]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    assert tierdex.eval(frame, qrels) == pytest.approx(expected, abs=1e-12)


def test_the_command_agrees(judged: tuple[Run, Qrels], tmp_path: Path) -> None:
    command = tierdex_command()
    run_file, qrels_file = write(tmp_path, *judged)
    done = subprocess.run(
        [command, "eval", "--digits", "12", run_file, qrels_file], capture_output=True, text=True, check=True
    )
    queries, values = done.stdout.split(": ", 1)
    assert queries == "30 queries"
    found = {name: float(value) for name, value in (part.split() for part in values.split(", "))}
    assert found == pytest.approx(tierdex.eval(*judged), abs=1e-6)


def test_a_batch_is_evaluated(index: tierdex.Index) -> None:
    batch = index.search_batch({"q1": "word1 word2", "q2": "nothing-here"}, k=10)
    best = batch.to_dict()["q1"]
    qrels = {"q1": dict.fromkeys(list(best)[:3], 1), "q2": {"d1": 1}}
    assert tierdex.eval(batch, qrels, ["P@3"]) == {"P@3": 0.5}


def test_wrong_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(tierdex.MissingError, match="none"):
        tierdex.eval(tmp_path / "none", {})
    (tmp_path / "run").write_text("one two\n")
    with pytest.raises(tierdex.UsageError, match="not a TREC file"):
        tierdex.eval(tmp_path / "run", {"q": {"d": 1}})
    with pytest.raises(tierdex.UsageError, match="measure"):
        tierdex.eval({"q": {"d": 1.0}}, {"q": {"d": 1}}, ["nope@10"])
