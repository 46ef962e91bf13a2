"""The schema of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _tierdex
from ._arguments import text
from ._errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from ._types import Norms, Source, Tokenizer

    _FieldTuple = tuple[str, str, str, bool, list[str], str | None, bool, str, str, str]


class Text:
    """A text field: what it indexes, and how text becomes terms.

    ``source``: the part of a document that is indexed: ``"title and text"``, ``"title"`` or ``"text"``.
    ``stem``: the language of the Snowball stemmer, such as ``"english"``.
    ``stop_words``: ``"english"``, or words that are not indexed.
    ``fold_accents``: whether ``é`` is indexed as ``e``.
    ``tokenizer``: ``"unicode"`` takes words of all languages with their marks, in lower case and normalization
    form C; of text without blanks (Chinese, Japanese, Thai, Lao, Khmer, Burmese) it takes the bigrams: each two
    neighbouring characters, and the last one. In a query a run of such text is a phrase if the field has
    positions; without them all its bigrams are required, in any order. ``"alphanumeric"`` takes runs of
    letters and digits, in lower case; ``"whitespace"`` takes runs of other characters than white space as
    they are.
    ``positions``: whether phrases can be searched; the index grows.
    ``norms``: the precision of document lengths, ``"byte"`` (exact below 128) or ``"exact"``.
    ``codec`` and ``freq_codec``: codecs of document numbers and of frequencies.

    >>> Text(stem="english")
    Text(stem='english')
    """

    __slots__ = (
        "codec",
        "fold_accents",
        "freq_codec",
        "norms",
        "positions",
        "source",
        "stem",
        "stop_words",
        "tokenizer",
    )

    def __init__(
        self,
        *,
        source: Source = "title and text",
        stem: str | None = None,
        stop_words: Literal["english"] | Iterable[str] | None = None,
        fold_accents: bool = False,
        tokenizer: Tokenizer = "unicode",
        positions: bool = False,
        norms: Norms = "byte",
        codec: str = "auto",
        freq_codec: str = "pfor256",
    ) -> None:
        if isinstance(stop_words, str) and stop_words != "english":
            raise UsageError(f'stop_words is {stop_words!r}; it is "english" or a list of words')
        self.source: Source = source
        self.stem: str | None = stem
        self.stop_words: tuple[str, ...] = (
            tuple(_tierdex._ENGLISH_STOP_WORDS) if stop_words == "english" else tuple(stop_words or ())
        )
        self.fold_accents: bool = fold_accents
        self.tokenizer: Tokenizer = tokenizer
        self.positions: bool = positions
        self.norms: Norms = norms
        self.codec: str = codec
        self.freq_codec: str = freq_codec

    def _tuple(self, name: str) -> _FieldTuple:
        return (
            text("field", name),
            text("source", self.source),
            text("tokenizer", self.tokenizer),
            self.fold_accents,
            [text("stop word", word) for word in self.stop_words],
            None if self.stem is None else text("stem", self.stem),
            self.positions,
            text("norms", self.norms),
            text("codec", self.codec),
            text("freq_codec", self.freq_codec),
        )

    @staticmethod
    def _of(field: Any) -> Text:
        _, source, tokenizer, fold_accents, stop_words, stem, positions, norms, codec, freq_codec = field
        return Text(
            source=source,
            stem=stem,
            stop_words=stop_words,
            fold_accents=fold_accents,
            tokenizer=tokenizer,
            positions=positions,
            norms=norms,
            codec=codec,
            freq_codec=freq_codec,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self._tuple("") == other._tuple("")

    def __repr__(self) -> str:
        default = Text()
        names = [name for name in self.__slots__ if getattr(self, name) != getattr(default, name)]
        return f"Text({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Schema:
    """The fields of an index, and whether title and text are stored for display.

    The first field is searched by default; queries name the others (``title:disk``).

    >>> schema = Schema(text=Text(stem="english", positions=True), title=Text(source="title"))
    >>> list(schema.fields)
    ['text', 'title']
    """

    __slots__ = ("fields", "stored")

    def __init__(
        self, fields: Mapping[str, Text] | None = None, /, *, stored: bool = True, **more: Text
    ) -> None:
        self.fields: dict[str, Text] = {**(fields or {}), **more} or {"text": Text()}
        self.stored: bool = stored
        for name, field in self.fields.items():
            if not isinstance(field, Text):
                raise UsageError(f"field {name!r} is a {type(field).__name__}, not a tierdex.Text")

    def _tuples(self) -> list[_FieldTuple]:
        return [field._tuple(name) for name, field in self.fields.items()]

    @staticmethod
    def _of(schema: Any) -> Schema:
        fields, stored = schema
        return Schema({field[0]: Text._of(field) for field in fields}, stored=stored)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Schema)
            and list(self.fields.items()) == list(other.fields.items())
            and self.stored == other.stored
        )

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={field!r}" for name, field in self.fields.items())
        return f"Schema({fields}{'' if self.stored else ', stored=False'})"
