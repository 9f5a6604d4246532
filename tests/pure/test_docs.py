"""The documents name files; a file that was moved must be named anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = re.compile(r"`((?:main|app|nodes|runtime|kernels|web|scripts|bench|docs|tests)(?:/[\w.-]+)*\.\w+)`")


def named_files(document: str) -> list[str]:
    return SOURCE.findall((ROOT / "docs" / document).read_text())


@pytest.mark.parametrize("document", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_each_file_that_a_document_names_exists(document: str):
    missing = [name for name in named_files(document) if not (ROOT / name).is_file()]
    assert not missing


def test_the_life_of_a_prompt_names_its_stations():
    assert len(set(named_files("life_of_a_prompt.md"))) > 25


def test_each_name_of_the_glossary_has_a_home():
    rows = [line for line in (ROOT / "docs" / "names.md").read_text().splitlines() if line.startswith("| ")]
    for row in rows[1:]:
        assert SOURCE.search(row), row
