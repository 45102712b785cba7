"""Rows with the windows they are in: the mark that says which window a row opens (UpStream §6.1.3).

Behind a queue of windows nobody delimits windows any more. A row that leaves carries the edges of
the window it leaves for in two columns in front, and leaves once for each such window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Key
from lowwater.updates.windows.open_windows import Ticks

AT = "__at"


def by_key(rows: Chunk, key: Sequence[str]) -> Iterator[tuple[Key, Ticks]]:
    """The keys there are, in the order in which they come, and which rows are theirs."""
    if not key:
        yield (), np.arange(rows.height)
        return
    if rows.height == 1:
        yield tuple(rows[name][0] for name in key), np.zeros(1, np.int64)
        return
    numbered = rows.select(key).with_row_index(AT)
    for *values, at in numbered.group_by(key, maintain_order=True).agg(AT).iter_rows():
        yield tuple(values), np.array(at, np.int64)


class WindowEdges:
    """Puts the edges of windows in front of rows."""

    def __init__(self, window: WindowSpec, domain: TimeDomain):
        self.window, self._domain = window, domain

    def inside(self, ticks: Ticks) -> NDArray[np.bool_]:
        """Which rows are in a window: all, unless windows leave gaps between them."""
        found: NDArray[np.bool_] = ticks % self.window.slide < self.window.range
        return found

    def marked(self, rows: Chunk, starts: Ticks) -> Chunk:
        """Rows with the edges of windows that start so."""
        edges = [
            pl.Series(name, ticks).cast(self._domain.dtype)
            for name, ticks in ((START, starts), (END, starts + self.window.range))
        ]
        return pl.DataFrame([*edges, *rows.get_columns()])

    def spread(self, ticks: Ticks) -> tuple[Ticks, Ticks]:
        """For each row and window it is in, the number of the row and the start of the window."""
        slide = self.window.slide
        firsts = ((ticks - self.window.range) // slide + 1) * slide
        counts = np.maximum((ticks // slide * slide - firsts) // slide + 1, 0)
        rows = np.repeat(np.arange(len(ticks)), counts)
        begins = np.repeat(np.cumsum(counts) - counts, counts)
        return rows, firsts[rows] + (np.arange(len(rows)) - begins) * slide
