"""Drives the queue of an update stream by hand: rows come, work takes time, results are shown.

It does what an engine does (all that has come is let in before the next portion leaves) and writes
down what happened, from which a plain recomputation tells what should have.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from lowwater.operators.kernel import Host, Kernel
from lowwater.state.store import MemoryStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING, Element, End, Punctuation
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.options import Updates
from lowwater.updates.queue_kernel import QueuedRows
from lowwater.updates.update_queue import UpdateQueue

TICKS = TimeDomain(pl.Int64(), 1)
SCHEMA = {"ts": pl.Int64(), "key": pl.Int64(), "number": pl.Int64()}


@dataclass(frozen=True)
class Row:
    """An update: when it comes, on which input, its key, its time and its number."""

    at: int
    port: int
    key: int
    ts: int
    number: int


@dataclass
class Happened:
    """What came, what left and when it was shown, and what was promised in between."""

    rows: list[Row] = field(default_factory=list)
    shown: list[tuple[int, int, int]] = field(default_factory=list)
    """When a row was taken, when it was shown, and its number."""
    order: list[Row | int] = field(default_factory=list)
    """Rows that left and promises, in their order."""
    ended: bool = False


def updates_from(
    dice: random.Random, *, keys: int, rows: int, disorder: int, ports: int = 1
) -> list[Row]:
    """Rows of some keys, some far more often than others, in bursts and with pauses."""
    weights = [dice.random() ** 2 + 0.01 for _ in range(keys)]
    at, found = 0, []
    for number in range(rows):
        at += dice.choice((0, 0, 1, 1, 2, 3, dice.randrange(20))) * SECOND
        key = dice.choices(range(keys), weights)[0]
        ts = max(0, at // SECOND - dice.randrange(disorder + 1))
        found.append(Row(at, dice.randrange(ports), key, ts, number))
    return found


class UpdateRun:
    """A queue, a clock and work that takes time."""

    def __init__(
        self,
        by: Updates,
        cost: Callable[[int], int],
        *,
        ports: int = 1,
        prefer: int | None = None,
        restarts: Callable[[], bool] = lambda: False,
        disorder: int = 0,
        expire: int | None = None,
    ):
        self._expire = expire
        self.mark = BEGINNING
        """What was promised of all inputs."""
        self.came: list[Row] = []
        """The rows that were let in so far."""
        self._by, self._cost, self._restarts = by, cost, restarts
        self._ports, self._prefer, self._disorder = ports, prefer, disorder
        self.now = 0
        self._store = MemoryStore()
        self.queue: Any = self._make()
        self.happened = Happened()
        self.watch: Callable[[UpdateRun], None] = lambda _: None

    def _make(self) -> Kernel:
        return UpdateQueue(
            self._store,
            self._by,
            QueuedRows(SCHEMA, {"ts": TICKS}, self._ports, self._prefer, expire=self._expire),
            Host(lambda: self.now, singly=True),
        )

    def run(self, rows: list[Row]) -> Happened:
        """Play all rows, and work until nothing is left."""
        self.happened.rows = rows
        left = list(rows)
        marks = [BEGINNING] * self._ports
        while left or self.queue.has_work:
            if left and not self.queue.has_work:
                self.now = max(self.now, left[0].at)
            due = [row for row in left if row.at <= self.now]
            left = left[len(due) :]
            for row in due:
                self._let_in(row, marks)
            if not left and not self.happened.ended and due:
                for port in range(self._ports):
                    self._note(self.queue.on_end(port), self.now)
            self._again()
            if self.queue.has_work:
                self._work()
        return self.happened

    def _let_in(self, row: Row, marks: list[int]) -> None:
        real, self.now = self.now, row.at
        self.came.append(row)
        chunk = pl.DataFrame([(row.ts, row.key, row.number)], schema=SCHEMA, orient="row")
        self._note(self.queue.on_chunk(row.port, chunk), real)
        self.now = real
        mark = row.at // SECOND - self._disorder
        if mark > marks[row.port]:
            marks[row.port] = mark
            self._note(self.queue.on_punctuation(row.port, Punctuation.linear("ts", mark)), real)
            self.mark = min(marks)
        self.watch(self)

    def _work(self) -> None:
        begun = self.now
        elements = self.queue.work_on()
        self.watch(self)
        leaving = sum(each.height for each in elements if isinstance(each, pl.DataFrame))
        self.now += self._cost(leaving)
        self._note(elements, begun)
        self.queue.end_portion(self.now - begun, self.now)

    def _note(self, elements: list[Element], taken: int) -> None:
        by_number = {row.number: row for row in self.happened.rows}
        for each in elements:
            if isinstance(each, pl.DataFrame):
                for number in each["number"].to_list():
                    self.happened.shown.append((taken, self.now, number))
                    self.happened.order.append(by_number[number])
            elif isinstance(each, Punctuation):
                self.happened.order.append(each.values[0])
            elif isinstance(each, End):
                self.happened.ended = True

    def _again(self) -> None:
        """Go on in a new queue, from what the old one saved."""
        if self._restarts():
            self.queue.settle()
            saved = self.queue.snapshot()
            self.queue = self._make()
            self.queue.restore(saved)
