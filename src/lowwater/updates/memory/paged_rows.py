"""Rows at locations in many pages: written, read and cleared together, and saved by the page.

Which locations hold a row is known to the manager of the memory, not here.

Invariants: a page has changed since it was saved exactly if it is among the changed ones, and only
these are written; a page that is in a store is not read before one of its locations is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore, read
from lowwater.stream.element import Chunk
from lowwater.updates.memory.columns import joined
from lowwater.updates.memory.pages import Fetch, Page, PagePool, Slots

Locations = NDArray[np.int64]
"""Where rows are: ``page number * locations of a page + slot``."""

SLOT = "__slot"
"""The column of a saved page that says where in it a row is."""


def runs(numbers: Locations) -> Iterator[tuple[int, slice]]:
    """Where each page's part begins and ends among page numbers that ascend."""
    if not len(numbers):
        return
    ends = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    starts = [0, *ends.tolist()]
    for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield int(numbers[start]), slice(start, end)


class PagedRows:
    """Rows by location."""

    def __init__(self, schema: pl.Schema, page_rows: int):
        self.pool = PagePool(schema, page_rows)
        self._pages: dict[int, Page] = {}
        self._changed: set[int] = set()

    def alloc(self) -> int:
        """Take a page from the pool; its number."""
        page = self.pool.alloc()
        self._pages[page.number] = page
        self._changed.add(page.number)
        return page.number

    def free(self, number: int) -> None:
        """Give a page back."""
        self.pool.free(self._pages.pop(number))
        self._changed.add(number)

    def write(self, locations: Locations, rows: Chunk) -> None:
        """Put rows in locations; the last one where a location is given repeatedly."""
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
        """The rows in locations, in the order given."""
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
        """What a column of fixed width has in locations that ascend, nulls aside."""
        return np.concatenate(
            [page.numbers(column, slots) for page, _, slots in self._parts(locations)]
        )

    def objects(self, locations: Locations) -> int:
        """Bytes of the objects in locations that ascend."""
        return sum(page.objects(slots) for page, _, slots in self._parts(locations))

    def clear(self, locations: Locations) -> None:
        """Drop what is in locations that ascend."""
        for page, _, slots in self._parts(locations):
            page.clear(slots)
            self._changed.add(page.number)

    def _parts(self, locations: Locations) -> Iterator[tuple[Page, slice, Slots]]:
        numbers, slots = np.divmod(locations, self.pool.page_rows)
        for number, part in runs(numbers):
            yield self._pages[number], part, slots[part]

    # ---- saving ----------------------------------------------------------------------------

    def save(
        self, store: ChunkStore, name: str, held: Callable[[int], Slots]
    ) -> list[tuple[int, int]]:
        """Write pages that have changed, given which slots hold rows; number and size of all.

        It is always the same store and name.
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
        """Go on from what was saved; rows are read later."""

        def fetch(number: int) -> Fetch:
            return lambda: _fetched(store, name, number)

        pages = self.pool.restore(dict(saved), fetch)
        self._pages = {page.number: page for page in pages}


def _fetched(store: ChunkStore, name: str, number: int) -> tuple[Slots, Chunk]:
    rows = read(store, name, number, number + 1)
    assert rows is not None
    return rows[SLOT].to_numpy(), rows.drop(SLOT)
