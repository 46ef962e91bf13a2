"""Effectiveness of a run, through ir_measures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._errors import MissingError, UsageError
from ._tierdex import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Names of columns of data frames, of PyTerrier and of this package, and those of ir_measures.
_COLUMNS = {"qid": "query_id", "docno": "doc_id", "id": "doc_id", "label": "relevance"}


def eval(run: Any, qrels: Any, measures: Iterable[Any] = ("nDCG@10", "AP@1000", "R@100")) -> dict[str, float]:
    """Means of measures over the judged queries, through the package ``ir_measures``.

    ``run``: a :class:`Batch`, the path of a TREC run, a dict from query ids to dicts from document ids to
    scores, or a data frame with the columns qid, docno (or id) and score.
    ``qrels``: the path of TREC judgments, a dict from query ids to dicts from document ids to relevance, or a
    data frame with the columns qid, docno and label.
    ``measures``: names or measures of ``ir_measures``.

    Documents of equal score are ordered as ``trec_eval`` orders them, by descending id. The command
    ``tierdex eval`` has the same values.

    >>> eval({"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"b": 1}}, ["RR@10"])
    {'RR@10': 0.5}
    """
    try:
        import ir_measures
    except ImportError:
        raise UsageError("tierdex.eval needs the package ir_measures: pip install tierdex[eval]") from None
    try:
        parsed = [ir_measures.parse_measure(measure) for measure in measures]
    except (NameError, ValueError, SyntaxError) as error:
        raise UsageError(f"a measure is not one of ir_measures: {error}") from None
    if isinstance(run, Batch):
        run = run.to_dict()
    found = ir_measures.calc_aggregate(
        parsed, _read(qrels, ir_measures.read_trec_qrels), _read(run, ir_measures.read_trec_run)
    )
    return {str(measure): float(found[measure]) for measure in parsed}


def _read(source: Any, read_file: Any) -> Any:
    """A run or judgments in a form that ir_measures takes."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        try:
            with open(name, encoding="utf-8") as lines:
                return list(read_file(lines))
        except FileNotFoundError as error:
            raise MissingError(f"{name}: {error.strerror}", error.errno, str(name)) from None
        except (ValueError, IndexError) as error:
            raise UsageError(f"{name}: not a TREC file: {error}") from None
    if hasattr(source, "rename"):
        return source.rename(columns={old: new for old, new in _COLUMNS.items() if old in source.columns})
    return source
