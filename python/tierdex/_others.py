"""What documents have beside their members, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Others:
    """Makes JSON of documents without the members that have these names."""

    __slots__ = ("names", "prefixes")

    def __init__(self, names: Iterable[str]) -> None:
        self.names: set[str] = set(names)
        paths = [name.split(".") for name in self.names]
        self.prefixes: set[str] = {".".join(path[:end]) for path in paths for end in range(1, len(path))}

    def __call__(self, document: Any, number: int) -> str:
        """The JSON of a document; an empty text if it has nothing else. ``number`` is for messages."""
        try:
            others = self._rest(dict(document), "")
            return json.dumps(others, ensure_ascii=False, allow_nan=False) if others else ""
        except (TypeError, ValueError, RecursionError) as error:
            message = f"document {number} has other members that cannot be stored as JSON: {error}"
            raise UsageError(message) from None

    def _rest(self, value: Any, prefix: str) -> Any:
        """The value without members; their names begin with ``prefix``."""
        if isinstance(value, list | tuple):
            return [rest for item in value if (rest := self._rest(item, prefix))]
        if not isinstance(value, Mapping):
            return value
        others = {}
        for key, item in value.items():
            name = f"{prefix}{key}"
            if name in self.prefixes:
                item = self._rest(item, f"{name}.")
            if name in self.names or (name in self.prefixes and not item) or _is_missing(item):
                continue
            others[key] = item
        return others


def _is_missing(value: Any) -> bool:
    """Whether a value is NaN or ``pandas.NA``, which JSON does not have."""
    return (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"
