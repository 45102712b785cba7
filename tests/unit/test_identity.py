"""The hash of a user's functions: the same wherever they are loaded, another when they change."""

from __future__ import annotations

import datetime as dt
import functools
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import lowwater as lw
from lowwater.operators.identity import Identity, code_hash

BASE = '''
import functools
import polars as pl
SCALE = 3
CACHE = {}
def helper(x):
    """Doc."""
    return x * SCALE
class Counter:
    step = 1
    def __init__(self):
        self.n = 0
    def plus(self, n):
        self.n += n * self.step
        return self
def make(weight, names):
    def add(state, rows, *, power=2):
        """Adds."""
        seen = {"a", "b", "c"}
        total = sum(v ** power for v in rows["v"] if v in {1, 2, 3, 4}) * weight
        pick = [helper(t) for t in (1.0, None, "x") if t in seen or t in names]
        CACHE[state] = total
        return Counter().plus(state + total + len(pick)).n
    return add
function = make(2, ["p", "q"])
other = functools.partial(function, power=3)
'''

HARMLESS = {
    "nothing": ("", ""),
    "lines": ("import functools\n", "import functools\n\n\n# a comment\n"),
    "docstring": ('"""Adds."""', '"""Adds otherwise."""'),
    "no docstring": ('        """Adds."""\n', ""),
    "docstring of a helper": ('    """Doc."""\n', ""),
    "names of locals": ("total", "amount"),
    "what changes while it runs": ("CACHE = {}", "CACHE = {1: 2}"),
}
CHANGES = {
    "instructions": ("state + total", "state - total"),
    "constant": ("(1.0, None", "(1.5, None"),
    "type of a constant": ("(1.0, None", "(1, None"),
    "set": ("{1, 2, 3, 4}", "{1, 2, 3, 5}"),
    "default": ("power=2", "power=4"),
    "value of an enclosing function": ("make(2,", "make(7,"),
    "list of an enclosing function": ('["p", "q"]', '["q", "p"]'),
    "helper": ("return x * SCALE", "return x + SCALE"),
    "constant of the module": ("SCALE = 3", "SCALE = 4"),
    "method": ("self.n += n * self.step", "self.n -= n * self.step"),
    "attribute of a class": ("step = 1", "step = 2"),
    "condition": ("t in seen or", "t in seen and"),
}


def loaded(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "anywhere.py", "exec"), names)
    return names


@pytest.mark.parametrize("change", HARMLESS)
def test_what_does_not_matter_changes_nothing(change: str) -> None:
    changed = loaded(BASE.replace(*HARMLESS[change]))
    for name in ("function", "other"):
        assert code_hash(changed[name]) == code_hash(loaded(BASE)[name])


@pytest.mark.parametrize("change", CHANGES)
def test_what_matters_changes_the_hash(change: str) -> None:
    old, new = CHANGES[change]
    assert old in BASE
    changed = loaded(BASE.replace(old, new))
    assert code_hash(changed["function"]) != code_hash(loaded(BASE)["function"])


def test_hashes_are_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(BASE)
    program = textwrap.dedent("""
        import sys
        from lowwater.operators.identity import code_hash
        import mine
        print(code_hash(mine.function), code_hash(mine.other), code_hash(mine.Counter))
    """)
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join([*sys.path, str(tmp_path)])},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "777")
    }
    assert len(told) == 1
    assert len(set(told.pop().split())) == 3


class Adds:
    """Functions as methods of an object."""

    def __init__(self, weight: int) -> None:
        self.weight = weight

    def add(self, state: int, rows: Any) -> int:
        """Add."""
        return state + self.weight * len(rows)

    __call__ = add


@pytest.mark.parametrize(
    ("one", "alike", "another"),
    [
        (Adds(1).add, Adds(1).add, Adds(2).add),
        (Adds(1), Adds(1), Adds(2)),
        (list, list, tuple),
        (max, max, min),
        (functools.reduce, functools.reduce, functools.wraps),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        ({"a": {1, 2}}, {"a": {2, 1}}, {"a": {2, 3}}),
        (0.0, 0.0, -0.0),
        (1, 1, True),
    ],
)
def test_values_that_functions_hold(one: Any, alike: Any, another: Any) -> None:
    assert code_hash(one) == code_hash(alike) != code_hash(another)


def test_functions_that_refer_to_themselves_and_to_what_cannot_be_pickled() -> None:
    lock = __import__("threading").Lock()

    def again(n: int) -> Any:
        return again(n - 1) if n else lock

    assert code_hash(again) == code_hash(again)


def own(version: Any = None, factor: int = 1) -> lw.aggregate:
    return lw.aggregate(
        init=int,
        add=lambda state, rows: state + factor * rows["v"].sum(),
        merge=lambda a, b: a + b,
        finish=float,
        columns=("v",),
        version=version,
    )


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (own(), own(), None),
        (own(), own(factor=2), "add changed"),
        (own(1), own(1, factor=2), None),
        (own(1), own("1"), None),
        (own(1), own(2), "it was version 1 and is version 2"),
        (own(), own(1), None),
        (own(1), own(), None),
        (own(), own(1, factor=2), "add changed"),
    ],
)
def test_versions_decide_if_both_have_one_else_the_code(
    before: lw.aggregate, now: lw.aggregate, words: str | None
) -> None:
    made = Identity(**vars(Identity.of("total", before)))
    assert Identity.of("total", now).change_from(made) == words


def test_another_python_is_named() -> None:
    made = Identity.of("total", own())
    older = Identity("total", None, {**made.code, "add": "other"}, "3.9")
    words = made.change_from(older)
    assert words is not None
    assert "it was made by Python 3.9, this is 3." in words


@pytest.mark.parametrize("version", [True, 1.5, ("a",)])
def test_versions_are_numbers_or_texts(version: Any) -> None:
    with pytest.raises(lw.OptionError, match="version= is a number or a text"):
        own(version)
