"""The window manager of an update queue: the newest window of each key waits (UpStream §6.2, §7.2).

In a *lazy* queue a window becomes an update when it is complete, and the newest complete one waits.
In an *eager* queue it becomes an update when it begins, and the newest that began waits; if it is
worked on before it is complete, its rows leave as they arrive. An older waiting window is given up,
and its rows are dropped unless a later window needs them.

A key has two buffers. The enqueue buffer holds rows that windows to come may need. The dequeue
buffer holds rows of the window that is worked on that arrived after its first rows had left. Rows
are dropped from a buffer when no window needs them from there.

Invariants: at most one window of a key waits and at most one is worked on, the older; windows of a
key leave in the order of their starts; a window is closed only when it is complete and all its rows
have left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk
from lowwater.updates.key_lines import KeyLine, make_line
from lowwater.updates.key_queue import KeyQueue
from lowwater.updates.memory.blocks import BlockMemory, WindowPart
from lowwater.updates.options import Key, Updates
from lowwater.updates.pace import FORGETTING, Pace
from lowwater.updates.windows.open_windows import (
    CompletionTimes,
    Run,
    Ticks,
    count,
    first_after,
)
from lowwater.updates.windows.scheduler import KeyScheduler
from lowwater.updates.windows.window_kernel import WindowedRows, by_key
from lowwater.updates.windows.window_keys import (
    CELL_BYTES,
    DueWindows,
    KeyMarks,
    KeyState,
    QueuedWindow,
    WindowCell,
)

PAGES = "pages"


class Portion(NamedTuple):
    """The rows that leave, the start of the window of each, and the keys whose window is closed."""

    rows: Chunk
    starts: Ticks
    closed: list[WindowCell]


class WindowQueue:
    """The windows of all keys that are open, wait or are worked on, and their rows."""

    def __init__(self, by: Updates, rows: WindowedRows, pace: Pace, now: Callable[[], int]):
        self._by, self._window, self._pace = by, rows.window, pace
        self._eager = by.windows == "eager"
        self.memory = BlockMemory(pl.Schema(rows.schema))
        line: KeyLine[WindowCell] = make_line(by, self._cost, now)
        make = partial(WindowCell, rows.window)
        self.keys = KeyQueue(by, make, line, CELL_BYTES, expire=rows.expire)
        self._moved: dict[WindowCell, None] = {}
        """Keys that may have ended by their own marks."""
        self.progress = CompletionTimes()
        self.scheduler = KeyScheduler(self.keys.line)
        self.due = DueWindows(rows.window)
        self._marks = KeyMarks(by.key)
        self._closing: dict[WindowCell, None] = {}
        self.window_rows = 0.0
        """Average number of rows in a window."""
        self._reached = BEGINNING
        """The last mark; the end of the stream is none."""

    def _cost(self) -> float:
        return self._pace.cost * max(self.window_rows, 1.0)

    # ---- enqueue ---------------------------------------------------------------------------

    def enqueue(
        self,
        rows: Chunk,
        ticks: Ticks,
        when: Ticks,
        gone: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add rows with their times and arrivals; ``gone`` is true for each that deletes its key.

        A row that is in no window only moves the progress of the stream and the end of its key.
        """
        self.progress.add(ticks, when)
        self.keys.begin(int(when[0]))
        inside = self._window.covers(ticks)
        parts: list[tuple[int, Ticks]] = []
        for key, at in by_key(rows, self._by.key):
            own = at[inside[at]]
            if len(own) or key in self.keys.cells:
                cell = self._cell(key)
                if cell.progress is not None:
                    cell.progress.add(ticks[at], when[at])
                self._note_newest(cell, at, ticks, gone)
                parts += self._needed(cell, own, ticks[own], when[own])
        parts = [part for part in parts if len(part[1])]
        if parts:
            order = np.concatenate([at for _, at in parts])
            owners, counts = [owner for owner, _ in parts], [len(at) for _, at in parts]
            self.memory.append(owners, counts, rows[order], ticks[order])

    def _cell(self, key: Key) -> WindowCell:
        known = key in self.keys.cells
        cell = self.keys.find(key)
        if not known and self._marks:
            cell.progress, cell.mark = CompletionTimes(), self._marks.of(key)
        return cell

    def _note_newest(
        self, cell: WindowCell, at: Ticks, ticks: Ticks, gone: NDArray[np.bool_] | None
    ) -> None:
        """Set the end of a key, where keys end, from the newest of its rows ``at``."""
        if not self._by.forgets:
            return
        newest = int(at[len(at) - 1 - int(np.argmax(ticks[at][::-1]))])
        if ticks[newest] >= cell.latest:
            cell.latest = int(ticks[newest])
            self.keys.expiry.set_end(cell, cell.latest, gone is not None and bool(gone[newest]))

    def follow(
        self, rows: Chunk, ticks: Ticks, when: Ticks, gone: NDArray[np.bool_] | None
    ) -> None:
        """Note rows that leave at once: a key ends after its newest row, and after the last window
        that this row is in."""
        self.keys.begin(int(when[0]))
        for key, at in by_key(rows, self._by.key):
            cell = self._cell(key)
            self._note_newest(cell, at, ticks, gone)
            last = cell.latest // self._window.slide * self._window.slide + self._window.range
            if cell.end < END_OF_TIME:
                cell.end = max(cell.end, last)

    def follow_marks(self, found: tuple[tuple[str, ...], Mapping[Key, int]]) -> None:
        """Note marks of single keys, named by some key columns, where rows leave at once."""
        if not self._by.forgets:
            return
        names, marks = found
        self._marks.update(names, marks)
        for cell in self._named(names, marks):
            cell.mark = max(cell.mark, marks.get(self._marks.part(cell.key, names), BEGINNING))
            self._moved[cell] = None

    def reach(self, mark: int, now: int) -> None:
        """Note the mark, at a moment in clock nanoseconds."""
        self.progress.advance(mark, now)
        if mark < END_OF_TIME:
            self._reached = mark

    def over(self, cells: Iterable[WindowCell]) -> list[tuple[Key, int]]:
        """Return those of some keys that have ended and have no window left, and their ends; the
        windows that only the end of the stream completes do not end a key."""
        found = []
        for cell in cells:
            last = BEGINNING if cell.newest is None else cell.newest + self._window.range
            if not cell.busy and max(cell.end, last) <= max(self._reached, cell.mark):
                found.append((cell.key, cell.end))
        return found

    def forget(self) -> list[tuple[Key, int]]:
        """Forget the keys that have ended and have no window left; return them and their ends."""
        mark = self.progress.mark
        if not self._by.forgets or mark == END_OF_TIME:
            return []
        ended: list[tuple[Key, int]] = []
        own = [c for c in self._moved if c.end <= c.mark and c.end < END_OF_TIME and not c.busy]
        for cell in (*self.keys.expiry.ended(mark), *own):
            if self.keys.remove(cell):
                self.memory.forget((cell.enqueue_buffer, cell.dequeue_buffer))
                self._marks.forget(cell.key)
                ended.append((cell.key, cell.end))
        self._moved.clear()
        return ended

    def _needed(
        self, cell: WindowCell, at: Ticks, ticks: Ticks, when: Ticks
    ) -> Iterator[tuple[int, Ticks]]:
        """Yield the rows that windows need, by buffer; record the windows that rows begin."""
        if not len(at):
            return
        cell.windows.add(ticks)
        self.due.watch(cell)
        if not self._eager:
            yield cell.enqueue_buffer, at
            return
        self._begin(cell, ticks, when)
        if cell.waiting is not None:
            yield cell.enqueue_buffer, at[ticks >= cell.waiting.start]
        if cell.committed is not None:
            start = cell.committed.start
            inside = (ticks >= start) & (ticks < start + self._window.range)
            yield cell.dequeue_buffer, at[inside]
            if inside.any():
                self._more_rows(cell, int(inside.sum()), int(when[inside][0]))

    def _begin(self, cell: WindowCell, ticks: Ticks, when: Ticks) -> None:
        """Let the newest window wait if rows begin one that is newer than all before."""
        starts = ticks // self._window.slide * self._window.slide
        newer = starts > (BEGINNING if cell.begun is None else cell.begun)
        if not newer.any():
            return
        cell.begun = newest = int(starts.max())
        self.memory.buffer(cell.enqueue_buffer).drop_before(newest)
        came = when[newer]
        cell.account.waits(int(came[0]))
        self._wait(cell, newest, int(came[0]), int(came[-1]), len(np.unique(starts[newer])))

    def _wait(self, cell: WindowCell, start: int, first: int, last: int, updates: int) -> None:
        """Let the newest window of a key wait; ``updates`` windows arrived from ``first`` to
        ``last``."""
        if cell.waiting is None:
            cell.first = first
        else:
            cell.waiting.alive = False
        cell.measure_gaps(first, last, updates, self.keys.gap_start(first))
        cell.waiting = QueuedWindow((start,))
        self.keys.least.add(cell.waiting)
        self.scheduler.update(cell)

    def _more_rows(self, cell: WindowCell, rows: int, when: int) -> None:
        """Record rows that arrived of the window that is worked on."""
        if not cell.fresh:
            cell.since = when
        cell.fresh += rows
        if KeyState.IDLE in cell.states:
            self.scheduler.promote(cell)

    # ---- promises --------------------------------------------------------------------------

    def advance(self, mark: int, now: int) -> None:
        """Complete the windows that end by a mark."""
        self.reach(mark, now)
        for cell, runs in self.due.complete(mark):
            self._complete(cell, runs, self.progress)

    def advance_keys(
        self, names: tuple[str, ...], marks: Mapping[Key, int], now: int
    ) -> list[WindowCell]:
        """Complete windows by marks of single keys, named by some key columns; return the keys
        whose marks advanced."""
        came = self.progress.last_arrival(now)
        self._marks.update(names, marks)
        moved = []
        for cell in self._named(names, marks):
            mark = marks.get(self._marks.part(cell.key, names), BEGINNING)
            if mark > cell.mark:
                cell.mark = mark
                moved.append(cell)
                cell.progress = cell.progress or CompletionTimes()
                cell.progress.advance(mark, came)
                self._moved[cell] = None
                if cell.due <= mark:
                    self._complete(cell, self.due.complete_of(cell, mark), cell.progress)
        return moved

    def _named(self, names: tuple[str, ...], keys: Iterable[Key]) -> Iterable[WindowCell]:
        """Return the cells to which marks of keys, named by some key columns, may belong."""
        if names != self._by.key:
            return self.keys.cells.values()
        return [self.keys.cells[key] for key in keys if key in self.keys.cells]

    def _complete(self, cell: WindowCell, runs: Sequence[Run], progress: CompletionTimes) -> None:
        """Count windows of a key that became complete; in a lazy queue the newest of them waits."""
        self._watch(cell)
        range_, slide = self._window.range, self._window.slide
        ended, windows = progress.when(runs[0][0] + range_), count(runs, slide)
        if not self._eager:
            cell.account.arrived(ended, windows)
            newest = runs[-1][1]
            self.memory.buffer(cell.enqueue_buffer).drop_before(newest)
            self._wait(cell, newest, ended, progress.when(newest + range_), windows)
            return
        worked_on = BEGINNING if cell.committed is None else cell.committed.start
        newer = first_after(runs, worked_on, slide)
        unseen = None if newer is None else progress.when(newer + range_)
        cell.account.ended(ended, windows, unseen)
        if KeyState.IDLE in cell.states and self._is_complete(cell):
            self._closing[cell] = None

    def _watch(self, cell: WindowCell) -> None:
        """Check later whether a key has ended: its last window may have left."""
        if self._by.forgets:
            self._moved[cell] = None
            self.keys.expiry.watch(cell)

    def mark_of(self, cell: WindowCell) -> int:
        """Return the mark of a key: the greater of the stream's and its own."""
        return max(self.progress.mark, cell.mark)

    def _is_complete(self, cell: WindowCell) -> bool:
        """Return true if no row of the window that is worked on can still arrive."""
        assert cell.committed is not None
        return cell.committed.start + self._window.range <= self.mark_of(cell)

    # ---- dequeue ---------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """True if something can leave now."""
        if self._closing or self.scheduler.waits or len(self.scheduler.upq) > 1:
            return True
        return bool(self.scheduler.upq) and self._is_available(self.scheduler.upq[0])

    def _is_available(self, cell: WindowCell) -> bool:
        """Return true if the window that is worked on has rows or can be closed (isAvail)."""
        return cell.fresh > 0 or self._is_complete(cell)

    def dequeue(self, limit: int, now: int) -> Portion:
        """Remove windows in the order of service, until there are about ``limit`` rows.

        Windows that only have to be closed leave first and alone: they cost no work.
        """
        parts: list[WindowPart] = []
        closed = list(self._closing)
        for idle in closed:
            self._close(idle)
        rows = limit if closed else 0
        while rows < limit and (cell := self._next()) is not None:
            part = self._work(cell, now)
            rows += max(part.buffer.rows, 1)
            parts.append(part)
            if self._is_complete(cell):
                self._close(cell)
                closed.append(cell)
        self._closing.clear()
        return Portion(*self.memory.read_windows(parts, self._window.range), closed)

    def _next(self) -> WindowCell | None:
        """Return the key to serve: one whose window is worked on, else one that waits, else
        None."""
        while self.scheduler.upq:
            if self._is_available(self.scheduler.upq[0]):
                return self.scheduler.upq[0]
            self.scheduler.rest(self.scheduler.upq[0])
        return self.scheduler.commit() if self.scheduler.waits else None

    def _work(self, cell: WindowCell, now: int) -> WindowPart:
        """Return the part with all rows there are of the window of a key, and begin that window if
        it waited."""
        if cell.committed is not None:
            cell.fresh = 0
            buffer = self.memory.buffer(cell.dequeue_buffer)
            return WindowPart(buffer, cell.committed.start, END_OF_TIME)
        assert cell.waiting is not None
        cell.committed, cell.waiting = cell.waiting, None
        cell.account.taken(now)
        cell.since = cell.first
        needed = END_OF_TIME if self._eager else self._window.first_open(self.mark_of(cell))
        return WindowPart(self.memory.buffer(cell.enqueue_buffer), cell.committed.start, needed)

    def _close(self, cell: WindowCell) -> None:
        assert cell.committed is not None
        cell.committed.alive = False
        cell.newest, cell.committed = cell.committed.start, None
        self.scheduler.done(cell)
        self._watch(cell)

    def learn(self, rows: int, windows: int) -> None:
        """Update the average number of rows in a window, after ``rows`` rows left and ``windows``
        windows were closed."""
        if windows:
            known = FORGETTING if self.window_rows else 0.0
            self.window_rows = self.window_rows * known + rows / windows * (1 - known)

    # ---- starts of windows to come ---------------------------------------------------------

    def least(self) -> int:
        """Return the least start of a window that can still leave."""
        mark, alive = self.progress.mark, self.scheduler.waiting + self.scheduler.worked_on
        return min(self._least_open(mark), *self.keys.least.values(alive))

    def least_of(self, cell: WindowCell) -> int:
        """Return the least start of a window of a key that can still leave."""
        held = [each.start for each in (cell.waiting, cell.committed) if each is not None]
        mark = self.mark_of(cell)
        if mark == END_OF_TIME and cell.newest is not None:
            return cell.newest + self._window.slide
        return min([self._least_open(mark), *held])

    def _least_open(self, mark: int) -> int:
        """Return the least start of the windows that are no update yet, at a mark."""
        if mark in (BEGINNING, END_OF_TIME):
            return mark
        if not self._eager:
            return self._window.first_open(mark)
        number, rest = divmod(mark, self._window.slide)
        return (number + (rest >= self._window.range)) * self._window.slide

    # ---- state -----------------------------------------------------------------------------

    def save_rows(self, store: ChunkStore) -> dict[str, Any]:
        """Write the pages that changed and return where rows are in them."""
        return self.memory.save(store, PAGES)

    def save(self, store: ChunkStore) -> dict[str, Any]:
        """Write the pages that changed and return the snapshot."""
        return {
            "memory": self.save_rows(store),
            "keys": self.keys.saved(),
            "scheduler": self.scheduler.saved(),
            "closing": [cell.key for cell in self._closing],
            "marks": self._marks.saved,
            "progress": self.progress.saved(),
            "rows": self.window_rows,
            "reached": self._reached,
            "moved": [cell.key for cell in self._moved],
        }

    def load(self, store: ChunkStore, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self.memory.load(store, PAGES, saved["memory"])
        self.progress.restore(saved["progress"])
        self.keys.restore(saved["keys"])
        for cell in self.keys.cells.values():
            for update in (cell.waiting, cell.committed):
                if update is not None:
                    self.keys.least.add(update)
        self.due.refill(self.keys.cells.values())
        self.scheduler.restore(saved["scheduler"], self.keys.cells)
        self._closing = dict.fromkeys(self.keys.cells[key] for key in saved["closing"])
        self._marks.saved = {names: dict(marks) for names, marks in saved["marks"].items()}
        self.window_rows, self._reached = saved["rows"], saved["reached"]
        cells = self.keys.cells
        self._moved = dict.fromkeys(cells[key] for key in saved["moved"] if key in cells)
