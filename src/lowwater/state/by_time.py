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
        times = rows[self._ticks]
        if self._slicing.observe(rows.height, int(times.min()), int(times.max())):  # type: ignore[arg-type]
            held = self.take()
            rows = rows if held is None else pl.concat([held, rows])
        for slice_, part in split(rows, pl.col(self._ticks) // self._slicing.width):
            add(self._store, self._name, slice_, part)
            least = int(part[self._ticks].min())  # type: ignore[arg-type]
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
                passed = pl.col(self._ticks) < below
                later = rows.filter(~passed)
                if later.height:
                    self._store.put(self._name, slice_, later)
                    self._least[slice_] = int(later[self._ticks].min())  # type: ignore[arg-type]
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
