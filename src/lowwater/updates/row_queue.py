"""The storage manager of an update queue: enqueue, dequeue, read (UpStream §4.2).

The queue has three independent parts: the *cells*, one for each key; the *line*, the order in which
keys are served; and the *memory*, which holds the rows. A queue is *complete* while every row in it
is worked on (an append queue, or any queue while there is time for all): rows wait in the order of
arrival. Otherwise a row replaces the waiting row of its key.

Invariants: while rows replace each other, a key has at most one waiting row, the newest that
arrived; rows of a key leave in the order of their times; every row that arrived waits, left, was
given up or was outdated on arrival, and is counted as exactly one of these.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME, Chunk
from lowwater.updates.key_lines import KeyLine, make_line
from lowwater.updates.key_queue import KeyQueue
from lowwater.updates.keys import DICT_ENTRY, NUMBER, KeyCell, WaitingRow, bytes_of_slots
from lowwater.updates.memory.locations import OnDemandMemory
from lowwater.updates.options import PLAIN, Key, Updates
from lowwater.updates.pace import Load, Pace
from lowwater.updates.queue_kernel import Numbers, QueuedRows
from lowwater.updates.staleness import ACCOUNT, Account

AT, TIME = "__at", "__ticks"
PAGES = "pages"
CELL_BYTES = bytes_of_slots(KeyCell, list, list, *ACCOUNT) + DICT_ENTRY + 8 * NUMBER
"""Approximate bytes of a key and its cell, without the values of the key."""
ENTRY_BYTES = bytes_of_slots(WaitingRow, tuple, tuple) + 3 * DICT_ENTRY + 4 * NUMBER
"""Approximate bytes that the queue takes for a waiting row, without the row itself."""
CALM = 0.9
"""The queue becomes complete again when its load is at most this."""


class ArrivedRows(NamedTuple):
    """Rows that arrived on a port: their times in ticks, the main attribute first, and their
    arrivals in clock nanoseconds."""

    port: int
    rows: Chunk
    ticks: Sequence[Numbers]
    when: Numbers
    gone: NDArray[np.bool_] | None = None
    """True for each row that deletes its key; None if no row does."""

    def ticks_at(self, at: int) -> tuple[int, ...]:
        """Return the times of one row, by its number."""
        return tuple(int(each[at]) for each in self.ticks)


class RowQueue:
    """The waiting rows of an update queue, by key, and the counts of those that left otherwise."""

    def __init__(self, by: Updates, rows: QueuedRows, pace: Pace, now: Callable[[], int]):
        self._by, self._pace = by, pace
        self._strict, self._prefer = rows.ports > 1, rows.prefer
        self.memory = OnDemandMemory(pl.Schema(rows.schema))
        self.keys = self._make_keys(by, rows, now)
        self._all: deque[WaitingRow] = deque()
        self._left: dict[KeyCell, None] = {}
        """Keys of which a row has left, where keys end."""
        self.complete = by.schedule in PLAIN or by.complete_within is not None
        """True while every row is worked on and none is replaced."""
        self.waiting = 0
        self.given_up = self.outdated = self.switches = 0
        self.load = Load(pace, least=by.complete_within or 0)

    def _make_keys(self, by: Updates, rows: QueuedRows, now: Callable[[], int]) -> KeyQueue[Any]:
        line: KeyLine[KeyCell] = make_line(by, lambda: self._pace.cost, now)
        return KeyQueue(by, KeyCell, line, CELL_BYTES, len(rows.domains), rows.expire)

    # ---- enqueue ---------------------------------------------------------------------------

    def enqueue(self, came: ArrivedRows) -> None:
        """Add rows that arrived: they wait, or replace the waiting rows of their keys."""
        if not came.rows.height:
            return
        self.keys.begin(int(came.when[0]))
        self.load.arrived(came.rows.height, int(came.when[-1]))
        if self.complete:
            self._append(came)
            self._give_up_if_late()
        else:
            self._replace(came)

    def _note_newest(self, cell: KeyCell, came: ArrivedRows, at: int) -> None:
        """Set the end of a key, where keys end, from its newest row, which is number ``at``."""
        if self._by.forgets:
            gone = came.gone is not None and bool(came.gone[at])
            self.keys.expiry.set_end(cell, int(came.ticks[0][at]), gone)

    def forget(self, mark: int) -> list[tuple[Key, int]]:
        """Forget the keys that end by a mark and do not wait; return the expired ones and their
        ends. Deleted ones were reported when the row that deletes them left."""
        over = self.keys.expiry.ended(mark)
        for cell in over:
            self.keys.remove(cell)
        return [(cell.key, cell.end) for cell in over if not cell.deleted]

    def take_ended(self, mark: int) -> list[tuple[Key, int]]:
        """Return the keys whose last row has left since the last call, with their ends: a row that
        deletes its key, or one of a key that ends by a mark."""
        cells, self._left = self._left, {}
        over = [cell for cell in cells if not cell.busy and (cell.deleted or cell.end <= mark)]
        return [(cell.key, cell.end) for cell in over]

    @property
    def bytes(self) -> int:
        """Approximate bytes of the cells and of the line, without the rows."""
        return self.keys.bytes + self.waiting * ENTRY_BYTES

    def _append(self, came: ArrivedRows) -> None:
        """Add every row in the order of arrival; drop some if the schedule sheds load."""
        keep: list[int] = []
        cells: list[KeyCell] = []
        keys, ticks = self._keys_of(came), came.ticks[0].tolist()
        for at, (key, tick, when) in enumerate(zip(keys, ticks, came.when.tolist(), strict=True)):
            cell = self.keys.find(key)
            if self._is_outdated(cell, tick) or (cell.entries and tick < cell.entries[-1].ticks[0]):
                self.outdated += 1
                continue
            cell.measure_gaps(when, when, 1, self.keys.gap_start(when))
            cell.account.arrived(when, replaced=False)
            self._note_newest(cell, came, at)
            if self._by.schedule == "shedding" and self.load.drops_next(self.load.value(when)):
                self.given_up += 1
                continue
            keep.append(at)
            cells.append(cell)
        locations = self._put(came, keep)
        for at, cell, location in zip(keep, cells, locations, strict=True):
            self._wait(cell, WaitingRow(cell, location, int(came.when[at]), came.ticks_at(at), 0))

    def _keys_of(self, came: ArrivedRows) -> list[Key]:
        """Return the key of each row."""
        return came.rows.select(self._by.key).rows() if self._by.key else [()] * came.rows.height

    def _put(self, came: ArrivedRows, rows: list[int]) -> list[int]:
        if not rows:
            return []
        whole = len(rows) == came.rows.height
        places = self.memory.add(came.rows if whole else came.rows[rows])
        return [int(each) for each in places]

    def _wait(self, cell: KeyCell, entry: WaitingRow) -> None:
        if not cell.entries:
            cell.first = entry.arrival
        cell.entries.append(entry)
        self._all.append(entry)
        self.keys.least.add(entry)
        self.waiting += 1

    def _is_outdated(self, cell: KeyCell, tick: int) -> bool:
        """Return true if a row is older than the last row of its key that left.

        With several inputs a row that is as old is outdated, too.
        """
        if cell.newest is None:
            return False
        return tick < cell.newest or (self._strict and tick == cell.newest)

    def _replace(self, came: ArrivedRows) -> None:
        """Add the newest row of each key, which replaces the waiting one."""
        added: list[tuple[KeyCell, int, int]] = []
        changed: list[tuple[WaitingRow, int]] = []
        for key, first, last, count, at in self._newest(came):
            cell = self.keys.find(key)
            tick = int(came.ticks[0][at])
            if self._is_outdated(cell, tick):
                self.outdated += count
                continue
            begun, ended = int(came.when[first]), int(came.when[last])
            cell.measure_gaps(begun, ended, count, self.keys.gap_start(begun))
            cell.account.arrived(begun, count)
            self.given_up += count - 1
            if cell.entries:
                self.given_up += 1
                if self._supersedes(tick, came.port, cell.entries[0]):
                    changed.append((cell.entries[0], at))
                    self._note_newest(cell, came, at)
            else:
                cell.first = begun
                cell.entries.append(WaitingRow(cell, -1, begun, came.ticks_at(at), came.port))
                added.append((cell, at, begun))
                self._note_newest(cell, came, at)
            self.keys.line.arrived(cell)
        self._write(came, added, changed)

    def _newest(self, came: ArrivedRows) -> Iterator[tuple[Key, int, int, int, int]]:
        """Yield each key with the numbers of its first and last row, their count, and the number of
        its newest row."""
        if came.rows.height == 1:
            yield tuple(came.rows[name][0] for name in self._by.key), 0, 0, 1, 0
            return
        ticks = pl.Series(TIME, came.ticks[0])
        index = pl.Series(AT, np.arange(came.rows.height))
        times = pl.col(TIME)
        at = pl.col(AT)
        newest = (
            at.get(times.arg_max()) if self._strict else at.reverse().get(times.reverse().arg_max())
        )
        columns = (
            at.first().alias("__first"),
            at.last().alias("__last"),
            pl.len().alias("__count"),
            newest.alias("__newest"),
        )
        rows = pl.DataFrame([*came.rows.select(self._by.key), ticks, index])
        if self._by.key:
            found = rows.group_by(self._by.key, maintain_order=True).agg(columns)
        else:
            found = rows.select(columns)
        if self._by.schedule == "fifo":
            found = found.sort("__last")
        width = len(self._by.key)
        for row in found.iter_rows():
            yield row[:width], *row[width:]

    def _supersedes(self, tick: int, port: int, entry: WaitingRow) -> bool:
        """Return true if a row replaces the waiting one of its key."""
        before = entry.ticks[0]
        if tick == before and self._strict:
            return port == self._prefer and entry.port != port
        return tick >= before

    def _write(
        self,
        came: ArrivedRows,
        added: list[tuple[KeyCell, int, int]],
        changed: list[tuple[WaitingRow, int]],
    ) -> None:
        cells = [cell for cell, _, _ in added]
        locations = self._put(came, [at for _, at, _ in added])
        for cell, location in zip(cells, locations, strict=True):
            cell.entries[0].location = location
            self.keys.least.add(cell.entries[0])
        self.waiting += len(added)
        if not changed:
            return
        places = np.array([entry.location for entry, _ in changed], np.int64)
        self.memory.write(places, came.rows[[at for _, at in changed]])
        for entry, at in changed:
            entry.alive = False
            fresh = WaitingRow(
                entry.cell, entry.location, entry.arrival, came.ticks_at(at), came.port
            )
            entry.cell.entries[0] = fresh
            self.keys.least.add(fresh)

    # ---- from all rows to the newest, and back ---------------------------------------------

    def _give_up_if_late(self) -> None:
        """Give up all but the newest row of each key if rows would wait too long."""
        bound = self._by.complete_within
        if bound is None or self.waiting * self._pace.cost <= bound:
            return
        self.complete = False
        self.switches += 1
        gone: list[WaitingRow] = []
        for cell in dict.fromkeys(entry.cell for entry in self._all):
            *older, newest = cell.entries
            gone += older
            newest.arrival = cell.first
            cell.entries = [newest]
            cell.account.behind = [cell.first]
            self.keys.line.arrived(cell)
        self._all.clear()
        self._forget(gone)
        self.given_up += len(gone)

    def _forget(self, gone: list[WaitingRow]) -> None:
        for entry in gone:
            entry.alive = False
        if gone:
            self.memory.remove(np.array([entry.location for entry in gone], np.int64))
        self.waiting -= len(gone)

    def keep_all_if_possible(self, now: int) -> None:
        """Make the queue complete again, once there is time for all rows."""
        bound = self._by.complete_within
        if bound is None or self.complete or self.load.value(now) > CALM:
            return
        if self.waiting * self._pace.cost > bound / 2:
            return
        self.complete = True
        self.switches += 1
        cells = sorted(self.keys.line, key=lambda cell: cell.first)
        for cell in cells:
            self.keys.line.leave(cell)
            self._all.append(cell.entries[0])

    # ---- dequeue, read ---------------------------------------------------------------------

    def dequeue(self, count: int, now: int) -> tuple[Chunk, list[Account]]:
        """Remove up to ``count`` rows in the order of service; return them and the accounts of
        their keys."""
        entries: list[WaitingRow] = []
        for _ in range(min(count, self.waiting)):
            if self.complete:
                entry = self._all.popleft()
                del entry.cell.entries[0]
                if entry.cell.entries:
                    entry.cell.first = entry.cell.entries[0].arrival
                entry.cell.account.taken(now, entry.arrival)
            else:
                entry = self.keys.line.next().entries.pop()
                entry.cell.account.taken(now)
            entry.cell.newest = entry.ticks[0]
            if not entry.cell.entries:
                self.keys.expiry.watch(entry.cell)
                if entry.cell.end < END_OF_TIME:
                    self._left[entry.cell] = None
            entries.append(entry)
        rows = self.memory.read(_places(entries))
        self._forget(entries)
        return rows, [entry.cell.account for entry in entries]

    def read(self) -> Chunk:
        """Return the waiting rows in the order of service, without removing them."""
        waits: Iterable[WaitingRow] = self._all
        if not self.complete:
            waits = [cell.entries[0] for cell in self.keys.line]
        return self.memory.read(_places(list(waits)))

    @property
    def oldest(self) -> int | None:
        """Arrival of the row served next, in clock nanoseconds; None if no row waits."""
        if not self.waiting:
            return None
        if self.complete:
            return self._all[0].arrival
        first: int = self.keys.line.head().first
        return first

    def least(self) -> list[int]:
        """Return the least time of the waiting rows, for each attribute."""
        return self.keys.least.values(self.waiting)

    def pass_through(self, came: ArrivedRows) -> Chunk:
        """Return the rows that are not outdated, in their order; none of them waits.

        This takes the place of :meth:`enqueue` where work takes no time.
        """
        kept: list[int] = []
        if came.rows.height:
            self.keys.begin(int(came.when[0]))
        for at, (key, tick) in enumerate(
            zip(self._keys_of(came), came.ticks[0].tolist(), strict=True)
        ):
            cell = self.keys.find(key)
            if self._is_outdated(cell, tick):
                self.outdated += 1
                continue
            cell.newest = tick
            self._note_newest(cell, came, at)
            if cell.end < END_OF_TIME:
                self._left[cell] = None
            cell.account.passed()
            kept.append(at)
        return came.rows if len(kept) == came.rows.height else came.rows[kept]

    # ---- state -----------------------------------------------------------------------------

    def save_rows(self, store: ChunkStore) -> dict[str, Any]:
        """Write the pages that changed and return where rows are in them."""
        return self.memory.save(store, PAGES)

    def save(self, store: ChunkStore) -> dict[str, Any]:
        """Write the pages that changed and return the snapshot."""
        return {
            "memory": self.save_rows(store),
            "keys": self.keys.saved(),
            "line": self.keys.line.saved(),
            "all": [entry.location for entry in self._all],
            "complete": self.complete,
            "counts": (self.given_up, self.outdated, self.switches),
            "load": self.load.saved(),
        }

    def restore(self, store: ChunkStore, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self.memory.load(store, PAGES, saved["memory"])
        self.keys.restore(saved["keys"])
        cells = self.keys.cells
        self.keys.line.restore(saved["line"], cells)
        entries = {e.location: e for cell in cells.values() for e in cell.entries}
        self._all = deque(entries[location] for location in saved["all"])
        self.waiting = len(entries)
        self.keys.least.refill(entries.values())
        self.complete = saved["complete"]
        self.given_up, self.outdated, self.switches = saved["counts"]
        self.load.restore(saved["load"])


def _places(entries: list[WaitingRow]) -> Numbers:
    return np.array([entry.location for entry in entries], np.int64)
