"""What the documentation shows is run: every Python block of a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)#:]+)(?:#[^)]*)?\)")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p) and p.stem != "spark"], ids=_name)
def test_python_blocks_of_a_page_run_top_to_bottom(page, tmp_path, monkeypatch):
    _run_page(page, tmp_path, monkeypatch)


def test_python_blocks_of_the_page_on_spark_run_top_to_bottom(spark, tmp_path, monkeypatch):
    _run_page(ROOT / "docs" / "spark.md", tmp_path, monkeypatch)


def _run_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": f"docs_{page.stem}"}
    for lines_before, code in _blocks(page):
        # Blank lines in front keep the page's own line numbers in a traceback.
        exec(compile("\n" * lines_before + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_between_pages_lead_somewhere(page):
    missing = [
        target
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not missing


def test_readme_names_its_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
