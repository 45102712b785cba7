"""Answers on the console: a table that grows as rows come, or a line of JSON for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from math import isfinite, isnan
from typing import Any

import polars as pl
from rich.console import Console

from lowwater.cli.screen import Screen
from lowwater.cli.text import escape_line, one_line, visible
from lowwater.stream.element import Chunk

WIDEST = 40
"""Characters of a column on a terminal; longer values are cut."""
NARROWEST = 6
GAP = "  "


class TableRows:
    """Prints rows under a heading; wider values widen the columns, and the heading comes again."""

    def __init__(self, screen: Screen, schema: Mapping[str, pl.DataType], title: str | None):
        self._screen, self._title = screen, title
        self._names = list(schema)
        self._right = [dtype.is_numeric() for dtype in schema.values()]
        self._heads = [one_line(name) for name in self._names]
        self._widths = [len(name) for name in self._heads]
        self._most = WIDEST if screen.out.is_terminal else 10**6

    def write(self, chunk: Chunk) -> None:
        """Print rows."""
        if chunk.height:
            self._screen.print_rows(lambda console: self._print(console, chunk))

    def close(self) -> None:
        """Nothing is kept."""

    def _print(self, console: Console, chunk: Chunk) -> None:
        rows = [[shown(value) for value in row] for row in chunk.select(self._names).iter_rows()]
        needed = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths = [
            max(width, min(need, self._most))
            for width, need in zip(self._widths, needed, strict=True)
        ]
        if console.is_terminal:
            widths = fitted(widths, console.width)
        if self._screen.last is not self or widths != self._widths:
            self._widths = widths
            self._head(console)
        lines = (self._line(row) for row in rows)
        console.file.write("".join(f"{line}\n" for line in lines))

    def _head(self, console: Console) -> None:
        if self._screen.last is not None:
            console.print()
        if self._title is not None:
            console.print(f"[dim]{escape_line(self._title)}[/dim]", soft_wrap=True)
        self._screen.last = self
        console.print(f"[bold]{escape_line(self._line(self._heads))}[/bold]", soft_wrap=True)
        rule = GAP.join("─" * width for width in self._widths)
        console.print(f"[dim]{rule}[/dim]", soft_wrap=True)

    def _line(self, values: Sequence[str]) -> str:
        cells = []
        for value, width, right in zip(values, self._widths, self._right, strict=True):
            cell = value if len(value) <= width else f"{value[: width - 1]}…"
            cells.append(cell.rjust(width) if right else cell.ljust(width))
        return GAP.join(cells).rstrip()


class JsonRows:
    """Prints each row as an object on a line of its own."""

    def __init__(self, screen: Screen, number: int):
        self._screen, self._number = screen, number

    def write(self, chunk: Chunk) -> None:
        """Print rows."""
        text = "".join(
            json_line({"event": "row", "query": self._number, "row": row})
            for row in chunk.iter_rows(named=True)
        )
        self._screen.print_rows(lambda console: console.file.write(text))

    def close(self) -> None:
        """Nothing is kept."""


def json_line(content: object) -> str:
    """An object as a line of JSON; what JSON has no number for is a text."""
    write = partial(json.dumps, default=_plain, allow_nan=False)
    try:
        return f"{write(content)}\n"
    except ValueError:
        return f"{write(_finite(content))}\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


def shown(value: Any) -> str:
    """A value in a table."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return visible(" ".join(str(value).split()))


def fitted(widths: Sequence[int], most: int) -> list[int]:
    """Widths that fit on a line, the widest columns made narrower first."""
    fit = list(widths)
    room = most - len(GAP) * (len(fit) - 1)
    while sum(fit) > room and max(fit) > NARROWEST:
        fit[fit.index(max(fit))] -= 1
    return fit
