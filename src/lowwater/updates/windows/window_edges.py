"""The assignment of rows to windows, for all operators after a queue of windows (UpStream §6.1.3).

A row leaves the queue once for each of its windows, with the start and the end of that window in
two columns in front of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Key
from lowwater.updates.windows.open_windows import Ticks

AT = "__at"


def by_key(rows: Chunk, key: Sequence[str]) -> Iterator[tuple[Key, Ticks]]:
    """Yield the keys in the order of their first rows, each with the numbers of its rows."""
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
    """Assigns rows to windows and puts the edges of windows in front of them."""

    def __init__(self, window: WindowSpec, domain: TimeDomain):
        self.window, self._domain = window, domain

    def marked(self, rows: Chunk, starts: Ticks) -> Chunk:
        """Return rows with the edges of the windows that start at ``starts``."""
        edges = [
            pl.Series(name, ticks).cast(self._domain.dtype)
            for name, ticks in ((START, starts), (END, starts + self.window.range))
        ]
        return pl.DataFrame([*edges, *rows.get_columns()])

    def spread(self, ticks: Ticks) -> tuple[Ticks, Ticks]:
        """Return, for each row and window it is in, the number of the row and the window's
        start."""
        slide = self.window.slide
        firsts = self.window.first_open(ticks)
        counts = np.maximum((ticks // slide * slide - firsts) // slide + 1, 0)
        rows = np.repeat(np.arange(len(ticks)), counts)
        begins = np.repeat(np.cumsum(counts) - counts, counts)
        return rows, firsts[rows] + (np.arange(len(rows)) - begins) * slide
