"""On-demand paging: a row takes a location when it comes and gives it back when it goes (§7.1).

Invariants: locations handed out are those that hold a row; all that ``empty_locations`` says of its
units holds for locations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.empty_locations import EmptyLocations
from lowwater.updates.memory.paged_rows import Locations, PagedRows
from lowwater.updates.memory.pages import PAGE_ROWS, PagePool


class OnDemandMemory:
    """Locations for rows, taken from a pool of pages as they are needed."""

    dirty = 0
    """Locations handed out that hold no current row: there are none."""

    def __init__(self, schema: pl.Schema, page_rows: int = PAGE_ROWS):
        self._rows = PagedRows(schema, page_rows)
        self._empty = EmptyLocations(page_rows, self._rows.alloc, self._rows.free)

    @property
    def pool(self) -> PagePool:
        """Where its pages come from."""
        return self._rows.pool

    @property
    def used(self) -> int:
        """Locations that hold a row."""
        return self._empty.used

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

    def add(self, rows: Chunk) -> Locations:
        """Put rows in empty locations; return these, in the order of the rows."""
        locations = self._empty.take(rows.height)
        self._rows.write(locations, rows)
        return locations

    def overwrite(self, locations: Locations, rows: Chunk) -> None:
        """Put rows in the place of others; the last one where a location is given repeatedly."""
        self._rows.write(locations, rows)

    def read(self, locations: Locations) -> Chunk:
        """The rows in locations, in the order given; a location may be given repeatedly."""
        return self._rows.read(locations)

    def remove(self, locations: Locations) -> None:
        """Drop rows; pages without any other row go."""
        self._rows.clear(self._empty.give_back(np.unique(locations)))

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write pages that changed since the last time; all else that :meth:`load` needs."""
        pages = self._rows.save(store, name, self._empty.taken)
        return {"pages": pages, "empty": self._empty.snapshot()}

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Go on from what was saved, in a new memory; pages are read when touched."""
        self._rows.load(store, name, saved["pages"])
        self._empty.restore(saved["empty"])
