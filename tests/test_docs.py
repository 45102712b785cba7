"""What the documentation shows is run: every block of a page.

A block's kind is in its info string. Python is run, top to bottom; SQL is planned over the page's
streams, or is a pipeline file for the commands that follow it; commands are run. What is not run
says so by its kind (``text``, or the name of another system), or is in ``NOT_RUN`` with the reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lowwater
from lowwater.cli import app
from lowwater.pipeline.text import load_text

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
ON_SPARK = ("coming-from-spark", "operating", "spark", "start")
"""Pages whose blocks need a Spark session; all of them share one."""

BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
"""Where a block begins or ends, however it is written."""
LINK = re.compile(r"\[[^\]]+\]\(([^)#:]+)(?:#[^)]*)?\)")
FILE = re.compile(r"-- (\S+\.sql)\n")

RUN = ("python", "sql", "sh")
SHOWN = ("text", "{toctree}", "{eval-rst}")
"""Drawings, output, and what the site is made with."""
FOREIGN = ("sql flink", "java flink", "java kafka")
"""Other systems, which are not here to run it."""
NOT_RUN = {
    "pip ": "fetches packages",
    "make ": "sets up an environment of its own",
    "--engine spark": "starts a Spark of its own; tests/spark/test_pipeline_files.py does it",
    "check trace.sql": "looks for files; tests/unit/test_cli.py has some and does it",
    "--real-time": "takes as long as it says",
    "--dashboard": "goes on until it is stopped",
    "lowwater dashboard": "goes on until it is stopped",
    "lowwater claims": "takes minutes",
    "lowwater bench": "takes minutes",
    "curl ": "needs a run that is going on",
}
"""Commands with this in them are only shown, and why."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    text: str
    lines_before: int


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = BLOCK.finditer(text)
    return [Block(each[1].strip(), each[2], text.count("\n", 0, each.start(2))) for each in found]


def _runnable(page: Path) -> bool:
    return any(block.kind in RUN for block in _blocks(page))


@pytest.mark.parametrize("page", DOCS, ids=_name)
def test_blocks_of_a_page_have_a_kind_that_says_whether_they_run(page):
    known, blocks = (*RUN, *SHOWN, *FOREIGN), _blocks(page)
    assert not [(each.lines_before, each.kind) for each in blocks if each.kind not in known]
    assert len(FENCE.findall(page.read_text(encoding="utf-8"))) == 2 * len(blocks)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if _runnable(p) and p.stem not in ON_SPARK], ids=_name
)
def test_blocks_of_a_page_run_top_to_bottom(page, tmp_path, monkeypatch):
    _run_page(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ON_SPARK)
def test_blocks_of_a_page_on_spark_run_top_to_bottom(name, spark, tmp_path, monkeypatch):
    _run_page(ROOT / "docs" / f"{name}.md", tmp_path, monkeypatch)


def _run_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
    for block in _blocks(page):
        if block.kind == "python":
            # Blank lines in front keep the page's own line numbers in a traceback.
            exec(compile("\n" * block.lines_before + block.text, str(page), "exec"), names)
        elif block.kind == "sql":
            _plan(block.text, names)
        elif block.kind == "sh":
            for command in _commands(block.text):
                done = CliRunner().invoke(app, shlex.split(command)[1:])
                assert done.exit_code == 0, f"{command}\n{done.output}"


def _plan(text: str, names: dict[str, object]) -> None:
    """A named block is a file, for the commands after it; others are planned as they stand."""
    named = FILE.match(text)
    if named:
        Path(named[1]).write_text(text, encoding="utf-8")
    elif "CREATE STREAM" in text:
        assert load_text(text, "embedded", {}).queries
    else:
        streams = {name: each for name, each in names.items() if isinstance(each, lowwater.Stream)}
        assert lowwater.sql(text, **streams).explain()


def _commands(text: str) -> Iterator[str]:
    """The commands of a block that are run."""
    for line in text.replace("\\\n", " ").splitlines():
        command = line.partition("  #")[0].strip()
        if not command or any(part in command for part in NOT_RUN):
            continue
        assert command.startswith("lowwater "), f"{command}: neither run nor known not to be"
        yield command


@pytest.mark.parametrize("page", DOCS, ids=_name)
def test_pipeline_files_of_a_page_are_used_by_a_command_that_runs(page):
    blocks = _blocks(page)
    run = [c for block in blocks if block.kind == "sh" for c in _commands(block.text)]
    files = [m[1] for block in blocks if block.kind == "sql" and (m := FILE.match(block.text))]
    assert not [file for file in files if not any(file in command for command in run)]


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
