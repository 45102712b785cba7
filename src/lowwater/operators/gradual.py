"""Held rows that leave slowly once they may (OOP §6): sessions, and rows without a partner.

A mark can free many held rows at once, such as all unmatched rows of a window. Their leaving is a
burst of work, here and in the operators after it. So they leave in the order of their times: one
with every so many rows that come in, and at least in step with the mark, so that the last one has
left when the mark is a *bound* past the mark that freed it. Rows of one tick leave together.

Invariant: the rows below ``left`` have left, none from ``limit`` on has; neither goes back. What a
mark has freed has left when the mark has moved on by the bound.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lowwater.operators.flush import PIECES, Slow
from lowwater.state.slicing import Slicing, take_below
from lowwater.state.store import ChunkStore, read
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk


class GradualRelease:
    """Takes rows out of a store slowly.

    The rows are under ``name``, in slices of their time ``ticks``. ``bound`` is in ticks of the
    mark that frees them.
    """

    def __init__(
        self,
        store: ChunkStore,
        name: str,
        ticks: pl.Expr,
        slicing: Slicing,
        flush: Slow,
        bound: int,
    ):
        self._store, self._name, self._ticks, self._slicing = store, name, ticks, slicing
        self._every, self.bound = flush.every, bound
        self.left = self.limit = BEGINNING
        self._mark = BEGINNING
        self._steps: list[tuple[int, int, int]] = []  # a mark, and the stretch of rows it freed
        self._rows = 0  # rows that came in since rows left for them

    @property
    def pending(self) -> bool:
        """True if rows that may leave are still held."""
        return self.left < self.limit

    @property
    def deadline(self) -> int:
        """The mark at which the rows that have waited longest must have left, if any wait."""
        return self._steps[0][0] + self.bound

    def add_rows(self, rows: int) -> None:
        """Count rows that came in."""
        if self.pending:
            self._rows += rows

    def free(self, mark: int, limit: int) -> None:
        """Let the rows below ``limit`` leave, because a mark was reached."""
        self._mark = max(mark, self._mark)
        if limit <= self.limit:
            return
        before, self.limit = self.limit, limit
        least = self._least()
        if mark >= END_OF_TIME:
            self._steps = []
        elif least < limit:
            low, near = max(before, least), self.bound // PIECES
            if self._steps and mark - self._steps[-1][0] < near:
                first, low, _ = self._steps.pop()  # one piece: it leaves by the earlier deadline
                self._steps.append((first, low, limit))
            else:
                self._steps.append((mark, low, limit))

    def take(self) -> Chunk | None:
        """Remove and return the rows that leave now; None if there are none."""
        if not self.pending:
            return None
        edge = max(self._by_mark(), self._by_rows())
        width = self._slicing.width
        gone = take_below(self._store, self._name, self._ticks, edge, width)
        self.left = max(edge, min(self._least(), self.limit))
        self._steps = [each for each in self._steps if each[2] > self.left]
        if not self.pending:
            self._rows = 0
        return gone

    def _least(self) -> int:
        """Return the least time of a held row; END_OF_TIME if there is none."""
        slices = self._store.slices(self._name)
        held = read(self._store, self._name, slices[0], slices[0] + 1) if slices else None
        return END_OF_TIME if held is None else int(held.select(self._ticks.min()).item())

    def _by_mark(self) -> int:
        """Return the time below which rows leave because the mark has moved on."""
        edge = self.left if self._steps else self.limit
        for freed, low, high in self._steps:
            passed = self._mark - freed
            if passed < self.bound:
                return max(edge, low + (high - low) * passed // self.bound)
            edge = high
        return edge

    def _by_rows(self) -> int:
        """Return the time below which rows leave because rows have come in."""
        paid, width = self._rows // self._every, self._slicing.width
        if not paid:
            return self.left
        slices = self._store.slices(self._name, None, (self.limit - 1) // width + 1)
        counts = [self._store.rows_in(self._name, slice_) for slice_ in slices]
        if paid * PIECES < sum(counts):
            return self.left
        self._rows -= paid * self._every
        for slice_, count in zip(slices, counts, strict=True):
            if count > paid:
                held = read(self._store, self._name, slice_, slice_ + 1)
                assert held is not None
                times = held.select(self._ticks.alias("ticks"))["ticks"].sort()
                return min(self.limit, int(times[paid]))
            paid -= count
        return self.limit

    def snapshot(self) -> dict[str, Any]:
        """Return what has left, what may leave, and the marks by which it may."""
        return {
            "left": self.left,
            "limit": self.limit,
            "mark": self._mark,
            "steps": list(self._steps),
            "rows": self._rows,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self.left, self.limit, self._mark = saved["left"], saved["limit"], saved["mark"]
        self._steps = [(mark, low, high) for mark, low, high in saved["steps"]]
        self._rows = saved["rows"]
