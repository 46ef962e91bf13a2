"""Definitions: cells of layers of settings, claims, and errors that name the member."""

import tomllib
from pathlib import Path

import pytest

from tierdex_driver import definitions
from tierdex_driver.errors import Usage

TEXT = """
name = "paper"
title = "A paper"
settings = { k = 10, codec = "raw" }
scale.small = { docs = 100, rounds = 1 }
scale.full = { docs = 1000, rounds = 3 }
[[figure]]
name = "fig-1"
title = "A figure"
found = "something"
experiment = "queries"
scale.full = { size = [5, 10, 20] }
plot = { x = "size", x-label = "size", y = ["qps"], y-label = "queries a second", lines = ["mode"] }
[[figure.cells]]
settings = { mode = "base", size = [5, 10] }
[[figure.cells]]
settings = { mode = ["direct", "mapped"], size = 5, exhaustive = true, codec = [] }
[[figure.expect]]
claim = "base is slower"
paper = "0.5"
of = { mode = "base" }
to = { mode = "direct" }
at-most = 1.0
"""


def read(tmp_path: Path, text: str = TEXT) -> list[definitions.Figure]:
    path = tmp_path / "paper.toml"
    path.write_text(text)
    return definitions.read_file(path)


def test_cells_are_all_combinations_of_merged_settings(tmp_path: Path) -> None:
    figure = read(tmp_path)[0]
    assert [str(cell) for cell in figure.cells("small")] == [
        "queries codec=raw docs=100 k=10 mode=base size=5",
        "queries codec=raw docs=100 k=10 mode=base size=10",
        "queries docs=100 exhaustive=true k=10 mode=direct size=5",
        "queries docs=100 exhaustive=true k=10 mode=mapped size=5",
    ]
    # Settings of a group replace those of a scale of its figure.
    assert list(figure.cells("full").values()) == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("k = 10", "k = { a = 1 }", "`k` is neither"),
        ('name = "fig-1"', 'name = "fig-1"\nfond = "x"', "no member `fond`"),
        ('of = { mode = "base" }', 'of = { speed = "base" }', "`speed` is no dimension"),
        ("at-most = 1.0", "", "neither `at-least` nor"),
        ('experiment = "queries"', 'experiment = "cache"', "`experiment` is one of"),
        ('title = "A paper"', "title = ", "paper.toml"),
        ("rounds = 3", 'rounds = "x"', "`rounds` is x"),
        ('y = ["qps"]', 'y = "qps"', "`y` is 'qps', and must be a list"),
        ("at-most = 1.0", 'at-most = "x"', "`at-most` is 'x', and must be a number"),
        ("scale.small = { docs", "scale.tiny = { docs", "no member `tiny`"),
        ('of = { mode = "base" }', "of = 3", "`of` is 3, and must be a table"),
        ("[[figure.expect]]", "[figure.expect]", "`expect` is"),
        ('["direct", "mapped"]', '"base"', "cells differ in codec, exhaustive only"),
    ],
)
def test_a_malformed_definition_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(Usage) as error:
        read(tmp_path, TEXT.replace(old, new))[0].cells("small")
    assert words in str(error.value)


def test_all_definitions_are_read_and_selected_by_name() -> None:
    figures = definitions.read_all()
    assert sum(not figure.is_control for figure in figures) == 70
    for scale in definitions.SCALES:
        assert all(figure.cells(scale) for figure in figures)
    assert len(definitions.select(figures, ("apcache/fig-8.3", "apcache/fig-8.3"))) == 1
    with pytest.raises(Usage, match="`apcache/fig-9`"):
        definitions.select(figures, ("apcache/fig-9",))


def test_every_bound_is_that_of_the_committed_list_with_its_reason() -> None:
    listed = tomllib.loads((definitions.DIRECTORY.parent / "bounds.toml").read_text())["bound"]
    expected = [
        {"figure": figure.name, "claim": claim.text, "paper": claim.paper, "condition": claim.condition()}
        for figure in definitions.read_all()
        for claim in figure.claims
    ]
    assert [{name: bound[name] for name in bound if name != "reason"} for bound in listed] == expected
    assert all(bound["reason"] for bound in listed)


def test_the_example_of_the_guide_is_a_definition_of_at_most_40_lines() -> None:
    path = Path(__file__).parent.parent / "examples" / "hits.toml"
    assert len(path.read_text().splitlines()) <= 40
    assert len(definitions.read_file(path)[0].cells("small")) == 8
