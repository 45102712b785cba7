"""Pages: the memory of the rows of an update queue, taken and given back as rows need it.

A page is a fixed number of locations for rows of one schema, with one array for each column. It has
a number; the location of a row is also a number, ``page number * locations of a page + slot``.

Invariants: the bytes of a page follow from the rows in it alone (its arrays, a mask where a column
has a null, and the objects of values without a fixed width); a page that is given back holds no
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.peak_counter import PeakCounter
from lowwater.state.store import ChunkStore, read
from lowwater.stream.element import Chunk
from lowwater.updates.memory.columns import (
    CellLayout,
    Column,
    ColumnValues,
    Index,
    Mask,
    joined,
    payload,
)

PAGE_ROWS = 256
"""Number of locations of a page."""

Slots = Index
"""Locations by their number within a page."""
Fetch = Callable[[], tuple[Slots, Chunk]]
"""Reads the rows of a page that is not in memory yet; returns their slots and the rows."""


class _Cells:
    """The cells of a column in a page: an array, and a mask while one of its numbers is null."""

    def __init__(self, column: Column, rows: int):
        self._objects = column.kind.hasobject
        self._values = np.full(rows, None if self._objects else 0, column.kind)
        self._nulls: Mask | None = None

    def put(self, slots: Slots, cells: ColumnValues) -> int:
        """Write cells, each slot given once; return how many bytes more they take."""
        more = payload(cells.values) - payload(self._values[slots]) if self._objects else 0
        self._values[slots] = cells.values
        return more + self._mark(slots, False if cells.nulls is None else cells.nulls)

    def clear(self, slots: Slots) -> int:
        """Drop cells; return how many bytes more the column takes, at most 0."""
        if not self._objects:
            return self._mark(slots, False)
        freed = payload(self._values[slots])
        self._values[slots] = None
        return -freed

    def _mark(self, slots: Slots, nulls: Mask | bool) -> int:
        if self._nulls is None and nulls is False:
            return 0
        mask = np.zeros(len(self._values), bool) if self._nulls is None else self._nulls
        before = 0 if self._nulls is None else mask.nbytes
        mask[slots] = nulls
        self._nulls = mask if mask.any() else None
        return (0 if self._nulls is None else mask.nbytes) - before

    def get(self, slots: Slots) -> ColumnValues:
        """Return the cells of slots."""
        return ColumnValues(self._values, self._nulls).at(slots)


class RowPage:
    """A page: locations for rows, with one array for each column.

    After a restart a page is in the store: its bytes are known, and it is read when one of its
    locations is touched.
    """

    def __init__(
        self,
        layout: CellLayout,
        rows: int,
        taken: PeakCounter,
        unread: tuple[int, Fetch] | None = None,
    ):
        self._layout, self._rows, self._taken = layout, rows, taken
        self._fetch = unread and unread[1]
        self._columns = [] if unread else self._empty()
        self.bytes = 0
        """Bytes of memory that it takes."""
        self._grow(unread[0] if unread else rows * layout.row_bytes)

    def _empty(self) -> list[_Cells]:
        return [_Cells(column, self._rows) for column in self._layout.columns]

    def _grow(self, more: int) -> None:
        self.bytes += more
        self._taken.add(more)

    def _open(self) -> None:
        if self._fetch is None:
            return
        slots, rows = self._fetch()
        self._fetch, self._columns = None, self._empty()
        objects = self._put(slots, self._layout.cells(rows))
        self._grow(self._rows * self._layout.row_bytes + objects - self.bytes)

    def put(self, slots: Slots, cells: list[ColumnValues]) -> None:
        """Replace the rows in locations, each given once, by cells of each column."""
        self._open()
        self._grow(self._put(slots, cells))

    def _put(self, slots: Slots, cells: list[ColumnValues]) -> int:
        return sum(held.put(slots, own) for held, own in zip(self._columns, cells, strict=True))

    def get(self, slots: Slots) -> list[ColumnValues]:
        """Return the rows in locations, in the order given, as cells of each column."""
        self._open()
        return [held.get(slots) for held in self._columns]

    def numbers(self, column: int, slots: Slots) -> NDArray[Any]:
        """Return the numbers of a column of fixed width in locations, any number for a null."""
        self._open()
        return self._columns[column].get(slots).values

    def clear(self, slots: Slots) -> None:
        """Drop the rows in locations, each given once."""
        self._open()
        self._grow(sum(held.clear(slots) for held in self._columns))

    def drop(self) -> None:
        """Free its memory."""
        self._grow(-self.bytes)
        self._columns, self._fetch = [], None


Locations = NDArray[np.int64]
"""Locations of rows: ``page number * locations of a page + slot``."""

SLOT = "__slot"
"""The column of a saved page that holds the slots of its rows."""


def runs(numbers: Locations) -> Iterator[tuple[int, slice]]:
    """Yield each page number with its part of page numbers that ascend."""
    if not len(numbers):
        return
    ends = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    starts = [0, *ends.tolist()]
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield int(numbers[start]), slice(start, end)


class PagedRows:
    """The rows of all pages, by location; a new page has the least number that is free."""

    def __init__(self, schema: pl.Schema, page_rows: int = PAGE_ROWS):
        self.page_rows, self.layout = page_rows, CellLayout(schema)
        self._taken = PeakCounter()
        self._pages: dict[int, RowPage] = {}
        self._changed: set[int] = set()
        self._free: list[int] = []  # numbers of pages that were in use, as a heap
        self._next = 0

    @property
    def pages(self) -> int:
        """Number of pages in use."""
        return len(self._pages)

    @property
    def bytes(self) -> int:
        """Bytes of the pages in use."""
        return self._taken.now

    def alloc(self) -> int:
        """Take a page; return its number."""
        if not self._free:
            heappush(self._free, self._next)
            self._next += 1
        number = heappop(self._free)
        self._pages[number] = RowPage(self.layout, self.page_rows, self._taken)
        self._changed.add(number)
        return number

    def free(self, number: int) -> None:
        """Give a page back."""
        self._pages.pop(number).drop()
        self._changed.add(number)
        heappush(self._free, number)

    def write(self, locations: Locations, rows: Chunk) -> None:
        """Write rows to locations, each given once."""
        cells = self.layout.cells(rows)
        if (locations[1:] < locations[:-1]).any():
            order = np.argsort(locations)
            locations, cells = locations[order], [each.at(order) for each in cells]
        for number, part, slots in self._parts(locations):
            self._pages[number].put(slots, [each.at(part) for each in cells])
            self._changed.add(number)

    def read(self, locations: Locations) -> Chunk:
        """Return the rows in locations, in the order given."""
        order = None
        if (locations[1:] < locations[:-1]).any():
            order = np.argsort(locations, kind="stable")
            locations = locations[order]
        found = [self._pages[number].get(slots) for number, _, slots in self._parts(locations)]
        if not found:
            return self.layout.empty
        cells = [joined(column) for column in zip(*found, strict=True)]
        if order is not None:
            back = np.empty(len(order), np.int64)
            back[order] = np.arange(len(order))
            cells = [each.at(back) for each in cells]
        return self.layout.rows(cells)

    def numbers(self, column: int, locations: Locations) -> NDArray[Any]:
        """Return the numbers of a column of fixed width in locations that ascend."""
        parts = self._parts(locations)
        return np.concatenate([self._pages[n].numbers(column, slots) for n, _, slots in parts])

    def clear(self, locations: Locations) -> None:
        """Drop the rows in locations that ascend."""
        for number, _, slots in self._parts(locations):
            self._pages[number].clear(slots)
            self._changed.add(number)

    def _parts(self, locations: Locations) -> Iterator[tuple[int, slice, Slots]]:
        """Yield each page's number, its part of the locations, and their slots."""
        numbers, slots = np.divmod(locations, self.page_rows)
        for number, part in runs(numbers):
            yield number, part, slots[part]

    # ---- saving ----------------------------------------------------------------------------

    def save_pages(
        self, store: ChunkStore, name: str, held: Callable[[int], Slots]
    ) -> list[tuple[int, int]]:
        """Write the pages that changed; return the number and bytes of every page in use.

        ``held`` returns the slots of a page that hold rows. Store and name are the same in every
        call.
        """
        for number in sorted(self._changed):
            for key in store.scan(name, number, number + 1):
                store.remove(key)
            if number in self._pages:
                slots = held(number)
                rows = self.layout.rows(self._pages[number].get(slots))
                store.put(name, number, rows.with_columns(pl.Series(SLOT, slots)))
        self._changed.clear()
        return [(number, page.bytes) for number, page in self._pages.items()]

    def load_pages(self, store: ChunkStore, name: str, saved: Sequence[tuple[int, int]]) -> None:
        """Set a new memory to a snapshot; pages are read when touched."""
        for number, size in saved:
            fetch = partial(_fetched, store, name, number)
            unread = size, fetch
            self._pages[number] = RowPage(self.layout, self.page_rows, self._taken, unread)
        self._next = max(self._pages, default=-1) + 1
        self._free = [number for number in range(self._next) if number not in self._pages]


def _fetched(store: ChunkStore, name: str, number: int) -> tuple[Slots, Chunk]:
    rows = read(store, name, number, number + 1)
    assert rows is not None
    return rows[SLOT].to_numpy(), rows.drop(SLOT)
