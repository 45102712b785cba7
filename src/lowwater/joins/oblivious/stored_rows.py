"""The rows of a window-oblivious join, kept for matches, waiting to be sorted, or spilled
(WO-Join §4).

Invariant: a row is in exactly one of these three. Pages of spilled rows are on disk if the store
has a disk; all other rows are in memory and count as memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from lowwater.joins.multi_join import rows_of
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.disorder import Ticks
from lowwater.joins.oblivious.read_ahead import FADING
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore, add, read, take
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk

PAGE_ROWS = 256
"""Number of rows of a page unless a cap makes pages smaller."""
LEAST_ROWS = 16
"""Number of rows of the smallest page."""
PAGES = 8
"""Greatest number of pages that rows written together are cut into."""


class SpilledRows:
    """The rows of one input that is far ahead, in pages that may be on disk (disk-buffer-first,
    §4.2).

    Some other input has not reached these rows, so they match nothing yet. A page is stored under
    its least value and is *due* when the frontier reaches that value. Pages may be read before
    they are due, so that no results wait for the disk (``read_ahead``).

    Invariant: every row put in comes out once, at the latest when the frontier reaches its value.
    """

    def __init__(self, store: ChunkStore, port: int, ticks: pl.Expr):
        self._store, self._ticks = store, ticks
        self._pages, self.unpaged_name = f"aside{port}", f"loose{port}"
        self._ahead: list[tuple[int, int]] = []  # least value and rows of pages read, not due yet
        self.burst = 0
        """Number of rows that lately became due in one step."""
        self.row_bytes = 1.0
        """Bytes of a row in memory, of the rows put in last."""
        self.waited = 0
        """Number of pages that were read when they were due, while results waited."""
        self._least = END_OF_TIME  # least value of the rows that fill no page yet
        self._page_rows = PAGE_ROWS
        store.set_aside(self._pages)

    @property
    def rows(self) -> int:
        """Number of rows in pages."""
        return sum(self._store.rows_in(self._pages, s) for s in self._store.slices(self._pages))

    @property
    def has_pages(self) -> bool:
        """True if there are pages."""
        return bool(self._store.slices(self._pages))

    @property
    def unpaged(self) -> int:
        """Number of rows in memory that do not fill a page yet."""
        return self._store.rows_in(self.unpaged_name, 0)

    @property
    def bytes(self) -> int:
        """Bytes of the rows in memory."""
        return self._store.bytes_of(self.unpaged_name)

    def limit_pages(self, rows: Chunk, most: int) -> None:
        """Set the rows of a page so that a page of rows such as these takes ``most`` bytes."""
        width = max(1, int(rows.estimated_size()) // rows.height)
        self._page_rows = min(PAGE_ROWS, max(LEAST_ROWS, most // width))

    def put(self, rows: Chunk) -> None:
        """Store rows; they stay in memory until they fill a page."""
        self.row_bytes = max(1.0, rows.estimated_size() / rows.height)
        add(self._store, self.unpaged_name, 0, rows)
        self._least = min(self._least, int(rows.select(self._ticks.min()).item()))
        if self.unpaged >= self._page_rows:
            self.flush()

    def flush(self) -> None:
        """Write all rows in memory as pages."""
        held = take(self._store, self.unpaged_name)
        if held is None:
            return
        self._least = END_OF_TIME
        held = held.sort(self._ticks)
        pages = min(PAGES, max(1, held.height // self._page_rows))
        for page in held.iter_slices(-(-held.height // pages)):
            least = int(page.select(self._ticks.first()).item())
            self._store.put(self._pages, least, page)

    def fetch(self, frontier: int) -> Chunk | None:
        """Remove and return the rows up to the frontier; None if there are none."""
        reached = [rows for least, rows in self._ahead if least <= frontier]
        self._ahead = [page for page in self._ahead if page[0] > frontier]
        due = self._store.slices(self._pages, None, frontier + 1)
        found = self._read(due)
        self.waited += len(due)
        self._count_due(sum(reached) + sum(page.height for page in found))
        if self._least <= frontier and (held := take(self._store, self.unpaged_name)) is not None:
            found.append(held.filter(self._ticks <= frontier))
            later = held.filter(self._ticks > frontier)
            if later.height:
                self._store.put(self.unpaged_name, 0, later)
            least = later.select(self._ticks.min()).item()
            self._least = END_OF_TIME if least is None else int(least)
        return pl.concat(found) if found else None

    def _read(self, slices: list[int]) -> list[Chunk]:
        pages = (take(self._store, self._pages, least, least + 1) for least in slices)
        return [page for page in pages if page is not None]

    def _count_due(self, rows: int) -> None:
        if rows:
            self.burst = max(rows, self.burst - self.burst // FADING)

    def lacks(self, frontier: int, rows: int) -> bool:
        """Return true if a page is on disk, and fewer than ``rows`` rows that are not due yet have
        been read."""
        held = sum(many for least, many in self._ahead if least > frontier)
        return held < rows and bool(self._store.slices(self._pages, frontier + 1))

    def fetch_ahead(self, frontier: int, rows: int) -> Chunk | None:
        """Remove and return the next pages above the frontier, until at least ``rows`` rows that
        are not due yet have been read; None if nothing is missing."""
        found = []
        while self.lacks(frontier, rows):
            (least,) = self._store.slices(self._pages, frontier + 1)[:1]
            pages = self._read([least])
            self._ahead += [(least, page.height) for page in pages]
            found += pages
        return pl.concat(found) if found else None

    def forget_ahead(self, value: int) -> None:
        """Take pages at or above a value as not read, because their rows have left memory."""
        self._ahead = [page for page in self._ahead if page[0] < value]

    def snapshot(self) -> Any:
        """Return the pages read ahead, the least value in memory, the rows of a page, and the
        counts."""
        return (
            list(self._ahead),
            self._least,
            self._page_rows,
            (self.burst, self.waited, self.row_bytes),
        )

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        ahead, self._least, self._page_rows, counts = saved
        self.burst, self.waited, self.row_bytes = counts
        self._ahead = list(ahead)


class MatchedValues:
    """The values whose rows have matched, one of each input, and are dropped.

    While no input has had a value twice, rows that have matched are taken to have no more matches.
    Their values are stored until all inputs have passed them: a second row with such a value shows
    that the assumption is wrong.

    Invariant: a value is here from the match of its rows until all rows to come are above it.
    """

    __slots__ = ("_fresh", "_values")

    def __init__(self) -> None:
        self._values: Ticks = np.empty(0, dtype=np.int64)
        self._fresh: list[Ticks] = []

    def __len__(self) -> int:
        return len(self._values) + sum(map(len, self._fresh))

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return len(self) * self._values.itemsize

    def add(self, values: Ticks) -> None:
        """Add the values of rows that matched."""
        self._fresh.append(values)

    def limit(self, most: int) -> None:
        """Drop the least values so that the others take ``most`` bytes; rows that repeat a dropped
        value are no longer noticed, and their lost results still are."""
        if self.bytes > most:
            self.settle(BEGINNING)
            self._values = self._values[len(self._values) - most // self._values.itemsize :]

    def among(self, ticks: Ticks) -> int:
        """Return the number of rows whose value is among the matched values."""
        parts = (self._values, *self._fresh)
        return sum(int(np.isin(ticks, each).sum()) for each in parts if len(each))

    def settle(self, below: int) -> Ticks:
        """Drop values below a bound; return those added since the last call."""
        fresh = np.concatenate(self._fresh) if self._fresh else self._values[:0]
        self._fresh = []
        kept = self._values[np.searchsorted(self._values, below) :]
        self._values = np.sort(np.concatenate([kept, fresh[fresh >= below]]))
        return fresh

    def snapshot(self) -> Any:
        """Return the settled values and the new ones."""
        return self._values.tolist(), [each.tolist() for each in self._fresh]

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self._values = np.array(saved[0], dtype=np.int64)
        self._fresh = [np.array(each, dtype=np.int64) for each in saved[1]]


class StoredRows:
    """The rows of all inputs of a join; each list has one entry for each input."""

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
            TimeBuffer(store, _waiting(port), self._times[port], slice_ticks[port], shape.domain)
            for port in shape.ports
        ]
        self.matched = MatchedValues()
        self.spilled = [SpilledRows(store, port, shape.inside_time(port)) for port in shape.ports]

    def ticks(self, port: int, rows: Chunk) -> Ticks:
        """Return the ticks of the join attribute of an input's rows."""
        return self._shape.domain.array_of(rows[self._times[port]])

    @property
    def memory(self) -> int:
        """Bytes of all rows, values and numbers in memory."""
        sizes = self._store.bytes_of
        names = (rows_of, _waiting, matched_of)
        found = (sizes(name(port)) for port in self._shape.ports for name in names)
        return sum(found) + sum(each.bytes for each in self.spilled) + self.matched.bytes

    @property
    def rows(self) -> int:
        """Number of rows in memory."""
        return sum(map(self.held, self._shape.ports))

    def held(self, port: int) -> int:
        """Return the number of rows of an input in memory."""
        name = rows_of(port)
        kept = sum(self._store.rows_in(name, each) for each in self._store.slices(name))
        return kept + self.waiting[port].rows + self.spilled[port].unpaged

    def rows_from(self, port: int, value: int) -> int:
        """Return the approximate number of rows of an input at or above a value; none is read."""
        name, slice_ = rows_of(port), value // self._slicing[port].width
        kept = sum(self._store.rows_in(name, each) for each in self._store.slices(name, slice_))
        return kept + self.waiting[port].rows + self.spilled[port].unpaged

    def values(self, port: int) -> Ticks:
        """Return the ticks of an input's rows in memory, unsorted."""
        names = (rows_of(port), _waiting(port), self.spilled[port].unpaged_name)
        chunks = [rows for name in names if (rows := read(self._store, name)) is not None]
        parts = [self.ticks(port, rows) for rows in chunks]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def take_from(self, port: int, value: int) -> tuple[Chunk | None, Chunk | None]:
        """Remove the rows of an input that wait or are kept, at or above a value.

        Return those that waited and those that were kept, each None if there are none. Spilled rows
        in memory stay.
        """
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

    def drop_matched(self, below: int) -> Ticks:
        """Drop the rows of new matched values, and values below a bound; return the new values."""
        met = self.matched.settle(below)
        for port in self._shape.ports if len(met) else ():
            time, width = self._shape.inside_time(port), self._slicing[port].width
            drop_values(self._store, rows_of(port), time, width, met)
        return met

    def snapshot(self) -> Any:
        """Return the state of waiting and spilled rows and of matched values."""
        waiting, aside = ([p.snapshot() for p in each] for each in (self.waiting, self.spilled))
        return waiting, aside, self.matched.snapshot()

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        for port in self._shape.ports:
            self.waiting[port].restore(saved[0][port])
            self.spilled[port].restore(saved[1][port])
        self.matched.restore(saved[2])


def drop_values(store: ChunkStore, name: str, ticks: pl.Expr, width: int, values: Ticks) -> None:
    """Drop the rows under a name that have some values."""
    for slice_ in np.unique(values // width).tolist():
        rows = take(store, name, slice_, slice_ + 1)
        if rows is None:
            continue
        stay = rows.filter(~ticks.is_in(pl.Series(values).implode()))
        if stay.height:
            store.put(name, slice_, stay)


def matched_of(port: int) -> str:
    """Return the name under which the numbers of an input's matched rows are stored."""
    return f"matched{port}"


def _waiting(port: int) -> str:
    return f"waiting{port}"
