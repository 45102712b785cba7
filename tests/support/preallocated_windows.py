"""The naive window buffers that blocks are tested beside: as many locations a key as it may need.

With one row a tick, a window of ``omega`` ticks that slides by ``delta`` needs at most ``omega +
delta - 1`` of them (UpStream §7.2, §7.3). They are the key's for ever; what is not needed any more
stays where it is until a later row of the same key takes its place. Key number ``n`` has the
locations from ``n * capacity`` on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.blocks import TIME, Times
from lowwater.updates.memory.columns import Mask
from lowwater.updates.memory.pages import PAGE_ROWS, Locations, PagedRows, Slots
from tests.support.window_buffers import objects


class PreallocatedBuffer:
    """The rows of one key, in locations that are its own."""

    def __init__(self, memory: PreallocatedWindows, first: int):
        self._memory, self._first = memory, first
        self.held: Locations = np.empty(0, np.int64)
        """Where rows are, in the order they came."""
        self.times: Times = np.empty(0, np.int64)
        """Their times."""

    @property
    def rows(self) -> int:
        """Rows held."""
        return len(self.held)

    @property
    def bytes(self) -> int:
        """Bytes of its locations and of the objects in them."""
        return self._memory.bytes_of(self._first)

    def append(self, rows: Chunk, times: Times) -> None:
        """Add rows, in any order of time."""
        self._memory.write_at(self.place(times), rows, times)

    def place(self, times: Times) -> Locations:
        """Make room for rows with these times; where to put them."""
        own = np.arange(self._first, self._first + self._memory.capacity)
        empty = np.setdiff1d(own, self.held)[: len(times)]
        if len(empty) < len(times):
            raise ValueError(f"a key has no more than {self._memory.capacity} locations")
        self.held = np.concatenate([self.held, empty])
        self.times = np.concatenate([self.times, times])
        return empty

    def between(self, start: int, end: int) -> Chunk:
        """The rows with ``start <= time < end``, in the order they came."""
        return self._memory.read_rows(self.held[(start <= self.times) & (self.times < end)])

    def drop_before(self, time: int) -> None:
        """Rows below a time are not needed any more."""
        stay = self.times >= time
        self.held, self.times = self.held[stay], self.times[stay]


class PreallocatedWindows(PagedRows):
    """The window buffers of all keys, of one size."""

    def __init__(self, schema: pl.Schema, capacity: int, page_rows: int = PAGE_ROWS):
        self.capacity = capacity
        super().__init__(pl.Schema([(TIME, pl.Int64()), *schema.items()]), page_rows)
        self._buffers: dict[int, PreallocatedBuffer] = {}
        self._written: Mask = np.zeros(0, bool)

    @property
    def used(self) -> int:
        """Locations that hold a row."""
        return sum(buffer.rows for buffer in self._buffers.values())

    @property
    def dirty(self) -> int:
        """Locations of keys that hold no row."""
        return len(self._buffers) * self.capacity - self.used

    def buffer(self, owner: int) -> PreallocatedBuffer:
        """The window buffer of a key, by its number."""
        found = self._buffers.get(owner)
        if found is None:
            found = self._buffers[owner] = PreallocatedBuffer(self, owner * self.capacity)
            while self.pages * self.page_rows < (owner + 1) * self.capacity:
                self.alloc()
            self._written = np.pad(
                self._written, (0, self.pages * self.page_rows - len(self._written))
            )
        return found

    def append(
        self, owners: Sequence[int], counts: Sequence[int], rows: Chunk, times: Times
    ) -> None:
        """Add rows to many buffers: as many as counted to each, one key after the other."""
        parts = np.split(times, np.cumsum(counts)[:-1]) if counts else []
        places = [self.buffer(owner).place(part) for owner, part in zip(owners, parts, strict=True)]
        self.write_at(np.concatenate([np.empty(0, np.int64), *places]), rows, times)

    def write_at(self, places: Locations, rows: Chunk, times: Times) -> None:
        """Put rows in places that buffers made room for."""
        self.write(places, rows.with_columns(pl.Series(TIME, times)))
        self._written[places] = True

    def read_rows(self, places: Locations) -> Chunk:
        """The rows in places, without their times."""
        return self.read(places).drop(TIME)

    def bytes_of(self, first: int) -> int:
        """Bytes of a key's locations and of the objects in them."""
        own = np.arange(first, first + self.capacity)
        return self.capacity * self.layout.row_bytes + objects(self, own)

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write pages that changed since the last time; all else that :meth:`load` needs."""

        def slots(page: int) -> Slots:
            size = self.page_rows
            return np.flatnonzero(self._written[page * size : (page + 1) * size])

        return {
            "pages": self.save_pages(store, name, slots),
            "written": np.packbits(self._written).tobytes(),
            "buffers": {n: (b.held.tolist(), b.times.tolist()) for n, b in self._buffers.items()},
        }

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Go on from what was saved, in a new memory; pages are read when touched."""
        self.load_pages(store, name, saved["pages"])
        bits = np.frombuffer(saved["written"], np.uint8)
        self._written = np.unpackbits(bits, count=self.pages * self.page_rows).astype(bool)
        for owner, (held, times) in saved["buffers"].items():
            buffer = self.buffer(owner)
            buffer.held, buffer.times = np.array(held, np.int64), np.array(times, np.int64)
