# %% [markdown]
# # A PyTerrier experiment on a judged collection
#
# Compares parameters of BM25 by nDCG@10, and plots them.
#
# `python pyterrier_experiment.py [COLLECTION] [PLOT]`. A collection is a folder with `docs.jsonl` (members
# `id`, `title`, `text`), `queries.tsv` (id, tab, text) and `qrels.txt` (TREC judgments). Without one, a small
# collection is made of random words. It needs `pyterrier` and `matplotlib`.

# %%
from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import pyterrier as pt
from ir_measures import AP, R, nDCG

from tierdex.pyterrier import TierdexIndex

matplotlib.use("agg")
import matplotlib.pyplot as plt

work = Path(tempfile.mkdtemp(prefix="tierdex-notebook-"))
plot = Path(sys.argv[2]) if len(sys.argv) > 2 else work / "ndcg.svg"


# %%
def read(folder: Path) -> tuple[list[dict[str, Any]], pd.DataFrame, pd.DataFrame]:
    """Documents, topics and judgments of a collection."""
    docs = [json.loads(line) for line in (folder / "docs.jsonl").open(encoding="utf-8")]
    topics = pd.read_csv(folder / "queries.tsv", sep="\t", names=["qid", "query"], dtype=str, quoting=3)
    names = ["qid", "iteration", "docno", "label"]
    qrels = pd.read_csv(folder / "qrels.txt", sep=r"\s+", names=names, dtype={"qid": str, "docno": str})
    return docs, topics, qrels[["qid", "docno", "label"]]


def made_up(subjects: int = 20) -> tuple[list[dict[str, Any]], pd.DataFrame, pd.DataFrame]:
    """Documents about a subject contain its words more often; queries are two of these words."""
    choose, common = random.Random(7), [f"common{number}" for number in range(300)]
    docs, topics, qrels = [], [], []
    for subject in range(subjects):
        words = [f"subject{subject}word{number}" for number in range(5)]
        topics.append({"qid": str(subject), "query": " ".join([*words[:2], *choose.sample(common, 2)])})
        for number in range(40):
            about = choose.choices(words, k=choose.randrange(0, 6))
            text = choose.choices(common, k=choose.randrange(10, 200)) + about
            choose.shuffle(text)
            docs.append({"id": f"{subject}-{number}", "title": "", "text": " ".join(text)})
            qrels.append({"qid": str(subject), "docno": docs[-1]["id"], "label": int(len(about) > 2)})
    return docs, pd.DataFrame(topics), pd.DataFrame(qrels)


docs, topics, qrels = read(Path(sys.argv[1])) if len(sys.argv) > 1 else made_up()

# %% [markdown]
# ## Index
#
# The indexer takes dicts with `docno`, `title` and `text`.

# %%
index = TierdexIndex(work / "index")
index.index({"docno": doc["id"], "title": doc["title"], "text": doc["text"]} for doc in docs)
print(f"{len(index)} documents, {len(topics)} topics")

# %% [markdown]
# ## Experiment
#
# Block max scores are stored for k1 = 1.2 and b = 0.75; they are safe for all other values.

# %%
parameters = [(k1, b) for k1 in (0.6, 0.9, 1.2, 2.0) for b in (0.0, 0.4, 0.75, 1.0)]
table = pt.Experiment(
    [index.bm25(k1=k1, b=b) for k1, b in parameters],
    topics,
    qrels,
    [nDCG @ 10, AP @ 1000, R @ 100, "mrt"],
    names=[f"k1={k1} b={b}" for k1, b in parameters],
)
print(table.to_string(index=False, float_format="%.4f"))

# %% [markdown]
# ## Plot

# %%
figure, axes = plt.subplots(figsize=(6, 4))
for k1 in dict.fromkeys(k1 for k1, _ in parameters):
    rows = [number for number, pair in enumerate(parameters) if pair[0] == k1]
    axes.plot(
        [parameters[number][1] for number in rows], table["nDCG@10"][rows], marker="o", label=f"k1 = {k1}"
    )
axes.set_xlabel("b")
axes.set_ylabel("nDCG@10")
axes.legend()
figure.tight_layout()
figure.savefig(plot)
print(f"plot: {plot}")
