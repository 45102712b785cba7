"""Where the rows of a window-oblivious join are: kept for others, waiting to be sorted, aside.

Invariant: a row is in one place only. What is aside is on disk where the store has one; all else is
in memory and counts as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from lowwater.joins.multi_join import rows_of
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.aside import Aside
from lowwater.joins.oblivious.met import Met
from lowwater.joins.oblivious.records import Ticks
from lowwater.operators.time_buffer import TimeBuffer
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import Chunk


class Places:
    """The rows of all inputs."""

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        slice_ticks: Sequence[int],
        slicing: Sequence[Slicing],
    ):
        self._store, self._shape, self._slicing = store, shape, slicing
        self._times = [shape.names[port][shape.times[port]] for port in shape.ports]
        self.waiting = [
            TimeBuffer(store, _waiting(port), self._times[port], shape.domain, slice_ticks[port])
            for port in shape.ports
        ]
        self.met = Met()
        self.aside = [Aside(store, port, shape.inside_time(port)) for port in shape.ports]

    def ticks(self, port: int, rows: Chunk) -> Ticks:
        """The join attribute of rows of an input."""
        return self._shape.domain.array_of(rows[self._times[port]])

    @property
    def memory(self) -> int:
        """Bytes of rows in memory."""
        sizes = self._store.bytes_of
        found = (sizes(rows_of(port)) + sizes(_waiting(port)) for port in self._shape.ports)
        return sum(found) + sum(each.bytes for each in self.aside) + self.met.bytes

    @property
    def rows(self) -> int:
        """Rows in memory."""
        return sum(map(self.held, self._shape.ports))

    def held(self, port: int) -> int:
        """Rows of an input in memory."""
        name = rows_of(port)
        kept = sum(self._store.rows_in(name, each) for each in self._store.slices(name))
        return kept + self.waiting[port].rows + self.aside[port].loose

    def from_slice_of(self, port: int, value: int) -> int:
        """About how many rows of an input are not below a value; none is read for it."""
        name, slice_ = rows_of(port), value // self._slicing[port].width
        kept = sum(self._store.rows_in(name, each) for each in self._store.slices(name, slice_))
        return kept + self.waiting[port].rows + self.aside[port].loose

    def values(self, port: int) -> Ticks:
        """The join attribute of an input's rows in memory, in no order."""
        names = (rows_of(port), _waiting(port), self.aside[port].loose_name)
        chunks = [rows for name in names if (rows := read(self._store, name)) is not None]
        parts = [self.ticks(port, rows) for rows in chunks]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def take_from(self, port: int, value: int) -> tuple[Chunk | None, Chunk | None]:
        """Take out the rows of an input in memory from a value on: those that wait and those that
        are kept, but not those on their way out."""
        time, name = self._shape.inside_time(port), rows_of(port)
        waiting = self.waiting[port].take_from(value)
        found = []
        for slice_ in self._store.slices(name):
            rows = take(self._store, name, slice_, slice_ + 1)
            assert rows is not None
            found.append(rows.filter(time >= value))
            stay = rows.filter(time < value)
            if stay.height:
                self._store.put(name, slice_, stay)
        kept = [rows for rows in found if rows.height]
        return waiting, pl.concat(kept) if kept else None

    def drop_met(self, below: int) -> None:
        """Drop the rows that have met all they can; remember their values, but not below one."""
        met = self.met.settle(below)
        for port in self._shape.ports if len(met) else ():
            name, time = rows_of(port), self._shape.inside_time(port)
            for slice_ in np.unique(met // self._slicing[port].width).tolist():
                rows = take(self._store, name, slice_, slice_ + 1)
                if rows is None:
                    continue
                stay = rows.filter(~time.is_in(pl.Series(met).implode()))
                if stay.height:
                    self._store.put(name, slice_, stay)

    def snapshot(self) -> Any:
        """What is known of the rows that wait, and of those that have met."""
        waiting, aside = ([p.snapshot() for p in each] for each in (self.waiting, self.aside))
        return waiting, aside, self.met.snapshot()

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        for port in self._shape.ports:
            self.waiting[port].restore(saved[0][port])
            self.aside[port].restore(saved[1][port])
        self.met.restore(saved[2])


def _waiting(port: int) -> str:
    return f"waiting{port}"
