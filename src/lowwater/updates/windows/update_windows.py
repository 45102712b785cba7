"""The queue of windows as an operator: the newest window of each key leaves when there is time.

Rows leave with the edges of the window that is worked on. When it is complete and all its rows have
left, punctuation on its key follows, on which the aggregate after the queue answers the window. A
row may leave for several windows in turn, or for none.

Invariant: windows of a key leave in the order of their starts, and only complete ones are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from lowwater.operators.kernel import Host, Request
from lowwater.operators.metric import Readings
from lowwater.state.store import ChunkStore
from lowwater.stream.element import MARK, Chunk, Element, GroupPunctuation, kept_end
from lowwater.updates.key_queue import KeyQueue, report_of
from lowwater.updates.options import Key, Updates
from lowwater.updates.windows.open_windows import Ticks
from lowwater.updates.windows.window_kernel import WindowedRows, WindowQueueKernel
from lowwater.updates.windows.window_keys import WindowCell
from lowwater.updates.windows.window_queue import WindowQueue


class UpdateWindows(WindowQueueKernel):
    """Holds rows until their key is served, and then releases its newest window."""

    def __init__(self, store: ChunkStore, by: Updates, rows: WindowedRows, host: Host):
        super().__init__(store, by, rows, host)
        self._schema = rows.schema
        self._queue = WindowQueue(by, rows, self._pace, host.now)

    # ---- rows and promises -----------------------------------------------------------------

    def _enqueue(self, rows: Chunk, ticks: Ticks, when: Ticks) -> None:
        deletion = self._by.deletion
        self._queue.enqueue(rows, ticks, when, None if deletion is None else deletion.of(rows))

    def _follow(self, rows: Chunk, ticks: Ticks) -> None:
        if self._by.forgets and rows.height:
            deletion = self._by.deletion
            gone = None if deletion is None else deletion.of(rows)
            self._queue.follow(rows, ticks, self._arrivals(rows), gone)

    def _end_keys(self, mark: int) -> list[Element]:
        if self._by.forgets:
            self._queue.reach(mark, self._now())
        return self._forget()

    def _advance(self, mark: int) -> list[Element]:
        self._queue.advance(mark, self._now())
        return [*self._forget(), *self._punctuate(self._queue.least())]

    def _forget(self) -> list[Element]:
        """Forget keys that have ended and return the punctuation that reports them: their last
        windows have been answered."""
        return self._report(self._queue.forget())

    def _report(self, ended: Sequence[tuple[Key, int]]) -> list[Element]:
        return report_of(ended, self._by.key, self._schema)

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Complete the windows of single keys that end by their marks."""
        names = promise.keys
        if promise.attribute != self._time or not set(names) <= set(self._by.key):
            return []
        if not self.host.hurried:
            first = self._window.first_open(pl.col(MARK))
            passed = self._punctuate_keys(promise.marks.with_columns(kept_end(first)))
            self._queue.follow_marks(self._marks_of(promise))
            return [*passed, *self._forget()]
        order, marks = self._marks_of(promise)
        moved = self._queue.advance_keys(order, marks, self._now())
        return [*self._forget(), *self._punctuate_cells(moved)]

    def _marks_of(self, promise: GroupPunctuation) -> tuple[tuple[str, ...], dict[Key, int]]:
        """Return the marks of single keys, and the key columns that name them."""
        names = promise.keys
        order = tuple(name for name in self._by.key if name in names)
        marks = promise.marks.select(*order, MARK).iter_rows()
        return order, {row[:-1]: row[-1] for row in marks}

    def _punctuate_cells(self, cells: Sequence[WindowCell]) -> list[Element]:
        """Return punctuation on keys whose windows to come start later than known so far."""
        marks: dict[tuple[object, ...], int] = {}
        for cell in cells:
            start = self._queue.least_of(cell)
            if start > max(cell.start, self._start):
                cell.start = marks[cell.key] = start
        if not marks or not self._by.key:
            return []
        rows = [(*key, mark) for key, mark in marks.items()]
        schema = {name: self._schema[name] for name in self._by.key} | {MARK: pl.Int64()}
        return self._punctuate_keys(pl.DataFrame(rows, schema, orient="row"))

    # ---- work ------------------------------------------------------------------------------

    @property
    def _has_work(self) -> bool:
        return self._queue.has_work

    @property
    def waiting_since(self) -> int | None:
        """Arrival of the window served next, in clock nanoseconds; None if no window can leave."""
        return self._queue.scheduler.oldest if self._has_work else None

    @property
    def _backlog(self) -> float:
        return self._queue.scheduler.waiting * self._queue.window_rows

    def _dequeue(self, rows: int, now: int) -> list[Element]:
        ended = self._forget()  # those whose last window was in the previous portion
        portion = self._queue.dequeue(rows, now)
        self._in_work = [cell.account for cell in portion.closed]
        self._left = portion.rows.height
        self._queue.learn(self._left, len(portion.closed))
        ended += self._report(self._queue.over(portion.closed) if self._by.forgets else [])
        out: list[Element] = []
        if self._left:
            out.append(self._edges.marked(portion.rows, portion.starts))
        return [
            *out,
            *self._punctuate(self._queue.least()),
            *self._punctuate_cells(portion.closed),
            *ended,
        ]

    # ---- requests and metrics --------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request the mark at the end of the first open window."""
        due = self._queue.due.first
        return [] if due is None else [Request(0, self._time, due)]

    @property
    def held(self) -> tuple[int, int]:
        """Number of keys and held rows, and their bytes; in batches rows are in the store and
        counted there."""
        queue = self._queue
        rows, size = (0, 0) if self.host.in_batches else (queue.memory.used, queue.memory.bytes)
        return len(queue.keys.cells) + rows, queue.keys.bytes + size

    @property
    def _keys_of_queue(self) -> KeyQueue[WindowCell]:
        return self._queue.keys

    def metrics(self) -> Readings:
        """Return the counts of the queue; the waiting updates are windows."""
        scheduler = self._queue.scheduler
        return self._readings(scheduler.waiting, scheduler.worked_on, self._by.windows)

    # ---- state -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Write the held rows."""
        self._queue.save_rows(self.store)

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {"queue": self._queue.save(self.store)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._queue.load(self.store, saved["queue"])
