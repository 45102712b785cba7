"""Rows of an input that is far ahead: they wait in pages, on disk where the store has one.

No row of the others has reached them, so that they have nothing to meet yet. A page is filed under
the least value in it and is fetched when the frontier reaches that; one page more is fetched ahead,
so that the join need not wait for the disk.

Invariant: every row put in comes out once, at the latest when the frontier reaches its value.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from lowwater.state.store import ChunkStore, add, take
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk

PAGE_ROWS = 256
"""Rows of a page, if no cap makes it smaller: C of the paper, how far is read ahead."""
LEAST_ROWS = 16
"""But no smaller than this."""
PAGES = 8
"""Into how many pages at most rows are cut that come together."""


class Aside:
    """The rows of one input that wait for the others."""

    def __init__(self, store: ChunkStore, port: int, ticks: pl.Expr):
        self._store, self._ticks = store, ticks
        self._pages, self.loose_name = f"aside{port}", f"loose{port}"
        self._fetched = BEGINNING  # the least value of the page that was fetched last
        self._least = END_OF_TIME  # of the rows that fill no page yet
        self.page_rows = PAGE_ROWS
        store.set_aside(self._pages)

    @property
    def rows(self) -> int:
        """Rows in pages."""
        return sum(self._store.rows_in(self._pages, s) for s in self._store.slices(self._pages))

    @property
    def loose(self) -> int:
        """Rows in memory that do not fill a page yet."""
        return self._store.rows_in(self.loose_name, 0)

    @property
    def bytes(self) -> int:
        """Bytes of these."""
        return self._store.bytes_of(self.loose_name)

    def put(self, rows: Chunk) -> None:
        """Let rows wait."""
        add(self._store, self.loose_name, 0, rows)
        self._least = min(self._least, int(rows.select(self._ticks.min()).item()))
        if self.loose >= self.page_rows:
            self.flush()

    def flush(self) -> None:
        """Write pages of all rows that are in none yet."""
        held = take(self._store, self.loose_name)
        if held is None:
            return
        self._least = END_OF_TIME
        held = held.sort(self._ticks)
        pages = min(PAGES, max(1, held.height // self.page_rows))
        for page in held.iter_slices(-(-held.height // pages)):
            least = int(page.select(self._ticks.first()).item())
            self._store.put(self._pages, least, page)

    def fetch(self, frontier: int) -> Chunk | None:
        """Take out what the frontier has reached, and a page more; None if there is nothing."""
        found = []
        due = self._store.slices(self._pages, None, frontier + 1)
        if due:
            self._fetched = due[-1]
        if self._fetched <= frontier:
            ahead = self._store.slices(self._pages, frontier + 1)[:1]
            self._fetched = ahead[0] if ahead else self._fetched
            due = due + ahead
        for least in due:
            page = take(self._store, self._pages, least, least + 1)
            found += [page] if page is not None else []
        if self._least <= frontier and (held := take(self._store, self.loose_name)) is not None:
            found.append(held.filter(self._ticks <= frontier))
            later = held.filter(self._ticks > frontier)
            if later.height:
                self._store.put(self.loose_name, 0, later)
            least = later.select(self._ticks.min()).item()
            self._least = END_OF_TIME if least is None else int(least)
        return pl.concat(found) if found else None

    def snapshot(self) -> Any:
        """What was fetched last, where what is in no page begins, and how big a page is."""
        return self._fetched, self._least, self.page_rows

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        self._fetched, self._least, self.page_rows = saved
