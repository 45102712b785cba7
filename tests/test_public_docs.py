"""Docstrings of the public API: every argument with its unit and default, and an example that runs.

What is public is what ``docs/api.md`` lists. A class that it lists as ``Name()`` is not made by
users, so its constructor is not checked.
"""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lowwater
from lowwater import probe

API = (Path(__file__).resolve().parent.parent / "docs/api.md").read_text(encoding="utf-8")
DIRECTIVE = re.compile(
    r"^\.\. auto(function|class):: ([\w.]+)(\(\))?\n((?:   :.*\n)*)", re.MULTILINE
)
RESULTS = ("lowwater.metrics.", "lowwater.progress.late.", "lowwater.updates.staleness.")
"""Modules of values that a run returns: their attributes are documented where they are declared."""
QUERIES = ("Stream", "Windowed", "Grouped")
WITHOUT_EXAMPLE = {
    "Stream.to_spark": "needs a Spark session; the page on Spark shows it",
    "ProbedOperator": "the example of the module has one",
    "Observer": "the example of the module has one",
    "Step": "an observer is given one; the example of the module has an observer",
}
NO_DEFAULT = inspect.Parameter.empty

SECTION = re.compile(r"^(``[^\n]+``)\n((?: +[^\n]*\n?|\n)+)", re.MULTILINE)
UNITS = {
    "Duration": r"[Ll]ength|[Pp]eriod",
    "Size": r"memory|bytes",
    "int": r"[Nn]umber|[Rr]ows|[Nn]anoseconds|[Ss]eed",
    "float": r"[Nn]umber|[Ss]econds|[Nn]anoseconds|[Ss]hare|[Rr]ows|[Ll]oad|[Ee]xponent",
}
"""Words that say the unit of an argument, by a type in its annotation."""


def _found(path: str) -> Any:
    """The object that a directive names: in a module, or public in the package."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _members(cls: type, options: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    listed = re.search(r":members:(.*)", options)
    if listed is None:
        return
    names = [each.strip() for each in listed[1].split(",") if each.strip()]
    own = vars(cls) if ":inherited-members:" not in options else dict(inspect.getmembers(cls))
    for name in names or [each for each in own if not each.startswith("_")]:
        member = inspect.getattr_static(cls, name)
        if inspect.isfunction(member):
            yield f"{cls.__name__}.{name}", member


def _listed() -> Iterator[tuple[str, Any, bool]]:
    """Yield the name, the object, and whether it is called by users, of all that is listed."""
    for kind, path, bare, options in DIRECTIVE.findall(API):
        if path.startswith(RESULTS) or path.endswith("Warning"):
            continue
        found = _found(path)
        name = path.rpartition(".")[2]
        yield name, found, kind == "function" or not bare
        if kind == "class":
            yield from ((each, member, True) for each, member in _members(found, options))


LISTED = {name: (found, called) for name, found, called in _listed()}
CALLED = {name: found for name, (found, called) in LISTED.items() if called}
ARGUMENTS = {
    f"{name}({each.name})": (found, each)
    for name, found in CALLED.items()
    for each in inspect.signature(found).parameters.values()
    if each.name != "self"
}
SHOWN = [name for name in LISTED if "." not in name or name.split(".")[0] in QUERIES]
"""What has an example of its own: functions, classes, and the methods that make a query."""


def sections(documented: Any) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    text = inspect.getdoc(documented) or ""
    found = {}
    for heads, body in SECTION.findall(f"{text}\n".replace("\\\n", "")):
        found |= dict.fromkeys(re.findall(r"``(\w+)``", heads), " ".join(body.split()))
    return found


def lacks(said: str | None, argument: inspect.Parameter) -> str | None:
    """Return what is wrong with the words about an argument; None if nothing is."""
    if said is None:
        return "is not described"
    if re.search(r":(meth|func):", said):
        return None  # described there
    default = argument.default
    if default is not NO_DEFAULT:
        if "efault" not in said:
            return "has a default that is not stated"
        spelled = {str(default), repr(default), f"{default:,}" if type(default) is int else ""}
        stated = any(each.lower() in said.lower() for each in spelled if each)
        if isinstance(default, str | int | float) and not stated:
            return f"has the default {default!r}, and another is stated"
    kinds = [each for each in re.findall(r"\w+", str(argument.annotation)) if each in UNITS]
    if kinds and not re.search("|".join(UNITS[each] for each in kinds), said):
        return f"is a {' or '.join(kinds)}, and its unit is not stated"
    return None


def _described(length: "Duration", most: "int | None" = None, how: str = "at once") -> None:  # type: ignore[name-defined]  # noqa: F821, UP037
    """Do nothing.

    ``length``
        Length of time.
    ``most``
        Number of rows. Default: None.
    ``how``
        The way of it. Default: "at once".
    """


@pytest.mark.parametrize(
    ("right", "wrong", "argument", "lack"),
    [
        ("``most``", "``least``", "most", "is not described"),
        ("Default: None", "None", "most", "has a default that is not stated"),
        ("at once", "later", "how", "another is stated"),
        ("Length of time", "A value", "length", "its unit is not stated"),
        ("Number of rows", "A value", "most", "its unit is not stated"),
    ],
)
def test_a_docstring_that_lacks_something_is_found(right, wrong, argument, lack, monkeypatch):
    given = inspect.signature(_described).parameters
    assert all(lacks(sections(_described).get(name), each) is None for name, each in given.items())
    monkeypatch.setattr(_described, "__doc__", _described.__doc__.replace(right, wrong))
    found = lacks(sections(_described).get(argument), given[argument])
    assert found is not None
    assert lack in found


def test_every_public_name_is_listed():
    """Errors and the functions and classes of the package and of the probe."""
    listed = set(re.findall(r"^\.\. auto\w+:: (?:\w+\.)*(\w+)", API, re.MULTILINE))
    assert not {*lowwater.__all__, *probe.__all__} - listed


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_docstring_describes_each_argument_with_its_unit_and_default(name):
    documented, argument = ARGUMENTS[name]
    of_class = sections(LISTED[name.partition(".")[0]][0]) if "." in name.partition("(")[0] else {}
    said = of_class | sections(documented)
    assert lacks(said.get(argument.name), argument) is None


@pytest.mark.parametrize("name", SHOWN)
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"lw": lowwater, "pl": pl, **{each: getattr(probe, each) for each in probe.__all__}}
    text = inspect.getdoc(LISTED[name][0]) or ""
    example = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert bool(example.examples) != (name in WITHOUT_EXAMPLE)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
