"""The commands in the documents exist, with their flags."""

import re
from pathlib import Path

from tierdex_driver.cli import main

DOCUMENTS = Path(__file__).parents[3] / "docs"


def test_commands_and_flags_in_the_documents_exist() -> None:
    checked = 0
    for page in sorted((DOCUMENTS / "experiments").glob("*.md")):
        text = page.read_text().replace("\\\n", " ")
        for command, arguments in re.findall(r"^tierdex-(?:driver|bench) (paper|compare|search)\b(.*)$", text, re.M):
            known = {flag for parameter in main.commands[command].params for flag in parameter.opts}
            unknown = set(re.findall(r"--[a-z-]+", arguments)) - known
            assert not unknown, f"{page}: {command}: {unknown}"
            checked += 1
    assert checked >= 5
