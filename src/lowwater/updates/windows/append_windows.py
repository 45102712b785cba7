"""The queue that works on all windows of all keys: the baseline of queues of windows (UpStream
§6.3).

Rows leave in the order of arrival, once for each window they are in, so a row costs more when more
windows are open. The schedule "shedding" drops some windows at random when they begin, so that
there is time for the others; a dropped window still counts as stale.

Invariant: rows and punctuation leave in the order of arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.kernel import Host, Request
from lowwater.operators.metric import Readings
from lowwater.state.store import ChunkStore, take
from lowwater.stream.element import END_OF_TIME, Chunk, Element
from lowwater.updates.key_lines import InPlace
from lowwater.updates.key_queue import KeyQueue
from lowwater.updates.options import Key, Updates
from lowwater.updates.pace import Load
from lowwater.updates.windows.open_windows import CompletionTimes, Run, Ticks
from lowwater.updates.windows.window_kernel import WindowedRows, WindowQueueKernel, by_key
from lowwater.updates.windows.window_keys import CELL_BYTES, DueWindows, WindowCell

ROWS = "waiting"


class ShownWindows(NamedTuple):
    """The windows of a key that are shown together: their number, and the moment the newest of them
    became complete, in clock nanoseconds."""

    key: Key
    ended: int
    windows: int


class _Rows(NamedTuple):
    """Waiting rows, in a slice of the store."""

    since: int
    """Arrival of the first, in clock nanoseconds."""
    slice: int
    counts: tuple[int, ...]
    """Number of windows that each row leaves for."""


class _Promise(NamedTuple):
    """Punctuation that waits until all rows before it have left."""

    since: int
    """Arrival of the punctuation, in clock nanoseconds."""
    start: int
    """The least start of windows to come after it, in ticks."""
    shown: tuple[ShownWindows, ...]
    """Windows that it completes."""


class AppendWindows(WindowQueueKernel):
    """Releases rows in the order of arrival, once for each window."""

    def __init__(self, store: ChunkStore, by: Updates, rows: WindowedRows, host: Host):
        super().__init__(store, by, rows, host)
        self._progress = CompletionTimes()
        self._due = DueWindows(rows.window)
        make = partial(WindowCell, rows.window)
        self._keys = KeyQueue(by, make, InPlace(), CELL_BYTES)
        self._items: deque[_Rows | _Promise] = deque()
        self._slice = 0
        self._load = Load(self._pace, rows.window.overlap)
        self._kept_windows: dict[tuple[int, int], bool] = {}  # by number of key and window start

    # ---- rows and promises -----------------------------------------------------------------

    def _enqueue(self, rows: Chunk, ticks: Ticks, when: Ticks) -> None:
        self._progress.add(ticks, when)
        inside = self._window.covers(ticks)
        if not inside.all():
            rows, ticks, when = rows.filter(pl.Series(inside)), ticks[inside], when[inside]
        if not rows.height:
            return
        self._keys.begin(int(when[0]))
        owners = np.zeros(rows.height, np.int64)
        for key, own in by_key(rows, self._by.key):
            cell = self._keys.find(key)
            cell.windows.add(ticks[own])
            self._due.watch(cell)
            owners[own] = cell.number
        at, starts = self._edges.spread(ticks)
        if self._by.schedule == "shedding":
            self._load.arrived(len(at), int(when[-1]))
            kept = self._kept(owners[at], starts, int(when[-1]))
            at, starts = at[kept], starts[kept]
        if len(at):
            counts = np.bincount(at, minlength=rows.height)
            self._slice += 1
            self.store.put(ROWS, self._slice, self._edges.marked(rows[at], starts))
            self._items.append(_Rows(int(when[0]), self._slice, tuple(counts.tolist())))

    def _kept(self, owners: Ticks, starts: Ticks, now: int) -> NDArray[np.bool_]:
        """Return true for each pair of a key and a window start whose window is not dropped."""
        pairs = zip(owners.tolist(), starts.tolist(), strict=True)
        return np.array([self._is_kept(pair, now) for pair in pairs], bool)

    def _is_kept(self, window: tuple[int, int], now: int) -> bool:
        """Return true if a window of a key is not dropped; this is decided at the first call."""
        kept = self._kept_windows.get(window)
        if kept is None:
            # Before a row's cost is known, there is time for one window of each row.
            known = bool(self._pace.cost)
            load = self._load.value(now) if known else float(self._window.overlap)
            kept = self._kept_windows[window] = not self._load.drops_next(load)
        return kept

    def _advance(self, mark: int) -> list[Element]:
        now = self._now()
        self._progress.advance(mark, now)
        shown = [self._completed(cell, runs) for cell, runs in self._due.complete(mark)]
        start = mark if mark == END_OF_TIME else self._window.first_open(mark)
        self._items.append(_Promise(now, start, tuple(each for each in shown if each.windows)))
        return []

    def _completed(self, cell: WindowCell, runs: Sequence[Run]) -> ShownWindows:
        """Count complete windows of a key; return those that will be shown."""
        found = ShownWindows(cell.key, 0, 0)
        for first, last in runs:
            for start in range(first, last + 1, self._window.slide):
                ended = self._progress.when(start + self._window.range)
                cell.account.arrived(ended, replaced=False)
                if self._kept_windows.pop((cell.number, start), True):
                    found = ShownWindows(cell.key, ended, found.windows + 1)
        return found

    # ---- work ------------------------------------------------------------------------------

    @property
    def _has_work(self) -> bool:
        return bool(self._items)

    @property
    def waiting_since(self) -> int | None:
        """Arrival of the oldest waiting item, in clock nanoseconds; None if nothing waits."""
        return self._items[0].since if self._items else None

    @property
    def _backlog(self) -> float:
        return self.store.rows

    def _dequeue(self, rows: int, now: int) -> list[Element]:
        out: list[Element] = []
        self._left, self._in_work = 0, []
        while self._items:
            item = self._items[0]
            if isinstance(item, _Promise):
                out += self._pass(item)
                self._items.popleft()
            elif self._left < rows:
                out.append(self._take(item, rows - self._left))
            else:
                break
        return [each for each in out if not isinstance(each, pl.DataFrame) or each.height]

    def _pass(self, item: _Promise) -> list[Element]:
        for each in item.shown:
            account = self._keys.cells[each.key].account
            account.taken(self._now(), each.ended)
            self._in_work += [account] * each.windows
        return self._punctuate(item.start)

    def _take(self, item: _Rows, least: int) -> Chunk:
        """Remove and return the first rows of an item, each once for every window it is in.

        They are at least ``least`` rows if the item has as many; a row leaves for all its windows.
        """
        came = min(int(np.searchsorted(np.cumsum(item.counts), least)) + 1, len(item.counts))
        count, rest = sum(item.counts[:came]), item.counts[came:]
        chunk = take(self.store, ROWS, item.slice, item.slice + 1)
        assert chunk is not None
        self._left += count
        self._items.popleft()
        if sum(rest):
            self.store.put(ROWS, item.slice, chunk[count:])
            self._items.appendleft(_Rows(item.since, item.slice, rest))
        return chunk[:count]

    # ---- requests and metrics --------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request the mark at the end of the first open window."""
        due = self._due.first
        return [] if due is None else [Request(0, self._time, due)]

    @property
    def held(self) -> tuple[int, int]:
        """Number of keys and their bytes; rows are in the store."""
        return len(self._keys.cells), self._keys.bytes

    @property
    def _keys_of_queue(self) -> KeyQueue[WindowCell]:
        return self._keys

    def metrics(self) -> Readings:
        """Return the counts of the queue; the waiting updates are rows."""
        return self._readings(waiting=self.store.rows)

    # ---- state -----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {
            "keys": self._keys.saved(),
            "items": [(isinstance(each, _Rows), tuple(each)) for each in self._items],
            "slice": self._slice,
            "progress": self._progress.saved(),
            "load": self._load.saved(),
            "fates": dict(self._kept_windows),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._keys.restore(saved["keys"])
        self._due.refill(self._keys.cells.values())
        self._items = deque(_item(*each) for each in saved["items"])
        self._slice = saved["slice"]
        self._progress.restore(saved["progress"])
        self._load.restore(saved["load"])
        self._kept_windows = dict(saved["fates"])


def _item(rows: bool, saved: tuple[Any, ...]) -> _Rows | _Promise:
    if rows:
        return _Rows(*saved)
    since, start, shown = saved
    return _Promise(since, start, tuple(ShownWindows(*each) for each in shown))
