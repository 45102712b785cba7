"""CONTRIBUTING names files of the code and of the tests for each kind of change, and each name that
it gives beside a file is defined there.

That the files, modules and make targets exist is tested with those of all documents, in
test_architecture.
"""

from __future__ import annotations

import re

import pytest

from tests.test_architecture import (
    CONTRIBUTING,
    FENCED,
    FILE,
    IDENTIFIER,
    ROOT,
    SPAN,
    _found,
    _names_of,
)

TEXT = CONTRIBUTING.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", TEXT, re.MULTILINE))
CHANGES = [title for title in SECTIONS if title.startswith("Add ")]
ITEM = re.compile(r"\n(?=\d\. |- |\n)")
"""The end of a paragraph or of an item of a list."""


def files_of(text: str) -> list[str]:
    return [each for each in SPAN.findall(text) if FILE.fullmatch(each)]


def test_every_kind_of_change_has_a_section() -> None:
    assert CHANGES == [
        "Add an operator",
        "Add a join kind",
        "Add a contract",
        "Add a clause to the language",
        "Add a metric",
        "Add an aggregate",
    ]


@pytest.mark.parametrize("title", CHANGES)
def test_a_section_names_files_of_the_code_before_those_of_the_tests(title: str) -> None:
    code, _, rest = SECTIONS[title].partition("\nTests:\n")
    tests, _, _ = rest.partition("\nDocuments:")
    assert files_of(code)
    assert all(each.startswith("src/lowwater/") for each in files_of(code))
    assert files_of(tests)
    assert all(each.startswith("tests/") for each in files_of(tests))


@pytest.mark.parametrize("title", CHANGES)
def test_names_of_a_step_are_defined_in_its_files(title: str) -> None:
    for item in ITEM.split(SECTIONS[title]):
        paths = [path for each in files_of(item) for path in _found(each)]
        defined = _names_of(paths) | {"self"}
        spans = [each for each in SPAN.findall(item) if not FILE.fullmatch(each)]
        names = [one for each in spans if (one := IDENTIFIER.fullmatch(each)) is not None]
        missing = [n for one in names for n in one.groups() if n is not None and n not in defined]
        assert not missing or not paths, (item, missing)


def test_environment_variables_are_read_somewhere() -> None:
    named = set(re.findall(r"LOWWATER_\w+", TEXT))
    assert named
    readers = [ROOT / "Makefile", *(ROOT / "tests").rglob("*.py"), *(ROOT / "src").rglob("*.py")]
    own = ROOT / "tests" / "test_contributing.py"
    code = "\n".join(each.read_text(encoding="utf-8") for each in readers if each != own)
    assert {each for each in named if not re.search(rf"\b{each}\b", code)} == set()


def test_arguments_of_make_targets_are_read_by_the_makefile() -> None:
    shown = [*SPAN.findall(TEXT), *FENCED.findall(TEXT)]
    arguments = {each for one in shown for each in re.findall(r"\bmake \w+ ([A-Z]+)=", one)}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"$({each})" in makefile for each in arguments)
