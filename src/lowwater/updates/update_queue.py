"""The update queue as an operator: rows wait until there is time for them, the newest of each key.

The engine lets rows in whenever some are there and asks for a portion whenever none are, so what
leaves under load is the newest there is. A portion is one update, or as many as take about as long
as a person does not notice; in batches it is what the budget of the batch has time for, by what
rows cost in the batches before: a batch that is run again picks the same rows.

Invariant: a promise leaves when no waiting row is below it; rows of a key leave in the order of
their times; after the last input has ended all that waits leaves, and then the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.operators.kernel import Kernel
from lowwater.sources.replay import clock_times
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import spell
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, End, Punctuation
from lowwater.stream.low_water_mark import LowWaterMark
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.cells import Cell
from lowwater.updates.manager import Arrivals, Numbers, QueueManager
from lowwater.updates.options import Updates
from lowwater.updates.pace import Pace
from lowwater.updates.staleness import Staleness, staleness_of

PORTION = 20_000_000
"""Nanoseconds of work taken on at once where rows can be read at any moment."""


class UpdateQueue(Kernel):
    """Holds the newest row of each key until there is time to work on it."""

    rule: ClassVar[str] = "the least of the inputs' marks and the times that wait"
    queues: ClassVar[bool] = True

    def __init__(
        self,
        store: ChunkStore,
        by: Updates,
        schema: Mapping[str, pl.DataType],
        domains: Mapping[str, TimeDomain],
        now: Callable[[], int],
        *,
        ports: int = 1,
        prefer: int | None = None,
        arrival: str | None = None,
    ):
        super().__init__(store, ports)
        self._by, self._domains, self._now, self._arrival = by, dict(domains), now, arrival
        self._pace = Pace()
        self._queue = QueueManager(
            by,
            dict(schema),
            len(self._domains),
            self._pace,
            now,
            strict=ports > 1,
            prefer=prefer,
        )
        self._marks = {name: LowWaterMark(range(ports)) for name in self._domains}
        self._told = dict.fromkeys(self._domains, BEGINNING)
        self._in_work: list[Cell] = []
        self._served = False
        self._ending = False

    # ---- rows and promises -----------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Let rows wait; if work takes no time, they pass."""
        ticks = [self._ticks(name, domain, chunk) for name, domain in self._domains.items()]
        came = Arrivals(port, chunk, ticks, self._arrivals(chunk))
        if self.unhurried:
            return [self._queue.passed(came)]
        self._queue.enqueue(came)
        return []

    def _ticks(self, name: str, domain: TimeDomain, chunk: Chunk) -> Numbers:
        found = chunk.select(domain.to_ticks(pl.col(name)).fill_null(END_OF_TIME))
        ticks: Numbers = found.to_series().to_numpy()
        return ticks

    def _arrivals(self, chunk: Chunk) -> Numbers:
        if self._arrival is None:
            return np.full(chunk.height, self._now(), np.int64)
        return clock_times(chunk[self._arrival]) + self.shift

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Pass a promise on as far as no waiting row is below it."""
        name, mark = promise.bounds[0]
        if not promise.is_linear or name not in self._marks:
            return []
        self._marks[name].advance(port, mark)
        return self._promises()

    def _promises(self) -> list[Element]:
        least = self._queue.least()
        told: list[Element] = []
        for (name, mark), waits in zip(self._marks.items(), least, strict=True):
            value = min(mark.value, waits)
            if BEGINNING < value < END_OF_TIME and value > self._told[name]:
                self._told[name] = value
                told.append(Punctuation.linear(name, value))
        return told

    def on_end(self, port: int) -> Sequence[Element]:
        """An input that ended holds nobody back; the end leaves after all rows have."""
        self._open.discard(port)
        for mark in self._marks.values():
            mark.close(port)
        if self._open:
            return self._promises()
        self._ending = True
        return [] if self._queue.waiting else self._end()

    def _end(self) -> list[Element]:
        self._ending = False
        self._queue.save_rows(self.store)  # that nothing is left of them
        return [End()]

    # ---- work ------------------------------------------------------------------------------

    @property
    def more(self) -> bool:
        """Whether a portion may leave now."""
        return bool(self._queue.waiting) and (not self._served or self._ending)

    @property
    def waiting(self) -> int | None:
        """Since when the row that waits longest has."""
        return self._queue.oldest

    def go_on(self) -> Sequence[Element]:
        """Let a portion out."""
        rows, self._in_work = self._queue.dequeue(self._portion(), self._now())
        self._served = self.in_batches
        told = self._promises()
        ended = self._end() if self._ending and not self._queue.waiting else []
        return [rows, *told, *ended]

    def _portion(self) -> int:
        if self.in_batches:
            return self._queue.waiting if self._ending else self._pace.fitting(self._by.budget)
        return 1 if self.singly else self._pace.fitting(PORTION)

    def answered(self, nanoseconds: int, now: int) -> None:
        """What left is shown."""
        self._pace.learn(len(self._in_work), nanoseconds)
        for cell in self._in_work:
            cell.account.shown(now)
        self._in_work = []
        self._queue.keep_all_if_possible()

    # ---- what people are told --------------------------------------------------------------

    @property
    def held(self) -> tuple[int, int]:
        """What is in pages; in batches these are in the store."""
        return (0, 0) if self.in_batches else (self._queue.waiting, self._queue.memory.bytes)

    def marks(self) -> dict[str, int]:
        """The last mark of each input."""
        return {
            f"{name}[{port}]" if self.ports > 1 else name: value
            for name, mark in self._marks.items()
            for port, value in mark.marks().items()
        }

    def staleness(self) -> Staleness:
        """How stale what is shown was, and is."""
        queue = self._queue
        accounts = {key: (cell.account, cell.weight) for key, cell in queue.cells.items()}
        now = self._now()
        return staleness_of(accounts, now if queue.begun is None else queue.begun, now)

    def about(self) -> dict[str, str | int | float]:
        """The queue, in numbers."""
        queue = self._queue
        found: dict[str, str | int | float] = {
            "schedule": self._by.schedule,
            "keys": len(queue.cells),
            "waiting": queue.waiting,
            "given up for newer rows": queue.given_up,
            "outdated when they came": queue.outdated,
        }
        if self._pace.cost:
            found["cost of a row"] = spell(round(self._pace.cost))
        if self._by.complete_within is not None:
            found["rows worked on"] = "all" if queue.complete else "the newest of each key"
            found["switches"] = queue.switches
        return found

    # ---- state -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Write the rows that wait."""
        self._queue.save_rows(self.store)

    def snapshot(self) -> dict[str, Any]:
        """Where rows are, and all else."""
        return super().snapshot() | {
            "queue": self._queue.save(self.store),
            "pace": self._pace.saved(),
            "marks": {name: (each.marks(), each.value) for name, each in self._marks.items()},
            "told": self._told,
            "ending": self._ending,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._queue.load(self.store, saved["queue"])
        self._pace.restore(saved["pace"])
        for name, state in saved["marks"].items():
            self._marks[name].restore(*state)
        self._told, self._ending = dict(saved["told"]), saved["ending"]
