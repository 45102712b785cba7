"""On-demand paging: a row takes a location when it arrives and gives it back when it leaves (§7.1).

Invariants: the taken locations are those that hold a row; a page is in use while one of its units
is taken; units of the page with the least number are taken first, once the last one is full.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk
from lowwater.updates.memory.columns import Mask
from lowwater.updates.memory.pages import PAGE_ROWS, Locations, PagedRows, Slots, runs

Units = NDArray[np.int64]
"""Locations or blocks of pages: ``page number * units of a page + number of the unit in it``."""


class EmptyLocations:
    """The units of pages: those that are taken, and the one that is taken next."""

    def __init__(self, units: int, alloc: Callable[[], int], free: Callable[[int], None]):
        self._units, self._alloc, self._free = units, alloc, free
        self._taken: dict[int, Mask] = {}
        self._pool: list[int] = []
        self._next_page: int | None = None
        self.used = 0
        """Number of units taken."""

    def take(self, count: int) -> Units:
        """Take empty units and return them (MemAdd)."""
        found = [np.empty(0, np.int64)]
        self.used += count
        while count:
            page = self._available()
            taken = self._taken[page]
            units = np.flatnonzero(~taken)[:count]
            taken[units] = True
            if taken.all():
                self._leave_pool(page)
            found.append(page * self._units + units)
            count -= len(units)
        return np.concatenate(found)

    def _available(self) -> int:
        if self._next_page is None and self._pool:
            self._next_page = self._pool[0]
        elif self._next_page is None:
            self._next_page = self._alloc()
            self._taken[self._next_page] = np.zeros(self._units, bool)
            insort(self._pool, self._next_page)
        return self._next_page

    def _leave_pool(self, page: int) -> None:
        del self._pool[bisect_left(self._pool, page)]
        if page == self._next_page:
            self._next_page = None

    def give_back(self, units: Units) -> Units:
        """Make units empty, given in ascending order; free pages without any other (MemRem).

        Return the units of pages that stay.
        """
        numbers, within = np.divmod(units, self._units)
        stay = [np.empty(0, np.int64)]
        for page, part in runs(numbers):
            taken = self._taken[page]
            if not taken[within[part]].all():
                raise KeyError(f"no row is at some of {units[part].tolist()}")
            if taken.all():
                insort(self._pool, page)
            taken[within[part]] = False
            if taken.any():
                stay.append(units[part])
                continue
            self._leave_pool(page)
            del self._taken[page]
            self._free(page)
        self.used -= len(units)
        return np.concatenate(stay)

    def taken(self, page: int) -> Slots:
        """Return the units taken of a page in use."""
        return np.flatnonzero(self._taken[page])

    def snapshot(self) -> dict[str, Any]:
        """Return which units are taken, a bit each."""
        masks = [mask for _, mask in sorted(self._taken.items())]
        bits = np.packbits(np.concatenate(masks)).tobytes() if masks else b""
        return {"pages": sorted(self._taken), "taken": bits, "next_page": self._next_page}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        pages = saved["pages"]
        bits = np.unpackbits(
            np.frombuffer(saved["taken"], np.uint8), count=len(pages) * self._units
        )
        masks = bits.astype(bool).reshape(len(pages), self._units)
        self._taken = dict(zip(pages, masks, strict=True))
        self._pool = [page for page, mask in self._taken.items() if not mask.all()]
        self._next_page = saved["next_page"]
        self.used = int(masks.sum())


class OnDemandMemory(PagedRows):
    """Rows in locations that are taken on demand."""

    def __init__(self, schema: pl.Schema, page_rows: int = PAGE_ROWS):
        super().__init__(schema, page_rows)
        self._empty = EmptyLocations(page_rows, self.alloc, self.free)

    @property
    def used(self) -> int:
        """Number of locations that hold a row."""
        return self._empty.used

    def add(self, rows: Chunk) -> Locations:
        """Write rows to empty locations; return these, in the order of the rows."""
        locations = self._empty.take(rows.height)
        self.write(locations, rows)
        return locations

    def remove(self, locations: Locations) -> None:
        """Drop rows; free pages without any other row."""
        self.clear(self._empty.give_back(np.sort(locations)))

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write the pages that changed since the last call; return all else that :meth:`load`
        needs."""
        pages = self.save_pages(store, name, self._empty.taken)
        return {"pages": pages, "empty": self._empty.snapshot()}

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Set a new memory to a snapshot; pages are read when touched."""
        self.load_pages(store, name, saved["pages"])
        self._empty.restore(saved["empty"])
