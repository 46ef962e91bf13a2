"""The schema of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _tierdex
from ._arguments import text
from ._errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from ._types import Norms, Tokenizer

    _FieldTuple = tuple[str, list[str], str, bool, list[str], str | None, bool, str, str, str, list[str]]
    _SchemaTuple = tuple[list[str], str | None, list[_FieldTuple], str]

#: What is stored of documents, and the name of it in the native part.
_STORED: dict[bool | str, str] = {False: "nothing", True: "members", "all": "all"}


class Text:
    """A text field: what it indexes, and how text becomes terms.

    ``members``: the names of the members of a document that are indexed, in this order. A name may be a path
    into nested dicts and lists of dicts: ``"headers.subject"``. By default it is the member that has the name
    of the field; a field ``text`` has ``title`` and ``text``.
    ``stem``: the language of the Snowball stemmer, such as ``"english"``.
    ``stop_words``: ``"english"``, or words that are not indexed.
    ``synonyms``: rules for queries in the format of Solr, ``["tv, television", "telly => tv"]``; a writer
    changes them by ``add_fields``.
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
        "members",
        "norms",
        "positions",
        "stem",
        "stop_words",
        "synonyms",
        "tokenizer",
    )

    def __init__(
        self,
        *,
        members: Iterable[str] | None = None,
        stem: str | None = None,
        stop_words: Literal["english"] | Iterable[str] | None = None,
        synonyms: Iterable[str] | None = None,
        fold_accents: bool = False,
        tokenizer: Tokenizer = "unicode",
        positions: bool = False,
        norms: Norms = "byte",
        codec: str = "auto",
        freq_codec: str = "pfor256",
    ) -> None:
        if isinstance(stop_words, str) and stop_words != "english":
            raise UsageError(f'stop_words is {stop_words!r}; it is "english" or a list of words')
        self.members: tuple[str, ...] | None = None if members is None else _names(members)
        self.stem: str | None = stem
        self.stop_words: tuple[str, ...] = (
            tuple(_tierdex._ENGLISH_STOP_WORDS) if stop_words == "english" else tuple(stop_words or ())
        )
        if isinstance(synonyms, str):
            raise UsageError(f"synonyms is {synonyms!r}; it is a list of rules, such as [{synonyms!r}]")
        self.synonyms: tuple[str, ...] = tuple(synonyms or ())
        self.fold_accents: bool = fold_accents
        self.tokenizer: Tokenizer = tokenizer
        self.positions: bool = positions
        self.norms: Norms = norms
        self.codec: str = codec
        self.freq_codec: str = freq_codec

    def _members(self, name: str) -> tuple[str, ...]:
        """The members of a field with this name."""
        if self.members is not None:
            return self.members
        return ("title", "text") if name == "text" else (name,)

    def _tuple(self, name: str) -> _FieldTuple:
        return (
            text("field", name),
            [text("member", member) for member in self._members(name)],
            text("tokenizer", self.tokenizer),
            self.fold_accents,
            [text("stop word", word) for word in self.stop_words],
            None if self.stem is None else text("stem", self.stem),
            self.positions,
            text("norms", self.norms),
            text("codec", self.codec),
            text("freq_codec", self.freq_codec),
            [text("synonym", rule) for rule in self.synonyms],
        )

    @staticmethod
    def _of(field: Any) -> Text:
        (
            name,
            members,
            tokenizer,
            fold_accents,
            stop_words,
            stem,
            positions,
            norms,
            codec,
            freq_codec,
            synonyms,
        ) = field
        return Text(
            members=None if tuple(members) == Text()._members(name) else members,
            stem=stem,
            stop_words=stop_words,
            synonyms=synonyms,
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
    """The fields of an index, and what is shown and stored of documents.

    ``title``: the member that is shown as the title of hits; ``None`` if there is none.
    ``stored``: ``True`` stores the members of the schema, for titles, snippets and :class:`Document`; ``"all"``
    stores what documents have beside them too (:attr:`Document.others`); ``False`` stores nothing.
    ``members``: the names of members that are stored though no field indexes them and they are not the title.
    In the schema of an index to which fields were added, also those that it had before: their order counts.

    The first field is searched by default; queries name the others (``subject:disk``). A field that has the
    name of an option is given in a dict.

    >>> schema = Schema(text=Text(stem="english", positions=True), author=Text())
    >>> list(schema.fields)
    ['text', 'author']
    >>> schema = Schema({"body": Text(), "title": Text(), "list": Text(members=["headers.list-id"])})
    """

    __slots__ = ("fields", "members", "stored", "title")

    def __init__(
        self,
        fields: Mapping[str, Text] | None = None,
        /,
        *,
        title: str | None = "title",
        stored: bool | Literal["all"] = True,
        members: Iterable[str] = (),
        **more: Text,
    ) -> None:
        for name, option in (("title", title), ("stored", stored), ("members", members)):
            if isinstance(option, Text):
                raise UsageError(
                    f"{name} is a tierdex.Text: give a field of this name in a dict, {{{name!r}: Text()}}"
                )
        if not (title is None or isinstance(title, str)):
            raise UsageError(f"title is a {type(title).__name__}; it is the name of a member, or None")
        if not isinstance(stored, bool) and stored != "all":
            raise UsageError(f'stored is {stored!r}; it is True, False or "all"')
        self.fields: dict[str, Text] = {**(fields or {}), **more} or {"text": Text()}
        self.members: tuple[str, ...] = _names(members)
        self.title: str | None = title
        self.stored: bool | Literal["all"] = stored
        field_tuples(self.fields)

    def _tuple(self) -> _SchemaTuple:
        members = [text("member", member) for member in self.members]
        title = None if self.title is None else text("title", self.title)
        return members, title, field_tuples(self.fields), _STORED[self.stored]

    @staticmethod
    def _of(schema: Any) -> Schema:
        members, title, fields, stored = schema
        kept: Any = next(kind for kind, name in _STORED.items() if name == stored)
        named = {field[0]: Text._of(field) for field in fields}
        return Schema(named, title=title, stored=kept, members=members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._tuple() == other._tuple()

    def __repr__(self) -> str:
        title = "" if self.title == "title" else f", title={self.title!r}"
        stored = "" if self.stored is True else f", stored={self.stored!r}"
        members = f", members={self.members!r}" if self.members else ""
        return f"Schema({self.fields!r}{title}{stored}{members})"


def field_tuples(fields: Mapping[str, Text]) -> list[_FieldTuple]:
    """Fields as the native part takes them."""
    for name, field in fields.items():
        if not isinstance(field, Text):
            raise UsageError(f"field {name!r} is a {type(field).__name__}, not a tierdex.Text")
    return [field._tuple(name) for name, field in fields.items()]


def _names(members: Iterable[str]) -> tuple[str, ...]:
    """A list of names of members, which is not a name itself."""
    if isinstance(members, str):
        raise UsageError(f"members is {members!r}; it is a list of names, such as [{members!r}]")
    return tuple(members)
