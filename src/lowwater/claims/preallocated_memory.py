"""The naive memory that on-demand paging is compared with: one location a key for ever (§7.3).

When the row of a key goes, its location stays the key's and stays as it is: it is dirty, and only
the next row of the same key makes use of it. So there are as many locations as keys. The location
of key number ``n`` is location ``n``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.columns import Mask
from lowwater.updates.memory.pages import PAGE_ROWS, Locations, PagedRows, PagePool, Slots

Owners = NDArray[np.int64]
"""The numbers of the keys that rows belong to; keys are numbered from 0 in the order they come."""


class PreallocatedMemory:
    """A location for every key."""

    def __init__(self, schema: pl.Schema, page_rows: int = PAGE_ROWS):
        self._rows = PagedRows(schema, page_rows)
        self._given: Mask = np.zeros(0, bool)
        self._current: Mask = np.zeros(0, bool)
        self.used = 0
        """Locations that hold a row."""
        self.dirty = 0
        """Locations handed out that hold no current row."""

    @property
    def pool(self) -> PagePool:
        """Where its pages come from."""
        return self._rows.pool

    @property
    def allocated(self) -> int:
        """Locations of the pages in use."""
        return self.pages * self.pool.page_rows

    @property
    def bytes(self) -> int:
        """Bytes of the pages in use."""
        return self.pool.bytes

    @property
    def pages(self) -> int:
        """Pages in use."""
        return self.pool.pages

    def add(self, rows: Chunk, owners: Owners) -> Locations:
        """Put rows of keys that have none in the locations of these; where they are now."""
        locations = owners.astype(np.int64)
        self._reach(int(locations.max(initial=-1)))
        self.dirty -= int(self._given[locations].sum())
        self._given[locations] = self._current[locations] = True
        self.used += len(locations)
        self._rows.write(locations, rows)
        return locations

    def _reach(self, location: int) -> None:
        while self.allocated <= location:
            self._rows.alloc()
        more = (0, self.allocated - len(self._given))
        self._given, self._current = np.pad(self._given, more), np.pad(self._current, more)

    def overwrite(self, locations: Locations, rows: Chunk) -> None:
        """Put rows in the place of others; the last one where a location is given repeatedly."""
        self._rows.write(locations, rows)

    def read(self, locations: Locations) -> Chunk:
        """The rows in locations, in the order given; a location may be given repeatedly."""
        return self._rows.read(locations)

    def remove(self, locations: Locations) -> None:
        """Make locations dirty."""
        locations = np.unique(locations)
        self._current[locations] = False
        self.used -= len(locations)
        self.dirty += len(locations)

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write pages that changed since the last time; all else that :meth:`load` needs."""
        pages = self._rows.save(store, name, self._handed_out)
        given, current = (np.packbits(each).tobytes() for each in (self._given, self._current))
        return {"pages": pages, "given": given, "current": current}

    def _handed_out(self, page: int) -> Slots:
        first = page * self.pool.page_rows
        return np.flatnonzero(self._given[first : first + self.pool.page_rows])

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Go on from what was saved, in a new memory; pages are read when touched."""
        self._rows.load(store, name, saved["pages"])
        self._given, self._current = (
            np.unpackbits(np.frombuffer(saved[each], np.uint8), count=self.allocated).astype(bool)
            for each in ("given", "current")
        )
        self.used = int(self._current.sum())
        self.dirty = int(self._given.sum()) - self.used
