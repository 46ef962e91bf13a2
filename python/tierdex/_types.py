"""Types of arguments; imported by type checkers alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

#: Text, terms as they are in the index, or weights of terms.
Query = str | Sequence[str] | Mapping[str, float]
Syntax = Literal["query", "lenient", "terms"]
Scorer = Literal["bm25", "dot"]
Refresh = Literal["auto", "manual"]
Path = str | os.PathLike[str]
#: Whether to show progress, or a function of what is done and of the total.
Progress = bool | Callable[[int, int | None], object]
Tokenizer = Literal["unicode", "alphanumeric", "whitespace"]
Norms = Literal["byte", "exact"]
