"""PyTerrier: the official transformer test, frames, pipelines, experiments."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP, nDCG

import tierdex
from corpus import WORDS, documents
from tierdex.pyterrier import TierdexIndex


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> TierdexIndex:
    index = TierdexIndex(tmp_path_factory.mktemp("pyterrier") / "index", threads=2)
    docs = [{"docno": doc["id"], "title": doc["title"], "text": doc["text"]} for doc in documents(500)]
    assert not index.built()
    assert index.index(iter(docs)) is index and index.built() and len(index) == 500
    return index


TOPICS = pd.DataFrame(
    {"qid": ["q1", "q2", "q1"], "query": ["word1 word2", "nothinghere", "word3"], "more": [1, 2, 3]}
)


def test_the_official_test_of_transformers(small: TierdexIndex) -> None:
    import unittest

    suite = unittest.TestSuite()
    for make in (small.bm25, small.dot, small.text_loader):
        case = pt.testing.transformer_test_class(make)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = unittest.TestResult()
    suite.run(result)
    assert result.wasSuccessful() and result.testsRun == 6, result.failures + result.errors


def test_frames(small: TierdexIndex) -> None:
    retriever = small.bm25(num_results=7)
    out = retriever(TOPICS)
    assert list(out.columns) == ["qid", "query", "more", "docno", "docid", "score", "rank"]
    assert out.groupby("more").size().to_dict() == {1: 7, 3: 7}
    assert out["rank"].tolist() == list(range(7)) * 2
    hits = small.opened.search("word1 word2", k=7)
    assert out["docno"].tolist()[:7] == hits.ids and (out["score"][:7] == hits.scores).all()
    # Empty frames keep the columns.
    empty = retriever(TOPICS[:0])
    assert empty.empty and list(empty.columns) == list(out.columns)
    none = retriever(TOPICS[1:2])
    assert none.empty and list(none.columns) == list(out.columns)
    for wrong in (pd.DataFrame({"qid": ["1"]}), out):
        with pytest.raises(pt.validate.InputValidationError):
            retriever(wrong)
    toks = pd.DataFrame({"qid": ["1"], "query_toks": [{"word1": 1.0, "word2": 1.0}]})
    assert small.bm25(num_results=7)(toks)["docno"].tolist() == hits.ids
    assert len(small.bm25(syntax="query").search("+word1 +word2 +word3")) < len(small.bm25().search("word1"))


def test_rank_cutoffs_are_fused(small: TierdexIndex) -> None:
    retriever = small.bm25()
    fused = (retriever % 3).compile()
    assert fused.num_results == 3 and len(fused.search("word1")) == 3
    assert retriever.fuse_rank_cutoff(5000) is retriever


def test_texts_are_loaded(small: TierdexIndex) -> None:
    texts = {f"d{i}": str(doc["text"]) for i, doc in enumerate(documents(500))}
    found = (small.bm25(num_results=5) >> small.text_loader(["text", "title"]))(TOPICS)
    assert found["text"].tolist() == [texts[docno] for docno in found["docno"]]
    assert found["title"].str.startswith("title ").all()
    by_docno = small.text_loader()(found[["qid", "docno"]])
    assert by_docno["text"].tolist() == found["text"].tolist()
    assert [doc["text"] for doc in small.get_corpus_iter()] == list(texts.values())
    with pytest.raises(tierdex.UsageError, match="body"):
        small.text_loader(["body"])


def test_it_is_an_artifact(small: TierdexIndex, tmp_path: Path) -> None:
    loaded = pt.Artifact.load(str(small.path))
    assert isinstance(loaded, TierdexIndex) and len(loaded) == 500
    retriever = pickle.loads(pickle.dumps(small.bm25(num_results=3)))
    assert retriever(TOPICS).equals(small.bm25(num_results=3)(TOPICS))
    with pytest.raises(tierdex.UsageError, match="holds an index already"):
        TierdexIndex(small.path).index([])
    with pytest.raises(tierdex.UsageError, match='has no "text", but "body"'):
        TierdexIndex(tmp_path / "wrong").index([{"docno": "a", "body": "x"}])
    fresh = TierdexIndex(tmp_path / "i", overwrite=True)
    fresh.index([{"docno": "a", "text": "x"}])
    assert len(fresh.index([{"docno": 1, "text": "x"}, {"docno": 2, "text": None}])) == 2


def test_weights_of_terms_are_indexed(tmp_path: Path) -> None:
    choose = random.Random(5)
    toks = [
        {"docno": f"d{i}", "toks": {w: choose.random() for w in choose.sample(WORDS, 12)}} for i in range(50)
    ]
    index = TierdexIndex(tmp_path / "i")
    index.toks_indexer(scale=10).index(toks)
    terms = {term.term: term for term in index.opened.terms()}
    for word in WORDS[:50]:
        weights = [round(doc["toks"].get(word, 0) * 10) for doc in toks]
        assert (terms[word].occurrences if word in terms else 0) == sum(weights)
    query = {word: choose.random() for word in choose.sample(WORDS, 20)}
    found = index.dot(num_results=50)(pd.DataFrame({"qid": ["1"], "query_toks": [query]}))
    expected = {
        doc["docno"]: sum(
            query[word] * round(weight * 10) for word, weight in doc["toks"].items() if word in query
        )
        for doc in toks
    }
    assert found.set_index("docno")["score"].to_dict() == pytest.approx(
        {docno: score for docno, score in expected.items() if score > 0}, rel=1e-6
    )
    with pytest.raises(tierdex.UsageError, match="white space"):
        TierdexIndex(tmp_path / "j").toks_indexer().index([{"docno": "a", "toks": {"a b": 1.0}}])


def test_indexes_are_exchanged(small: TierdexIndex, tmp_path: Path) -> None:
    report = small.to_ciff(tmp_path / "index.ciff.gz")
    assert report.documents == 500
    copy = TierdexIndex.from_ciff(tmp_path / "index.ciff.gz", tmp_path / "copy")
    assert copy.bm25(num_results=20)(TOPICS).equals(small.bm25(num_results=20)(TOPICS))
    assert isinstance(pt.Artifact.load(str(tmp_path / "copy")), TierdexIndex)


def test_an_experiment(small: TierdexIndex) -> None:
    topics = TOPICS[:2]
    best = small.bm25()(topics)
    qrels = best[best["rank"] < 3][["qid", "docno"]].assign(label=1)
    table = pt.Experiment(
        [small.bm25(), small.bm25(k1=0.0)], topics, qrels, [nDCG @ 10, AP, "mrt"], names=["default", "k1=0"]
    )
    assert table["nDCG@10"][0] == pytest.approx(1.0) and (table["mrt"] > 0).all()


def test_a_grid_search(small: TierdexIndex) -> None:
    topics = TOPICS[:2]
    best = small.bm25(k1=0.4, b=0.1)(topics)
    qrels = best[best["rank"] < 20][["qid", "docno"]].assign(label=1)
    retriever = small.bm25()
    values = {"k1": [0.4, 1.2, 5.0], "b": [0.1, 0.9]}
    tuned, measure, found = pt.GridSearch(
        retriever, {retriever: values}, topics, qrels, "map", return_type="both"
    )
    assert measure == pytest.approx(1.0)
    assert sorted((name, value) for _, name, value in found) == [("b", 0.1), ("k1", 0.4)]
    assert tuned(topics)["docno"].tolist() == best["docno"].tolist()
    # Retrievers of other parameters have other names.
    names = {repr(small.bm25(k1=k1, b=b)) for k1 in values["k1"] for b in values["b"]}
    assert len(names) == 6 and all("k1=" in name and "b=" in name for name in names)
    for name in ("k1", "b", "num_results", "syntax"):
        retriever.set_parameter(name, retriever.get_parameter(name))
