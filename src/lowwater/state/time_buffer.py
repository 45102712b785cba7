"""Rows that wait until a mark passes their time.

Merges, sorts and ordered joins hold rows back until no earlier one can come; a sliding window holds
rows until they leave it. The rows are stored in slices of time, so a release reads only the slices
that have a row to release, and rewrites only the one the mark lies in.

Invariants: a row is in the buffer from :meth:`TimeBuffer.put` until a release reaches its time; of
each slice that holds a row, the least and greatest time, the rows and the bytes are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from lowwater.state.peak_counter import PeakCounter
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore, add, split, take
from lowwater.stream.element import END_OF_TIME, Chunk
from lowwater.stream.time_domain import TimeDomain

TICKS = TimeDomain(pl.Int64(), 1)
"""The domain of a column that holds ticks."""


class _Slice(NamedTuple):
    """The least and greatest time of the rows in a slice, their number and their bytes."""

    least: int
    greatest: int
    rows: int
    bytes: int


class TimeBuffer:
    """Holds rows under a name in a store until a release reaches their time.

    ``time`` is the time column, of ``domain``. Rows of equal time are sorted by ``then``, and leave
    in the order in which they came if that is empty. ``slice_ticks`` is the least width of a slice.
    """

    def __init__(
        self,
        store: ChunkStore,
        name: str,
        time: str,
        slice_ticks: int,
        domain: TimeDomain = TICKS,
        then: Sequence[pl.Expr | str] = (),
    ):
        self._store, self._name = store, name
        self._time, self._domain, self._then = time, domain, list(then)
        self._ticks = domain.to_ticks(pl.col(time))
        self._slicing = Slicing(slice_ticks)
        self._slices: dict[int, _Slice] = {}
        self._rows, self._bytes = PeakCounter(), PeakCounter()

    def __bool__(self) -> bool:
        return bool(self._slices)

    @property
    def rows(self) -> int:
        """Number of rows held."""
        return self._rows.now

    @property
    def rows_peak(self) -> int:
        """The greatest number of rows held at a time."""
        return self._rows.peak

    @property
    def bytes(self) -> int:
        """Approximate number of bytes of the rows held."""
        return self._bytes.now

    @property
    def bytes_peak(self) -> int:
        """The greatest number of bytes held at a time."""
        return self._bytes.peak

    @property
    def least(self) -> int:
        """The least time of a row held, in ticks; END_OF_TIME if there is none."""
        return self._slices[min(self._slices)].least if self._slices else END_OF_TIME

    def put(self, rows: Chunk) -> None:
        """Add rows."""
        if not rows.height:
            return
        low, high = self._span(rows)
        if self._slicing.observe(rows.height, low, high):
            held = [self._taken(slice_) for slice_ in sorted(self._slices)]
            for each in held:
                self._put_split(each)
        width = self._slicing.width
        if low // width == high // width:
            self._hold(low // width, rows, low, high)
        else:
            self._put_split(rows)

    def _span(self, rows: Chunk) -> tuple[int, int]:
        times = self._domain.array_of(rows[self._time])
        return int(times.min()), int(times.max())

    def _put_split(self, rows: Chunk) -> None:
        for slice_, part in split(rows, self._ticks // self._slicing.width):
            self._hold(slice_, part, *self._span(part))

    def _hold(self, slice_: int, rows: Chunk, low: int, high: int) -> None:
        add(self._store, self._name, slice_, rows)
        size = int(rows.estimated_size())
        least, greatest, count, total = self._slices.get(slice_, _Slice(low, high, 0, 0))
        self._slices[slice_] = _Slice(
            min(least, low), max(greatest, high), count + rows.height, total + size
        )
        self._rows.add(rows.height)
        self._bytes.add(size)

    def _taken(self, slice_: int) -> Chunk:
        """Remove a slice and return its rows."""
        held = self._slices.pop(slice_)
        self._rows.add(-held.rows)
        self._bytes.add(-held.bytes)
        rows = take(self._store, self._name, slice_, slice_ + 1)
        assert rows is not None
        return rows

    def upto(self, mark: int, staying: pl.Expr | None = None) -> Chunk | None:
        """Remove and return the rows not above a mark, in order; None if there are none.

        Rows at the mark itself for which the condition ``staying`` is true are not removed.
        """
        released = self._release(mark, staying)
        return pl.concat(self.sorted(each) for each in released) if released else None

    def take(self, below: int = END_OF_TIME + 1) -> Chunk | None:
        """Remove and return the rows below a time, or all, unsorted; None if there are none."""
        released = self._release(below - 1, None)
        return pl.concat(released) if released else None

    def _release(self, mark: int, staying: pl.Expr | None) -> list[Chunk]:
        released: list[Chunk] = []
        for slice_ in sorted(s for s, held in self._slices.items() if held.least <= mark):
            greatest = self._slices[slice_].greatest
            rows = self._taken(slice_)
            if greatest > mark or (greatest == mark and staying is not None):
                stays = self._ticks > mark
                if staying is not None:
                    stays = stays | ((self._ticks == mark) & staying)
                later = rows.filter(stays)
                if later.height:
                    self._hold(slice_, later, *self._span(later))
                rows = rows.filter(~stays)
            if rows.height:
                released.append(rows)
        return released

    def take_from(self, time: int) -> Chunk | None:
        """Remove and return the rows not below a time, unsorted; None if there are none."""
        taken = []
        for slice_ in [each for each, held in self._slices.items() if held.greatest >= time]:
            rows = self._taken(slice_)
            taken.append(rows.filter(self._ticks >= time))
            stay = rows.filter(self._ticks < time)
            if stay.height:
                self._put_split(stay)
        return pl.concat(taken) if taken else None

    def sorted(self, rows: Chunk) -> Chunk:
        """Return rows in the order in which they leave."""
        if rows.height == 1:
            return rows
        return rows.sort(self._time, *self._then, maintain_order=True)

    def snapshot(self) -> Any:
        """Return the times and sizes of all slices, the width of slices and the counters."""
        slices = {slice_: tuple(each) for slice_, each in self._slices.items()}
        return slices, self._slicing.snapshot(), self._rows.saved(), self._bytes.saved()

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        slices, slicing, rows, size = saved
        self._slices = {slice_: _Slice(*each) for slice_, each in slices.items()}
        self._slicing.restore(slicing)
        self._rows, self._bytes = PeakCounter(*rows), PeakCounter(*size)
