"""The SQL cases as files: a title, what is given, a query, and what is expected of it.

A file looks like this (see ``sql/README.md``)::

    -- Q4: packets per pair of hosts and minute (OOP §8.1)
    -- given: M, n = 30

    SELECT ...

    --- oracle
    SELECT ...
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

import lowwater as lw
from tests.conformance.traces import traces

FOLDER = Path(__file__).parent / "sql"
_SECTION = re.compile(r"^--- (\w+) ?(.*)$", re.MULTILINE)
_HEADER = re.compile(r"^-- ?(.*)$")
_CLOCK = re.compile(r"^\d\d:\d\d:\d\d(\.\d+)?$")
_WHOLE = re.compile(r"^-?\d+$")


@dataclass(frozen=True, eq=False)
class SqlCase:
    """A query and what is expected of it: the oracle's answer, rows, or an error."""

    name: str
    title: str
    query: str
    given: str = ""
    ordered: str | None = None
    """The column the answers come in order of."""
    about: float = 0.0
    """By what share a number may differ from the oracle's."""
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Streams written into the file."""
    oracle: str | None = None
    rows: str | None = None
    error: str | None = None
    place: tuple[int, int] | None = None
    """Line and column of the error."""

    def names(self) -> tuple[list[str], dict[str, Any]]:
        """The streams and the parameters it is given."""
        streams, values = [], {}
        for each in filter(None, map(str.strip, self.given.split(","))):
            name, equals, value = (part.strip() for part in each.partition("="))
            if equals:
                values[name] = ast.literal_eval(value)
            else:
                streams.append(name)
        return streams, values

    def stream(self) -> lw.Stream:
        """The query, planned."""
        streams, values = self.names()
        known = {name: traces().streams[name] for name in streams}
        known |= {name: _stream(name, table) for name, table in self.tables.items()}
        return lw.sql(self.query, **known, **values)

    def all_tables(self) -> dict[str, pl.DataFrame]:
        """The rows of its streams, for the oracle."""
        return {name: traces().tables[name] for name in self.names()[0]} | self.tables


def _stream(name: str, table: pl.DataFrame) -> lw.Stream:
    """A stream written into a file: its first column is the time, in any order."""
    return lw.stream(
        table, name=name, time=table.columns[0], progress=lw.within("1 hour"), jump=None
    )


def read_case(path: Path) -> SqlCase:
    """The case of a file."""
    text = path.read_text(encoding="utf-8")
    starts = [*_SECTION.finditer(text)]
    head, query = _split(text[: starts[0].start()])
    found: dict[str, Any] = {"tables": {}}
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        body, kind, rest = text[start.end() : end].strip("\n"), start[1], start[2]
        if kind == "stream":
            names, rows = read_rows(body)
            found["tables"][rest] = pl.DataFrame(rows, schema=names, orient="row")
        else:
            found[kind] = body
        if kind == "error":
            line, column = re.findall(r"\d+", rest)
            found["place"] = int(line), int(column)
    options = dict(each.split(": ", 1) for each in head[1:] if ": " in each)
    unknown = options.keys() - {"given", "in order of", "about"}
    assert not unknown, f"{path}: {unknown}"
    name = str(path.relative_to(FOLDER).with_suffix(""))
    return SqlCase(
        name,
        head[0],
        query,
        options.get("given", ""),
        options.get("in order of"),
        float(options.get("about", "0 %").removesuffix("%")) / 100,
        **found,
    )


def _split(text: str) -> tuple[list[str], str]:
    """The comments at the top, and the query under them."""
    lines = text.splitlines()
    head = []
    while lines and (found := _HEADER.match(lines[0])):
        head.append(found[1])
        lines.pop(0)
    return head, "\n".join(lines).strip("\n")


def read_rows(text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """A table written as lines of values between bars, under a line of names."""
    lines = [[each.strip() for each in line.split("|")] for line in text.splitlines() if line]
    return lines[0], [tuple(map(_value, line)) for line in lines[1:]]


def _value(text: str) -> Any:
    if text in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[text]
    if _CLOCK.match(text):
        return datetime.fromisoformat(f"2024-01-01 {text}")
    if _WHOLE.match(text):
        return int(text)
    if text.startswith("["):
        return ast.literal_eval(text)
    for kind in (float, datetime.fromisoformat):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def all_cases() -> list[SqlCase]:
    """The cases of all files."""
    return [read_case(path) for path in sorted(FOLDER.rglob("*.sql"))]
