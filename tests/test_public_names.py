"""The public names are documented, and importing them loads nothing heavy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lowwater
from lowwater import probe, typing

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(scope="module")
def prose() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("name", lowwater.__all__)
def test_public_name_is_documented(name, prose):
    """As code: ``lw.name`` in a block, or the name between backticks."""
    pattern = rf"\blw\.{name}\b|`(?:lw\.)?{name}\b[^`]*`"
    assert re.search(pattern, prose), f"{name} is public but no page mentions it"


@pytest.mark.parametrize("module", [probe, typing])
def test_names_of_public_modules_are_listed_in_the_api(module):
    listed = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    missing = [each for each in module.__all__ if not re.search(rf"\b{each}\b", listed)]
    assert not missing
    assert all(hasattr(module, each) for each in module.__all__)


def test_all_lists_every_public_name_and_each_exists():
    assert sorted(set(lowwater.__all__)) == sorted(lowwater.__all__)
    assert all(hasattr(lowwater, name) for name in lowwater.__all__)


@pytest.mark.parametrize("module", ["pyspark", "matplotlib", "duckdb"])
def test_import_does_not_load(module):
    code = f"import sys, lowwater; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_type_checkers_see_every_public_name():
    """A name that is only loaded when it is used would be of any type to them."""
    tree = ast.parse(Path(lowwater.__file__).read_text(encoding="utf-8"))
    block = next(each for each in tree.body if isinstance(each, ast.If))
    seen = {
        alias.asname or alias.name
        for each in block.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    assert seen == set(lowwater.__all__)
