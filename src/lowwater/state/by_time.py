"""Rows that wait for a time, in slices of it: put in whenever, taken out when it has passed.

Invariant: of each slice that holds a row the least time is known, so that only slices that lose
one are read; the slice in which the bound lies is written again, no other.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore, add, split, take
from lowwater.stream.element import Chunk


class ByTime:
    """Rows by a column of ticks."""

    def __init__(self, store: ChunkStore, name: str, ticks: str, slice_ticks: int):
        self._store, self._name, self._ticks = store, name, ticks
        self._slicing = Slicing(slice_ticks)
        self._least: dict[int, int] = {}

    def put(self, rows: Chunk) -> None:
        """Take rows in."""
        if not rows.height:
            return
        low, high = self._span(rows)
        if self._slicing.observe(rows.height, low, high) and (held := self.take()) is not None:
            rows = pl.concat([held, rows])
            low, high = self._span(rows)
        width = self._slicing.width
        if low // width == high // width:
            self._add(low // width, rows, low)
            return
        for slice_, part in split(rows, pl.col(self._ticks) // width):
            self._add(slice_, part, self._span(part)[0])

    def _span(self, rows: Chunk) -> tuple[int, int]:
        times = rows[self._ticks].to_numpy()
        return int(times.min()), int(times.max())

    def _add(self, slice_: int, rows: Chunk, least: int) -> None:
        add(self._store, self._name, slice_, rows)
        self._least[slice_] = min(self._least.get(slice_, least), least)

    def take(self, below: int | None = None) -> Chunk | None:
        """Take out all rows, or those before a tick; None if there are none."""
        parts = []
        for slice_ in self._store.slices(self._name):
            if below is not None and slice_ * self._slicing.width >= below:
                break
            if below is not None and self._least[slice_] >= below:
                continue
            rows = take(self._store, self._name, slice_, slice_ + 1)
            assert rows is not None
            del self._least[slice_]
            if below is not None and (slice_ + 1) * self._slicing.width > below:
                passed = rows[self._ticks] < below
                if not passed.all():
                    later = rows.filter(~passed)
                    self._store.put(self._name, slice_, later)
                    self._least[slice_] = self._span(later)[0]
                    rows = rows.filter(passed)
            parts.append(rows)
        return pl.concat(parts) if parts else None

    @property
    def least(self) -> int | None:
        """The earliest time that is waited for."""
        return min(self._least.values(), default=None)

    def snapshot(self) -> dict[str, Any]:
        """The width of a slice and the least times."""
        return {"slicing": self._slicing.snapshot(), "least": dict(self._least)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._slicing.restore(saved["slicing"])
        self._least = dict(saved["least"])
