"""The width of time slices: the least that a kernel can use, or more where rows are sparse.

A slice with few rows costs more to address than to read. So the width starts at the least and is
chosen once, from the first rows; rows held by then are cut into slices again. The width changes the
cost only: any width gives the same answers.
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
    """The width of a kernel's slices in ticks, a multiple of ``least``."""

    __slots__ = ("_seen", "_step", "width")

    def __init__(self, least: int):
        self.width = self._step = max(1, least)
        self._seen: tuple[int, int, int] | None = (0, END_OF_TIME, BEGINNING)

    def observe(self, rows: int, low: int, high: int) -> bool:
        """Count rows with times from ``low`` to ``high``; return true if the width changed."""
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
        """Set the state to that of a snapshot."""
        self.width, self._seen = saved


def reslice(store: ChunkStore, name: str, slice_: pl.Expr) -> None:
    """Move all rows under a name to the slices that the expression ``slice_`` gives."""
    held = take(store, name)
    for number, part in split(held, slice_) if held is not None else ():
        store.put(name, number, part)


def take_below(store: ChunkStore, name: str, ticks: pl.Expr, mark: int, width: int) -> Chunk | None:
    """Remove and return the rows below a mark; None if there are none.

    Only the slice in which the mark lies is written again.
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
