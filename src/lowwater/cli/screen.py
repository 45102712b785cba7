"""The screen has printed rows, and below them progress, which is drawn over.

Rows come from the threads that run queries, progress from the one that watches them. Before rows
are printed the progress is taken away; it comes back when it is drawn next. Rows are a table that
grows, or a line of JSON each.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from math import isfinite, isnan
from typing import Any

import polars as pl
from rich.console import Console, RenderableType
from rich.live import Live

from lowwater.cli.app import err, escape_line, one_line, out, visible
from lowwater.stream.element import Chunk

WIDEST = 40
"""Characters of a column on a terminal; longer values are cut."""
NARROWEST = 6
GAP = "  "


class _RowConsole(Console):
    """A console that raises an error when nobody reads it any more; others end the process."""

    def on_broken_pipe(self) -> None:
        """Raise the error."""
        raise BrokenPipeError


class _ProgressConsole(Console):
    """A console that prints nothing once nobody reads it; the run goes on."""

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True


class Screen:
    """Prints rows to standard output, and draws progress on standard error."""

    def __init__(self) -> None:
        self.out, self.err = out(_RowConsole), err(_ProgressConsole)
        self.closed_by_reader = threading.Event()
        """Set when nobody reads the rows any more (``lowwater run ... | head``)."""
        self.last: object = None
        """The table that was printed last: another one prints its heading again."""
        self._lock = threading.RLock()
        self._live: Live | None = None

    def print_rows(self, write: Callable[[Console], object]) -> None:
        """Print rows above the progress."""
        with self._lock:
            if self.closed_by_reader.is_set():
                return
            self._hide()
            try:
                write(self.out)
                self.out.file.flush()
            except BrokenPipeError:
                self.closed_by_reader.set()

    def draw(self, progress: RenderableType) -> None:
        """Show progress below the rows, in place of the progress before."""
        with self._lock:
            if self._live is None:
                self._live = Live(
                    progress,
                    console=self.err,
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._live.start()
            self._live.update(progress, refresh=True)

    def print_line(self, text: str) -> None:
        """Print a line about the run."""
        with self._lock:
            self._hide()
            self.err.print(text, soft_wrap=True)

    def close(self) -> None:
        """Take the progress away."""
        with self._lock:
            self._hide()

    def _hide(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


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
        """Do nothing: no row is kept."""

    def _print(self, console: Console, chunk: Chunk) -> None:
        rows = [
            [cell_text(value) for value in row] for row in chunk.select(self._names).iter_rows()
        ]
        needed = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths = [
            max(width, min(need, self._most))
            for width, need in zip(self._widths, needed, strict=True)
        ]
        if console.is_terminal:
            widths = fit_widths(widths, console.width)
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
        """Do nothing: no row is kept."""


def json_line(content: object) -> str:
    """Return an object as a line of JSON; values that JSON has no form for become texts."""
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


def cell_text(value: Any) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return visible(" ".join(str(value).split()))


def fit_widths(widths: Sequence[int], most: int) -> list[int]:
    """Return widths that fit into ``most`` characters; the widest are made narrower first."""
    fit = list(widths)
    room = most - len(GAP) * (len(fit) - 1)
    while sum(fit) > room and max(fit) > NARROWEST:
        fit[fit.index(max(fit))] -= 1
    return fit
