"""The guide builds as a site without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lowwater

pytest.importorskip("sphinx")
pytestmark = pytest.mark.xdist_group("site")  # it is built once
ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements that load something by themselves, and where they say what."""
ELSEWHERE = re.compile(r"\s*(?:https?:)?//")
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')\s]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built as ``make docs`` does."""
    folder = tmp_path_factory.mktemp("site")
    places = [str(ROOT / "docs"), str(folder), "-d", str(folder / "trees")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", *places],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loads(HTMLParser):
    """What a page loads by itself; links that a person follows are not."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("next", "prev", "canonical"):
            self.found.append(given.get("href") or "")
        self.found += [given.get(LOADED.get(tag, "")) or "", given.get("srcset") or ""]


def test_every_page_is_there(site):
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert not [page for page in pages if not (site / page).with_suffix(".html").exists()]


def test_no_page_loads_anything_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    loaded = {str(page.relative_to(site)): Loads(page.read_text("utf-8")).found for page in pages}
    assert any(loaded.values())
    far = [(page, each) for page, found in loaded.items() for each in found]
    assert not [each for each in far if ELSEWHERE.match(each[1])]


def test_no_style_or_script_of_the_site_fetches_from_elsewhere(site):
    styles = {path.name: IN_STYLES.findall(path.read_text("utf-8")) for path in site.rglob("*.css")}
    assert styles
    assert not {name: found for name, found in styles.items() if found}
    scripts = [path.read_text("utf-8") for path in site.rglob("*.js")]
    assert not [found for text in scripts for found in re.findall(r"fetch\([\"']https?://", text)]


def test_pictures_are_as_they_are_drawn():
    drawn = runpy.run_path(str(PICTURES / "draw.py"))["PICTURES"]
    for draw in drawn:
        kept = (PICTURES / f"{draw.__name__}.svg").read_text("utf-8")
        assert draw().svg() == kept, f"{draw.__name__} was changed; run docs/pictures/draw.py"


def test_every_public_name_is_in_the_reference(site):
    text = (site / "api.html").read_text("utf-8")
    missing = [name for name in lowwater.__all__ if f'id="lowwater.{name}"' not in text]
    assert not missing
