"""The commands in the documents exist, with their flags and their files."""

import re
from pathlib import Path

from tierdex_driver.cli import main
from tierdex_driver.definitions import read_file

ROOT = Path(__file__).parents[3]


def test_commands_and_flags_in_the_documents_exist() -> None:
    checked = 0
    pages = [ROOT / "README.md", ROOT / "bench/peers/codecs/README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        text = page.read_text().replace("\\\n", " ")
        for command, arguments in re.findall(r"tierdex-(?:driver|bench) (paper|compare|search)\b([^`\n]*)", text):
            known = {flag for parameter in main.commands[command].params for flag in parameter.opts}
            unknown = set(re.findall(r"--[a-z][a-z-]*", arguments)) - known
            assert not unknown, f"{page}: {command}: {unknown}"
            for file in re.findall(r"bench/driver/\S+\.toml", arguments):
                assert read_file(ROOT / file), f"{page}: {file}"
            checked += 1
    assert checked >= 20


def test_the_experiments_of_this_project_are_well_formed() -> None:
    files = sorted((ROOT / "bench/driver/experiments").glob("*.toml"))
    assert [file.stem for file in files] == ["cache", "codecs", "intersection", "policies"]
    for file in files:
        assert all(figure.cells(scale) for figure in read_file(file) for scale in ("small", "machine"))
