"""Pages: the memory of the rows of an update queue, taken from a pool and given back.

A page is a fixed number of locations for rows of one schema, with one array for each column. It has
a number; the location of a row is also a number, ``page number * locations of a page + slot``.

Invariants: the bytes of a page follow from the rows in it alone (its arrays, a mask where a column
has a null, and the objects of values without a fixed width); the bytes of a pool are the sum over
the pages in use; a page that is given back holds no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.peak_counter import PeakCounter
from lowwater.state.store import ChunkStore, read
from lowwater.stream.element import Chunk
from lowwater.updates.memory.columns import (
    Column,
    ColumnValues,
    Index,
    Layout,
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


class _Numbers:
    """The cells of a column of fixed width in a page."""

    def __init__(self, column: Column, rows: int):
        self._values = np.zeros(rows, column.kind)
        self._nulls: Mask | None = None

    def put(self, slots: Slots, cells: ColumnValues) -> int:
        """Write cells, each slot given once; return how many bytes more they take."""
        self._values[slots] = cells.values
        if self._nulls is None and cells.nulls is None:
            return 0
        return self._mark(slots, False if cells.nulls is None else cells.nulls)

    def clear(self, slots: Slots) -> int:
        """Drop cells; return how many bytes more the column takes, at most 0."""
        return 0 if self._nulls is None else self._mark(slots, False)

    def _mark(self, slots: Slots, nulls: Mask | bool) -> int:
        mask = np.zeros(len(self._values), bool) if self._nulls is None else self._nulls
        before = 0 if self._nulls is None else mask.nbytes
        mask[slots] = nulls
        self._nulls = mask if mask.any() else None
        return (0 if self._nulls is None else mask.nbytes) - before

    def get(self, slots: Slots) -> ColumnValues:
        """Return the cells of slots."""
        return ColumnValues(
            self._values[slots], None if self._nulls is None else self._nulls[slots]
        )


class _Objects:
    """The cells of any other column in a page."""

    def __init__(self, column: Column, rows: int):
        self._values = np.full(rows, None, column.kind)

    def put(self, slots: Slots, cells: ColumnValues) -> int:
        """Write cells, each slot given once; return how many bytes more they take."""
        more = payload(cells.values) - payload(self._values[slots])
        self._values[slots] = cells.values
        return more

    def clear(self, slots: Slots) -> int:
        """Drop cells; return how many bytes more the column takes, at most 0."""
        freed = payload(self._values[slots])
        self._values[slots] = None
        return -freed

    def get(self, slots: Slots) -> ColumnValues:
        """Return the cells of slots."""
        return ColumnValues(self._values[slots], None)


_Array = _Numbers | _Objects


def _array(column: Column, rows: int) -> _Array:
    return (_Objects if column.kind.hasobject else _Numbers)(column, rows)


class RowPage:
    """A page: locations for rows, with one array for each column.

    After a restart a page is in the store: its bytes are known, and it is read when one of its
    locations is touched.
    """

    def __init__(
        self,
        number: int,
        layout: Layout,
        rows: int,
        taken: PeakCounter,
        unread: tuple[int, Fetch] | None = None,
    ):
        self.number = number
        self._layout, self._rows, self._taken = layout, rows, taken
        self._arrays: list[_Array] = []
        self._bytes = 0
        self._fetch: Fetch | None = None
        if unread is None:
            self._prepare()
            self._grow(rows * layout.row_bytes)
        else:
            size, self._fetch = unread
            self._grow(size)

    def _prepare(self) -> None:
        self._arrays = [_array(column, self._rows) for column in self._layout.columns]

    def _grow(self, more: int) -> None:
        self._bytes += more
        self._taken.add(more)

    def _open(self) -> None:
        if self._fetch is None:
            return
        slots, rows = self._fetch()
        self._fetch = None
        self._prepare()
        objects = self._put(slots, self._layout.cells(rows))
        self._grow(self._rows * self._layout.row_bytes + objects - self._bytes)

    @property
    def bytes(self) -> int:
        """Bytes of memory that it takes."""
        return self._bytes

    def write(self, slots: Slots, rows: Chunk) -> None:
        """Replace the rows in locations, each given once."""
        self.put(slots, self._layout.cells(rows))

    def put(self, slots: Slots, cells: list[ColumnValues]) -> None:
        """Like :meth:`write`, by column."""
        self._open()
        self._grow(self._put(slots, cells))

    def _put(self, slots: Slots, cells: list[ColumnValues]) -> int:
        return sum(array.put(slots, own) for array, own in zip(self._arrays, cells, strict=True))

    def read(self, slots: Slots) -> Chunk:
        """Return the rows in locations, in the order given."""
        return self._layout.rows(self.get(slots))

    def get(self, slots: Slots) -> list[ColumnValues]:
        """Like :meth:`read`, by column."""
        self._open()
        return [array.get(slots) for array in self._arrays]

    def numbers(self, column: int, slots: Slots) -> NDArray[Any]:
        """Return the numbers of a column of fixed width in locations; those of nulls mean
        nothing."""
        self._open()
        return self._arrays[column].get(slots).values

    def clear(self, slots: Slots) -> None:
        """Drop the rows in locations, each given once."""
        self._open()
        self._grow(sum(array.clear(slots) for array in self._arrays))

    def drop(self) -> None:
        """Free its memory."""
        self._grow(-self._bytes)
        self._arrays, self._fetch = [], None


class PagePool:
    """The pages in use and the free numbers of pages; the least free number is used next."""

    def __init__(self, schema: pl.Schema, page_rows: int = PAGE_ROWS):
        self.page_rows = page_rows
        self.layout = Layout(schema)
        self._taken, self._in_use = PeakCounter(), PeakCounter()
        self._free: list[int] = []
        self._next = 0

    @property
    def pages(self) -> int:
        """Number of pages in use."""
        return self._in_use.now

    @property
    def pages_peak(self) -> int:
        """Greatest number of pages that were in use at a time."""
        return self._in_use.peak

    @property
    def bytes(self) -> int:
        """Bytes of all pages in use."""
        return self._taken.now

    @property
    def bytes_peak(self) -> int:
        """Greatest number of bytes that they took at a time."""
        return self._taken.peak

    def alloc(self) -> RowPage:
        """Return a new page with the least number that is free."""
        if not self._free:
            heappush(self._free, self._next)
            self._next += 1
        self._in_use.add(1)
        return RowPage(heappop(self._free), self.layout, self.page_rows, self._taken)

    def free(self, page: RowPage) -> None:
        """Give a page back."""
        page.drop()
        self._in_use.add(-1)
        heappush(self._free, page.number)

    def restore(self, sizes: dict[int, int], fetch: Callable[[int], Fetch]) -> list[RowPage]:
        """Return the pages of a snapshot, given their bytes by number, in a new pool."""
        self._next = max(sizes, default=-1) + 1
        self._free = [number for number in range(self._next) if number not in sizes]
        self._in_use.add(len(sizes))
        return [
            RowPage(number, self.layout, self.page_rows, self._taken, (size, fetch(number)))
            for number, size in sizes.items()
        ]


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
    """The rows of all pages, by location."""

    def __init__(self, schema: pl.Schema, page_rows: int):
        self.pool = PagePool(schema, page_rows)
        self._pages: dict[int, RowPage] = {}
        self._changed: set[int] = set()

    def alloc(self) -> int:
        """Take a page from the pool; return its number."""
        page = self.pool.alloc()
        self._pages[page.number] = page
        self._changed.add(page.number)
        return page.number

    def free(self, number: int) -> None:
        """Give a page back."""
        self.pool.free(self._pages.pop(number))
        self._changed.add(number)

    def write(self, locations: Locations, rows: Chunk) -> None:
        """Write rows to locations; the last one counts where a location is given repeatedly."""
        cells = self.pool.layout.cells(rows)
        if (locations[1:] <= locations[:-1]).any():
            order = np.argsort(locations, kind="stable")
            ordered = locations[order]
            last = np.append(ordered[1:] != ordered[:-1], True)
            locations, order = ordered[last], order[last]
            cells = [each.at(order) for each in cells]
        for page, part, slots in self._parts(locations):
            page.put(slots, [each.at(part) for each in cells])
            self._changed.add(page.number)

    def read(self, locations: Locations) -> Chunk:
        """Return the rows in locations, in the order given."""
        order = None
        if (locations[1:] < locations[:-1]).any():
            order = np.argsort(locations, kind="stable")
            locations = locations[order]
        found = [page.get(slots) for page, _, slots in self._parts(locations)]
        if not found:
            return self.pool.layout.empty
        cells = [joined(column) for column in zip(*found, strict=True)]
        if order is not None:
            back = np.empty(len(order), np.int64)
            back[order] = np.arange(len(order))
            cells = [each.at(back) for each in cells]
        return self.pool.layout.rows(cells)

    def numbers(self, column: int, locations: Locations) -> NDArray[Any]:
        """Return the numbers of a column of fixed width in locations that ascend."""
        return np.concatenate(
            [page.numbers(column, slots) for page, _, slots in self._parts(locations)]
        )

    def clear(self, locations: Locations) -> None:
        """Drop the rows in locations that ascend."""
        for page, _, slots in self._parts(locations):
            page.clear(slots)
            self._changed.add(page.number)

    def _parts(self, locations: Locations) -> Iterator[tuple[RowPage, slice, Slots]]:
        numbers, slots = np.divmod(locations, self.pool.page_rows)
        for number, part in runs(numbers):
            yield self._pages[number], part, slots[part]

    # ---- saving ----------------------------------------------------------------------------

    def save(
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
                rows = self._pages[number].read(slots).with_columns(pl.Series(SLOT, slots))
                store.put(name, number, rows)
        self._changed.clear()
        return [(number, page.bytes) for number, page in self._pages.items()]

    def load(self, store: ChunkStore, name: str, saved: Any) -> None:
        """Continue from a snapshot in a new memory; pages are read when touched."""

        def fetch(number: int) -> Fetch:
            return lambda: _fetched(store, name, number)

        pages = self.pool.restore(dict(saved), fetch)
        self._pages = {page.number: page for page in pages}


def _fetched(store: ChunkStore, name: str, number: int) -> tuple[Slots, Chunk]:
    rows = read(store, name, number, number + 1)
    assert rows is not None
    return rows[SLOT].to_numpy(), rows.drop(SLOT)
