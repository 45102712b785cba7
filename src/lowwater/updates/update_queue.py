"""The update queue as an operator: it holds the newest row of each key until there is time for it.

The engine passes rows in as soon as they arrive and takes a portion out whenever none have, so that
under load the newest rows leave.

Invariants: a punctuation leaves when no waiting row is below it; rows of a key leave in the order
of their times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Host, Request
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES, Readings
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import spell
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    Chunk,
    Element,
    Punctuation,
)
from lowwater.stream.low_water_mark import LowWaterMark
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.key_queue import KeyQueue, report_of
from lowwater.updates.keys import KeyCell
from lowwater.updates.options import Updates
from lowwater.updates.queue_kernel import (
    GIVEN_UP,
    KEYS,
    OUTDATED,
    SCHEDULE,
    SECONDS_A_ROW,
    WAITING,
    Numbers,
    QueuedRows,
    QueueKernel,
)
from lowwater.updates.row_queue import ArrivedRows, RowQueue


class UpdateQueue(QueueKernel):
    """Holds the newest row of each key until there is time to work on it."""

    rule: ClassVar[str] = "the least of the inputs' marks and the times of waiting rows"

    def __init__(self, store: ChunkStore, by: Updates, rows: QueuedRows, host: Host):
        super().__init__(store, by, host, rows.arrival, rows.ports)
        self._schema, self._domains = rows.schema, rows.domains
        self._time = next(iter(rows.domains))
        self._queue = self._make_queue(by, rows)
        self._marks = {name: LowWaterMark(range(rows.ports)) for name in self._domains}
        self._emitted = dict.fromkeys(self._domains, BEGINNING)
        self._reached = BEGINNING
        """The last mark by which keys were forgotten; the end of the inputs is none."""

    def _make_queue(self, by: Updates, rows: QueuedRows) -> RowQueue:
        return RowQueue(by, rows, self._pace, self.host.now)

    # ---- rows and promises -----------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Add rows to the queue; where work takes no time, return them."""
        ticks = [self._ticks(name, domain, chunk) for name, domain in self._domains.items()]
        deletion = self._by.deletion
        gone = None if deletion is None else deletion.of(chunk)
        came = ArrivedRows(port, chunk, ticks, self._arrivals(chunk), gone)
        if not self.host.hurried:
            return [self._queue.pass_through(came), *self._ended()]
        self._queue.enqueue(came)
        return []

    def _ticks(self, name: str, domain: TimeDomain, chunk: Chunk) -> Numbers:
        if not chunk[name].null_count():
            return domain.array_of(chunk[name])
        found = chunk.select(domain.to_ticks(pl.col(name)).fill_null(END_OF_TIME))
        ticks: Numbers = found.to_series().to_numpy()
        return ticks

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Pass punctuation on, up to the least time of the waiting rows."""
        name, mark = promise.bounds[0]
        if not promise.is_linear or name not in self._marks:
            return []
        self._marks[name].advance(port, mark)
        return [*self._promises(), *self._forget()]

    def _forget(self) -> list[Element]:
        """Forget keys that have ended and return the punctuation that reports the expired ones."""
        mark = self._marks[self._time].value
        if not BEGINNING < mark < END_OF_TIME:
            return []
        self._reached = mark
        return report_of(self._queue.forget(mark), self._by.key, self._schema)

    def _ended(self) -> list[Element]:
        """Return the punctuation that reports keys that ended with rows that left just now."""
        ended = self._queue.take_ended(self._reached)
        return report_of(ended, self._by.key, self._schema)

    def _promises(self) -> list[Element]:
        least = self._queue.least()
        found: list[Element] = []
        for (name, mark), waits in zip(self._marks.items(), least, strict=True):
            value = min(mark.value, waits)
            if BEGINNING < value < END_OF_TIME and value > self._emitted[name]:
                self._emitted[name] = value
                found.append(Punctuation.linear(name, value))
        return found

    def on_end(self, port: int) -> Sequence[Element]:
        """Stop waiting for the marks of an input; after the last one, the end follows all rows."""
        self._open.discard(port)
        for mark in self._marks.values():
            mark.close(port)
        return self._promises() if self._open else self._close()

    # ---- work ------------------------------------------------------------------------------

    @property
    def _has_work(self) -> bool:
        return bool(self._queue.waiting)

    @property
    def _backlog(self) -> float:
        return self._queue.waiting

    @property
    def waiting_since(self) -> int | None:
        """Arrival of the row served next, in clock nanoseconds; None if no row waits."""
        return self._queue.oldest

    def _dequeue(self, rows: int, now: int) -> list[Element]:
        forgotten = self._forget()  # those whose last update was in the previous portion
        left, self._in_work = self._queue.dequeue(rows, now)
        self._left = left.height
        return [*forgotten, left, *self._ended(), *self._promises()]

    def end_portion(self, nanoseconds: int, now: int) -> None:
        """Count the rows of the portion as shown; work on all rows again if there is time."""
        super().end_portion(nanoseconds, now)
        self._queue.keep_all_if_possible(now)

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark of every input that is behind it."""
        held = self._marks.get(attribute)
        ports = [port for port in sorted(self._open) if held is None or held.of(port) < mark]
        return [Request(port, attribute, mark) for port in ports]

    # ---- metrics ---------------------------------------------------------------------------

    @property
    def held(self) -> tuple[int, int]:
        """Number of keys and waiting rows, and their bytes; in batches rows are in the store and
        counted there."""
        queue = self._queue
        rows, size = (0, 0) if self.host.in_batches else (queue.waiting, queue.memory.bytes)
        return len(queue.keys.cells) + rows, queue.bytes + size

    def marks(self) -> dict[str, int]:
        """Return the last mark of each input, by attribute."""
        return {
            f"{name}[{port}]" if self.ports > 1 else name: value
            for name, mark in self._marks.items()
            for port, value in mark.marks().items()
        }

    @property
    def _keys_of_queue(self) -> KeyQueue[KeyCell]:
        return self._queue.keys

    def metrics(self) -> Readings:
        """Return the counts of the queue and, where it may be complete, whether it is and why."""
        queue = self._queue
        found = Readings(
            {
                SCHEDULE: self._by.schedule,
                KEYS: len(queue.keys.cells),
                WAITING: queue.waiting,
                GIVEN_UP: queue.given_up,
                OUTDATED: queue.outdated,
                SECONDS_A_ROW: self._seconds_a_row(),
            }
        )
        if self._by.complete_within is not None:
            wait = spell(int(round(queue.waiting * self._pace.cost, -6)))
            load = queue.load.value(self._now())
            found |= {
                STRATEGY: "all rows" if queue.complete else "the newest row of each key",
                REASON: f"the work that arrives is {load:.3g} times what can be done;"
                f" the waiting rows take {wait}",
                SWITCHES: queue.switches,
            }
        return found | self._forgotten()

    # ---- state -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Write the waiting rows."""
        self._queue.save_rows(self.store)

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {
            "queue": self._queue.save(self.store),
            "marks": {name: (each.marks(), each.value) for name, each in self._marks.items()},
            "emitted": self._emitted,
            "reached": self._reached,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._queue.restore(self.store, saved["queue"])
        for name, state in saved["marks"].items():
            self._marks[name].restore(*state)
        self._emitted, self._reached = dict(saved["emitted"]), saved["reached"]
