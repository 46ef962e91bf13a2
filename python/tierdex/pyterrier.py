"""tierdex in PyTerrier experiments: an indexer, retrievers, a text loader, an artifact.

>>> import pandas as pd
>>> from tierdex.pyterrier import TierdexIndex
>>> index = TierdexIndex("my-index")
>>> _ = index.index([{"docno": "d1", "text": "solid state disk"}, {"docno": "d2", "text": "hard disk"}])
>>> index.bm25(num_results=1).search("hard").docno.tolist()
['d2']
>>> (index.bm25() % 1 >> index.text_loader()).search("disk").text.tolist()
['hard disk']
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from . import Index, Schema, Text, UsageError, ciff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from ._types import Progress, Scorer, Syntax

__all__ = ["TierdexIndex", "TierdexIndexer", "TierdexRetriever", "TierdexTextLoader"]

#: Columns that a retriever makes besides docno: those of its input with these names are dropped.
_RESULT_COLUMNS = ("docid", "score", "rank")


class TierdexIndex(pt.Artifact, pt.Indexer):
    """An index on disk, as a PyTerrier artifact and indexer.

    ``schema``, ``memory`` and ``overwrite`` are those of :meth:`tierdex.Index.create` and
    :meth:`tierdex.Index.writer`; ``dram``, ``threads`` and ``hits_max`` those of
    :meth:`tierdex.Index.open`. The default schema has one field of title and text, which are stored.
    """

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "tierdex"

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        schema: Schema | None = None,
        memory: int | str = "1G",
        overwrite: bool = False,
        dram: int | str | None = None,
        threads: int | None = None,
        hits_max: int = 1000,
    ) -> None:
        super().__init__(os.fspath(path))
        self._directory = os.fspath(path)
        self.schema = schema
        self.memory = memory
        self.overwrite = overwrite
        self.options: dict[str, Any] = {"dram": dram, "threads": threads, "hits_max": hits_max}
        self._opened: Index | None = None

    @property
    def opened(self) -> Index:
        """The index, opened."""
        if self._opened is None:
            self._opened = Index.open(self._directory, **self.options)
        return self._opened

    def built(self) -> bool:
        """Whether there is an index at the path."""
        return any(Path(self._directory).glob("manifest-*"))

    def __len__(self) -> int:
        return len(self.opened)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"TierdexIndex({self._directory!r})"

    def index_inputs(self) -> list[list[str]]:
        """The columns of documents."""
        return [["docno", "text"], ["docno", "title", "text"]]

    def index(self, iter: Iterable[dict[str, Any]], *, progress: Progress = False, **_: Any) -> TierdexIndex:
        """Index documents: dicts with ``docno``, ``text`` and optionally ``title``."""
        return self._build(iter, self.schema or Schema(), progress)

    def _build(self, documents: Any, schema: Schema, progress: Progress) -> TierdexIndex:
        self._opened = Index.create(self._directory, schema, overwrite=self.overwrite, **self.options)
        with self._opened.writer(memory=self.memory, threads=self.options["threads"], merge=True) as writer:
            writer.add_many(documents, id="docno", progress=progress)
        self._write_metadata()
        return self

    def _write_metadata(self) -> None:
        metadata = {
            "type": self.ARTIFACT_TYPE,
            "format": self.ARTIFACT_FORMAT,
            "package_hint": "tierdex[pyterrier]",
        }
        (Path(self._directory) / "pt_meta.json").write_text(json.dumps(metadata))

    def toks_indexer(self, scale: float = 100.0) -> TierdexIndexer:
        """An indexer of documents with ``toks``, dicts from terms to weights (learned sparse models).

        A weight times ``scale``, rounded, is the frequency of the term; terms that round to 0 are left out.
        Search with :meth:`dot`, whose scores are ``scale`` times the inner products.
        """
        return TierdexIndexer(self, scale)

    def bm25(
        self,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        num_results: int = 1000,
        syntax: Syntax = "terms",
        verbose: bool = False,
    ) -> TierdexRetriever:
        """A retriever that ranks by BM25: ``query`` in ``syntax``, or ``query_toks``.

        The defaults of ``k1`` and ``b`` are those for which the index has its tightest bounds, and differ
        from the 0.9 and 0.4 of PISA and Anserini.
        """
        return TierdexRetriever(
            self, "bm25", num_results=num_results, k1=k1, b=b, syntax=syntax, verbose=verbose
        )

    def dot(self, *, num_results: int = 1000, verbose: bool = False) -> TierdexRetriever:
        """A retriever that ranks by the sum of query weight times frequency, for learned sparse models and
        quantised impacts: ``query_toks``, or the words of ``query``, each with weight 1.
        """
        return TierdexRetriever(self, "dot", num_results=num_results, verbose=verbose)

    @classmethod
    def from_ciff(
        cls, file: str | PathLike[str], path: str | PathLike[str], schema: Schema | None = None, **options: Any
    ) -> TierdexIndex:
        """Write an index from a CIFF file; see :func:`tierdex.ciff.import_`. ``options`` are those of the
        class.
        """
        index = cls(path, schema=schema, **options)
        ciff.import_(file, path, schema, overwrite=index.overwrite).close()
        index._write_metadata()
        return index

    def to_ciff(
        self, file: str | PathLike[str], *, field: str | None = None, description: str = ""
    ) -> ciff.Report:
        """Write a field to a CIFF file; see :func:`tierdex.ciff.export`."""
        return ciff.export(self.opened, file, field=field, description=description)

    def text_loader(self, fields: Iterable[str] = ("text",)) -> TierdexTextLoader:
        """A transformer that adds ``text`` or ``title`` of the documents of a result frame."""
        return TierdexTextLoader(self, list(fields))

    def get_corpus_iter(self, *, batch: int = 1000) -> Iterator[dict[str, Any]]:
        """Iterate over the stored documents, as dicts with ``docno``, ``title`` and ``text``."""
        for start in range(0, len(self), batch):
            for document in self.opened.documents(range(start, min(start + batch, len(self)))):
                yield {"docno": document.id, "title": document.title, "text": document.text}


class TierdexIndexer(pt.Indexer):
    """Indexes documents by the weights of their terms; see :meth:`TierdexIndex.toks_indexer`."""

    def __init__(self, index: TierdexIndex, scale: float) -> None:
        super().__init__()
        self.target = index
        self.scale = scale

    def index_inputs(self) -> list[list[str]]:
        """The columns of documents."""
        return [["docno", "toks"]]

    def index(self, iter: Iterable[dict[str, Any]], *, progress: Progress = False, **_: Any) -> TierdexIndex:
        """Index documents: dicts with ``docno`` and ``toks``."""
        schema = Schema(text=Text(tokenizer="whitespace", norms="exact"), stored=False)
        documents = ({"docno": document["docno"], "text": self._text(document)} for document in iter)
        return self.target._build(documents, schema, progress)

    def _text(self, document: dict[str, Any]) -> str:
        words: list[str] = []
        for term, weight in document["toks"].items():
            if not term or any(map(str.isspace, term)):
                raise UsageError(f"term {term!r} of document {document['docno']!r} is empty or has white space")
            words.extend([term] * round(weight * self.scale))
        return " ".join(words)


class TierdexRetriever(pt.Transformer):
    """Finds documents for the queries of a frame; see :meth:`TierdexIndex.bm25`.

    ``num_results``, ``k1``, ``b`` and ``syntax`` are its parameters: ``pt.GridSearch`` and
    ``set_parameter`` change them, and its name has them.
    """

    def __init__(
        self,
        index: TierdexIndex,
        scorer: Scorer,
        *,
        num_results: int = 1000,
        k1: float = 1.2,
        b: float = 0.75,
        syntax: Syntax = "terms",
        verbose: bool = False,
    ) -> None:
        super().__init__()
        self.index = index
        self.scorer: Scorer = scorer
        self.num_results = num_results
        self.k1 = k1
        self.b = b
        self.syntax: Syntax = syntax
        self.verbose = verbose

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add ``docno``, ``docid``, ``score`` and ``rank`` (from 0) to each query; its other columns stay.

        A frame with ``query_toks`` is searched by these.
        """
        with pt.validate.any(inp, context=self) as mode:
            mode.query_frame(extra_columns=["query_toks"], mode="query_toks")
            mode.query_frame(extra_columns=["query"], mode="query")
        inp = inp.drop(columns=[name for name in _RESULT_COLUMNS if name in inp.columns])
        column = "query_toks" if "query_toks" in inp.columns else "query"
        batch = self.index.opened.search_batch(
            inp[column].tolist(),
            self.num_results,
            syntax=self.syntax,
            scorer=self.scorer,
            k1=self.k1,
            b=self.b,
            progress=self.verbose,
        )
        counts = np.diff(batch.offsets)
        rows = np.repeat(np.arange(len(inp)), counts)
        out = inp.iloc[rows].reset_index(drop=True)
        out["docno"] = pd.Series(batch.ids().to_list(), dtype=str)
        out["docid"] = batch.documents.astype(np.int64)
        out["score"] = batch.scores.astype(np.float64)
        out["rank"] = np.arange(len(rows)) - np.repeat(batch.offsets[:-1], counts)
        return out

    def fuse_rank_cutoff(self, k: int) -> TierdexRetriever:
        """The retriever followed by a rank cut-off: it finds fewer documents in the first place."""
        if k >= self.num_results:
            return self
        fused = copy.copy(self)
        fused.num_results = k
        return fused

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """The label in drawings of pipelines."""
        return {"label": f"tierdex {self.scorer}", "help_url": ""}

    def __repr__(self) -> str:
        names = ["k1", "b", "syntax"] if self.scorer == "bm25" else []
        parameters = [f"{name}={getattr(self, name)!r}" for name in (*names, "num_results")]
        return f"{self.index!r}.{self.scorer}({', '.join(parameters)})"


class TierdexTextLoader(pt.Transformer):
    """Adds stored title or text to documents; see :meth:`TierdexIndex.text_loader`."""

    def __init__(self, index: TierdexIndex, fields: list[str]) -> None:
        super().__init__()
        unknown = [field for field in fields if field not in ("text", "title")]
        if unknown:
            raise UsageError(f"the index stores title and text, not {', '.join(unknown)}")
        self.index = index
        self.fields = fields

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the fields: by ``docid`` if the frame has it, else by ``docno``, reading all ids once."""
        with pt.validate.any(inp, context=self) as mode:
            mode.columns(includes=["docid"], mode="docid")
            mode.columns(includes=["docno"], mode="docno")
        opened = self.index.opened
        if "docid" in inp.columns:
            found: list[Any] = list(opened.documents(inp["docid"]))
        else:
            found = opened.get_many(inp["docno"])
        values = {field: [getattr(document, field, None) for document in found] for field in self.fields}
        return inp.assign(**{field: pd.Series(values[field], inp.index, dtype=str) for field in self.fields})

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """The label in drawings of pipelines."""
        return {"label": "tierdex text", "help_url": ""}

    def __repr__(self) -> str:
        return f"{self.index!r}.text_loader({self.fields!r})"
