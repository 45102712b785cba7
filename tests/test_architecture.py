"""The files, modules, names and make targets that documents name exist.

The documents are those for people who change the code: README, CONTRIBUTING, the architecture, the
glossary and the decision records. Names stand in code spans; blocks of code are left to test_docs.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

import lowwater

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "lowwater"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
GLOSSARY = ROOT / "docs" / "glossary.md"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DOCUMENTS = [ROOT / "README.md", CONTRIBUTING, ARCHITECTURE, GLOSSARY, *DECISIONS]

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w.*/<>-]+\.(?:py|md|sql|toml|txt|js|css|html)|[\w.-]+(?:/[\w.-]+)*/")
"""A file, or a folder with its slash; with a star or a name in angle brackets, a pattern."""
MODULE = re.compile(r"lowwater(?:\.\w+)+")
MAKE = re.compile(r"\bmake ([a-z]+)\b")
IDENTIFIER = re.compile(r"([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?(?:\(.*\))?")
CLASS = re.compile(r"[A-Z]+[a-z]\w*")


def _spans(path: Path) -> list[str]:
    return SPAN.findall(FENCED.sub("", path.read_text(encoding="utf-8")))


def _found(name: str) -> list[Path]:
    """Return the files and folders that a name in a document can mean."""
    pattern = re.sub(r"<\w+>", "*", name)
    places = (ROOT, PACKAGE, ROOT / "docs", ROOT / "docs" / "decisions")
    return [found for place in places for found in place.glob(pattern)]


def _resolves(dotted: str) -> bool:
    """True if a dotted name is a module, or a name in one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


@cache
def _defined(file: Path) -> frozenset[str]:
    """Return the names that a module defines: classes, functions, arguments, fields, constants."""
    names = {file.stem}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
            case _:
                pass
    return frozenset(names)


def _names_of(files: list[Path]) -> set[str]:
    """Return the names that the modules among files and folders define."""
    modules = [one for each in files for one in (each.rglob("*.py") if each.is_dir() else [each])]
    return {name for module in modules if module.suffix == ".py" for name in _defined(module)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_modules_that_a_document_names_exist(document: Path) -> None:
    spans = _spans(document)
    files = [each for each in spans if FILE.fullmatch(each) and not _found(each)]
    modules = [each for each in spans if MODULE.fullmatch(each) and not _resolves(each)]
    assert not files + modules


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_that_a_document_names_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    shown = [*SPAN.findall(text), *FENCED.findall(text)]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert not {name for each in shown for name in MAKE.findall(each)} - set(targets)


def test_names_in_the_architecture_are_defined_in_the_code() -> None:
    defined = _names_of([PACKAGE, *PACKAGE.rglob("*.py")]) | {"pyspark_lowwater"}
    defined |= {each.name for each in PACKAGE.rglob("*") if each.is_dir()}
    missing = [
        span
        for span in _spans(ARCHITECTURE)
        if (found := IDENTIFIER.fullmatch(span)) and not _files_or_modules(span)
        for name in found.groups()
        if name is not None and name not in defined and name != "lw"
    ]
    assert not missing


def _files_or_modules(span: str) -> bool:
    return bool(FILE.fullmatch(span) or MODULE.fullmatch(span))


def test_layers_of_the_architecture_are_those_that_import_linter_holds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == ["lowwater"]]
    _, _, section = ARCHITECTURE.read_text(encoding="utf-8").partition("\n## Layers\n")
    rows = re.findall(r"^\| (`.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert [SPAN.findall(row) for row in rows] == [layer.split(" | ") for layer in layers]


def _rows(document: Path) -> list[list[str]]:
    """Return the cells of each row of the tables of a document."""
    lines = document.read_text(encoding="utf-8").splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in cells if set("".join(row)) - set("- ")]


def _rows_with_files(document: Path) -> list[list[str]]:
    """Return the rows of those tables of a document whose last column is of files."""
    found, of_files = [], False
    for row in _rows(document):
        heading = row[0] in ("paper term", "in print", "word", "here")
        of_files = row[-1] == "file" if heading else of_files
        found += [row] if of_files and not heading else []
    return found


GLOSSARY_ROWS = _rows_with_files(GLOSSARY)


@pytest.mark.parametrize("row", GLOSSARY_ROWS, ids=lambda row: row[0][:40])
def test_files_of_a_row_of_the_glossary_define_its_names(row: list[str]) -> None:
    spans = SPAN.findall(row[-1])
    files = [found for each in spans if FILE.fullmatch(each) for found in _found(each)]
    assert files
    defined = _names_of(files)
    named = [each for each in (*SPAN.findall(row[1]), *spans) if not FILE.fullmatch(each)]
    missing = [
        each
        for each in named
        if (found := IDENTIFIER.fullmatch(each)) and found[1] != "lw" and CLASS.match(found[1])
        for name in found.groups()
        if name is not None and name not in defined
    ]
    public = [each[1] for each in map(re.compile(r"lw\.(\w+)").match, named) if each is not None]
    assert not missing + [name for name in public if not hasattr(lowwater, name)]


def test_the_files_that_are_installed_are_those_beside_the_modules() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["lowwater"]
    found = {pattern: set(PACKAGE.glob(pattern)) for pattern in patterns}
    assert all(found.values()), found
    files = {each for each in PACKAGE.rglob("*") if each.is_file()}
    beside = {each for each in files if each.suffix not in (".py", ".pyc")}
    assert beside == set().union(*found.values())
