"""The width of time slices: the least that a kernel can use, and more where rows are sparse.

To address a slice of a few rows costs more than to read it. The width starts at the least and is
chosen once, from the first rows; rows held by then are cut into slices again. The width is a matter
of cost only: any width gives the same answers.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lowwater.state.store import ChunkStore, split, take
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk

FIRST_ROWS = 1_024
"""Number of rows after which the width is chosen."""
ROWS_PER_SLICE = 4_096
"""Number of rows that a slice of sparse rows should hold."""


class Slicing:
    """The width of a kernel's slices, in ticks."""

    __slots__ = ("_seen", "_step", "width")

    def __init__(self, least: int):
        self.width = self._step = max(1, least)
        self._seen: tuple[int, int, int] | None = (0, END_OF_TIME, BEGINNING)

    def observe(self, rows: int, low: int, high: int) -> bool:
        """Count rows between two times; return true if the width has changed."""
        if self._seen is None:
            return False
        before, least, most = self._seen
        rows, low, high = rows + before, min(low, least), max(high, most)
        self._seen = (rows, low, high) if rows < FIRST_ROWS else None
        if self._seen is None:
            steps = (high - low) // self._step + 1
            self.width = self._step * max(1, ROWS_PER_SLICE * steps // rows)
        return self.width > self._step and self._seen is None

    def snapshot(self) -> Any:
        """Return the width, and the number and times of the rows seen."""
        return self.width, self._seen

    def restore(self, saved: Any) -> None:
        """Continue from a snapshot."""
        self.width, self._seen = saved


def reslice(store: ChunkStore, name: str, slice_: pl.Expr) -> None:
    """Cut all rows under a name into other slices."""
    held = take(store, name)
    for number, part in split(held, slice_) if held is not None else ():
        store.put(name, number, part)


def take_below(store: ChunkStore, name: str, ticks: pl.Expr, mark: int, width: int) -> Chunk | None:
    """Take out the rows below a mark; None if there are none.

    Only the slice the mark lies in is written again.
    """
    edge = mark // width
    whole = take(store, name, None, edge)
    partly = take(store, name, edge, edge + 1)
    if partly is None:
        return whole
    stay = partly.filter(ticks >= mark)
    if stay.height:
        store.put(name, edge, stay)
    if stay.height == partly.height:
        return whole
    gone = partly.filter(ticks < mark) if stay.height else partly
    return gone if whole is None else pl.concat([whole, gone])
