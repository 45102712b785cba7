"""Rows that wait for a mark to pass them, by time.

Merges, sorts and ordered joins hold rows back until no earlier one can come. They are kept in
slices of time, so that letting some go reads only the slices that have any of them.

Invariant: a row is here from :meth:`TimeBuffer.put` until a mark at or above its time is given to
:meth:`TimeBuffer.upto`, which gives rows by time; rows of equal time by ``then``, or else as they
came.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore, add, split, take
from lowwater.stream.element import END_OF_TIME, Chunk
from lowwater.stream.time_domain import TimeDomain


class _Held(NamedTuple):
    """What is held of a slice: the least and greatest time, and how much."""

    least: int
    most: int
    rows: int
    bytes: int


class TimeBuffer:
    """Holds rows under a name in a store, until a mark passes their time."""

    def __init__(
        self,
        store: ChunkStore,
        name: str,
        time: str,
        domain: TimeDomain,
        slice_ticks: int,
        then: Sequence[pl.Expr | str] = (),
    ):
        self._store, self._name = store, name
        self._time, self._domain, self._then = time, domain, list(then)
        self._ticks = domain.to_ticks(pl.col(time))
        self._slicing = Slicing(slice_ticks)
        self._held: dict[int, _Held] = {}
        self.rows_peak = self.bytes_peak = 0

    def __bool__(self) -> bool:
        return bool(self._held)

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return sum(each.rows for each in self._held.values())

    @property
    def bytes(self) -> int:
        """About how many bytes they take in memory."""
        return sum(each.bytes for each in self._held.values())

    @property
    def least(self) -> int:
        """The least time of a row that waits; the end of time if none does."""
        return self._held[min(self._held)].least if self._held else END_OF_TIME

    def put(self, rows: Chunk) -> None:
        """Let rows wait."""
        times = self._domain.array_of(rows[self._time])
        low, high = int(times.min()), int(times.max())
        if self._slicing.observe(rows.height, low, high):
            held = take(self._store, self._name)
            self._held.clear()
            if held is not None:
                self._put_apart(held)
        width = self._slicing.width
        if low // width == high // width:
            self._hold(low // width, rows, low, high)
        else:
            self._put_apart(rows)
        self.rows_peak = max(self.rows_peak, self.rows)
        self.bytes_peak = max(self.bytes_peak, self.bytes)

    def _put_apart(self, rows: Chunk) -> None:
        for slice_, part in split(rows, self._ticks // self._slicing.width):
            times = self._domain.array_of(part[self._time])
            self._hold(slice_, part, int(times.min()), int(times.max()))

    def _hold(self, slice_: int, rows: Chunk, low: int, high: int) -> None:
        add(self._store, self._name, slice_, rows)
        least, most, count, size = self._held.get(slice_, _Held(low, high, 0, 0))
        count, size = count + rows.height, size + int(rows.estimated_size())
        self._held[slice_] = _Held(min(least, low), max(most, high), count, size)

    def upto(self, mark: int, staying: pl.Expr | None = None) -> Chunk | None:
        """Every row not above the mark, in order; it waits no more. None if there is none.

        ``staying``: rows of the mark itself that go on waiting.
        """
        released: list[Chunk] = []
        for slice_ in sorted(s for s, held in self._held.items() if held.least <= mark):
            rows = take(self._store, self._name, slice_, slice_ + 1)
            assert rows is not None
            most = self._held.pop(slice_).most
            if most > mark or (most == mark and staying is not None):
                stays = self._ticks > mark
                if staying is not None:
                    stays = stays | ((self._ticks == mark) & staying)
                later = rows.filter(stays)
                if later.height:
                    least = int(self._domain.array_of(later[self._time]).min())
                    self._hold(slice_, later, least, most)
                rows = rows.filter(~stays)
            if rows.height:
                released.append(self.sorted(rows))
        if not released:
            return None
        return pl.concat(released) if len(released) > 1 else released[0]

    def take_from(self, time: int) -> Chunk | None:
        """Every row at or above a time; it waits here no more. None if there is none."""
        taken = []
        for slice_ in [each for each, held in self._held.items() if held.most >= time]:
            rows = take(self._store, self._name, slice_, slice_ + 1)
            assert rows is not None
            del self._held[slice_]
            taken.append(rows.filter(self._ticks >= time))
            stay = rows.filter(self._ticks < time)
            if stay.height:
                self._put_apart(stay)
        return pl.concat(taken) if taken else None

    def sorted(self, rows: Chunk) -> Chunk:
        """Rows in the order in which they leave."""
        if rows.height == 1:
            return rows
        return rows.sort(self._time, *self._then, maintain_order=True)

    def snapshot(self) -> Any:
        """The span of times per slice."""
        held = {slice_: tuple(each) for slice_, each in self._held.items()}
        return held, self._slicing.snapshot(), self.rows_peak, self.bytes_peak

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        held, slicing, self.rows_peak, self.bytes_peak = saved
        self._held = {slice_: _Held(*each) for slice_, each in held.items()}
        self._slicing.restore(slicing)
