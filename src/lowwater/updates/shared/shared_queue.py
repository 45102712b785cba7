"""The update queue of several queries: one copy of the rows, and one order of service.

A row waits until every reader has been given it or a newer row of its key. A portion goes to the
readers in :attr:`SharedUpdateQueue.queries`; the engine hands its rows to these alone and reports
what each of them cost.

Invariant: after the end, the last row that each reader was given of a key is the newest of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from lowwater.operators.kernel import Host
from lowwater.operators.metric import Readings
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk
from lowwater.updates.key_queue import KeyQueue
from lowwater.updates.keys import WaitingRow, bytes_of_slots
from lowwater.updates.options import Key, Updates
from lowwater.updates.pace import Pace
from lowwater.updates.queue_kernel import PORTION, SECONDS_A_ROW, QueuedRows
from lowwater.updates.row_queue import CELL_BYTES, ArrivedRows, RowQueue
from lowwater.updates.shared.readers import Reader, ReaderKey, SharedCell
from lowwater.updates.shared.service import Costs, SharedLine
from lowwater.updates.staleness import ACCOUNT, Account, Staleness, staleness_of
from lowwater.updates.update_queue import UpdateQueue

READER_BYTES = bytes_of_slots(ReaderKey, list, *ACCOUNT)
"""Approximate bytes of a key for one reader."""


class SharedRows(RowQueue):
    """The waiting rows of a shared queue."""

    def __init__(
        self,
        by: Updates,
        rows: QueuedRows,
        pace: Pace,
        now: Callable[[], int],
        readers: Sequence[Reader],
    ):
        self._readers = readers
        self.costs = Costs(len(readers))
        self.given: tuple[int, ...] = tuple(range(len(readers)))
        """The readers that were given the last portion."""
        self.rows_given = [0] * len(readers)
        """Number of rows that each reader was given."""
        super().__init__(by, rows, pace, now)

    def _make_keys(
        self, by: Updates, rows: QueuedRows, now: Callable[[], int]
    ) -> KeyQueue[SharedCell]:
        self._line = SharedLine(self._readers, self.costs, now, gaps=by.schedule == "auto")

        def make(key: Any, weight: float, number: int) -> SharedCell:
            return SharedCell(key, weight, number, self._readers)

        size = CELL_BYTES + len(self._readers) * READER_BYTES
        return KeyQueue(by, make, self._line, size, len(rows.domains), rows.expire)

    def dequeue(self, count: int, now: int) -> tuple[Chunk, list[Account]]:
        """Take up to ``count`` rows for the readers that are served next; return them and the
        accounts that they are shown in. A row stays while another reader is behind in it."""
        entries: list[WaitingRow] = []
        accounts: list[Account] = []
        gone: list[WaitingRow] = []
        while self._line and len(entries) < count:
            cell, readers = self._line.choose()
            if entries and readers != self.given:
                break
            self.given = readers
            done = self._line.take(cell, readers)
            entry = cell.entries[0]
            cell.newest = entry.ticks[0]
            entries.append(entry)
            for at in readers:
                cell.keys[at].account.taken(now)
                accounts.append(cell.keys[at].account)
            if done:
                gone.append(cell.entries.pop())
                self.keys.expiry.watch(cell)
        for at in self.given:
            self.rows_given[at] += len(entries)
        rows = self.memory.read(np.array([entry.location for entry in entries], np.int64))
        self._forget(gone)
        return rows, accounts

    def pass_through(self, came: ArrivedRows) -> Chunk:
        """Return the rows that are not outdated; every reader is given them."""
        rows = super().pass_through(came)
        self.rows_given = [each + rows.height for each in self.rows_given]
        return rows

    @property
    def oldest(self) -> int | None:
        """Arrival of the first update that the next reader was not given of the key served next, in
        clock nanoseconds; None if no row waits."""
        if not self._line:
            return None
        cell, readers = self._line.choose()
        return min(cell.keys[at].first for at in readers)

    def read(self) -> Chunk:
        """Return the waiting rows, without removing them."""
        return self.memory.read(
            np.array([cell.entries[0].location for cell in self._line], np.int64)
        )

    def staleness(self, reader: int, begun: int, now: int, by_life: bool) -> Staleness:
        """Return the staleness of the results of a reader."""
        cells = list(self.keys.cells.values())  # a copy: metrics are read in another thread
        accounts = {
            cell.key: (cell.keys[reader].account, cell.keys[reader].weight) for cell in cells
        }
        return staleness_of(accounts, begun, now, by_life=by_life)


class SharedUpdateQueue(UpdateQueue):
    """Holds the newest row of each key until every reader has been given it."""

    rule: ClassVar[str] = "the least of the inputs' marks and the times of waiting rows"

    def __init__(
        self,
        store: ChunkStore,
        by: Updates,
        rows: QueuedRows,
        host: Host,
        readers: Sequence[Reader],
    ):
        self._readers = tuple(readers)
        super().__init__(store, by, rows, host)

    def _make_queue(self, by: Updates, rows: QueuedRows) -> SharedRows:
        self._rows = SharedRows(by, rows, self._pace, self.host.now, self._readers)
        return self._rows

    @property
    def queries(self) -> frozenset[int]:
        """The numbers of the queries that are given the last portion."""
        return frozenset().union(*(self._readers[at].queries for at in self._rows.given))

    def record_costs(self, spent: Mapping[int, float], nanoseconds: int) -> None:
        """Record the cost of the last portion, before :meth:`end_portion`.

        ``spent`` has the nanoseconds that single queries took by themselves, ``nanoseconds`` is the
        length of all work.
        """
        own = {
            at: sum(spent.get(query, 0.0) for query in self._readers[at].queries)
            for at in self._rows.given
        }
        self._rows.costs.learn(self._left, own, nanoseconds)

    def _portion(self) -> int:
        most = super()._portion()
        if self.host.singly:
            return most
        cost = self._rows.costs.of_all(self._rows.given)
        return max(1, min(most, int(PORTION / max(cost, 1.0))))

    # ---- metrics ---------------------------------------------------------------------------

    def staleness(self) -> Staleness:
        """Return the staleness of the results of all queries, each key once for each reader."""
        return Staleness.of([self._staleness(at) for at in range(len(self._readers))])

    def staleness_of(self, query: int) -> Staleness:
        """Return the staleness of the results of one query."""
        return self._staleness(self._reader(query))

    def pending_of(
        self, query: int, key: Key | None = None, *, delivered: bool = False
    ) -> dict[Key, int]:
        """Return the keys, or one, of which the results of a query do not show all updates, as
        :meth:`pending` does."""
        cells, at = self._rows.keys.cells, self._reader(query)
        some = list(cells.values()) if key is None else [cells[key]] if key in cells else []
        shown = {id(account) for account in self._in_work} if delivered else set()
        found: dict[Key, int] = {}
        for cell in some:
            account = cell.keys[at].account
            oldest = account.unseen if id(account) in shown else account.application.oldest
            if oldest is not None:
                found[cell.key] = oldest
        return found

    def rows_given_to(self, query: int) -> int:
        """Return the number of rows that one query was given."""
        return self._rows.rows_given[self._reader(query)]

    def metrics_of(self, query: int) -> Readings:
        """Return the metrics of the queue with the cost of a row for one query."""
        costs, at = self._rows.costs, self._reader(query)
        known = costs.own[at].learned
        seconds = (costs.shared.cost + costs.of(at)) / SECOND if known else None
        return self.metrics() | {SECONDS_A_ROW: seconds}

    def _staleness(self, reader: int) -> Staleness:
        now = self._now()
        begun = now if self._rows.keys.begun is None else self._rows.keys.begun
        return self._rows.staleness(reader, begun, now, self._by.forgets)

    def _reader(self, query: int) -> int:
        return next(at for at, each in enumerate(self._readers) if query in each.queries)

    # ---- state -----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {
            "costs": self._rows.costs.saved(),
            "given": tuple(self._rows.rows_given),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._rows.costs.restore(saved["costs"])
        self._rows.rows_given = list(saved["given"])
