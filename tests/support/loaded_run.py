"""A run under load: rows arrive at their times and rows that leave a queue cost time.

It drives the kernels of a compiled plan by hand, as an engine would: rows that are due are read,
in cuts that follow from a seed; then a queue lets a portion out, and time goes on by what that
costs. Kernels are torn down and built again at random moments. Promises are checked as in the
checked run.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any, Literal

import polars as pl

from lowwater.api import Stream
from lowwater.operators.kernel import Host, Kernel
from lowwater.plan.physical.operator import KernelOperator, Operator
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Element, End
from lowwater.stream.time_domain import clock_times
from lowwater.updates.staleness import MeasuresStaleness, Staleness
from tests.support.checked_run import PromiseBook, feed

Mode = Literal["singly", "portions", "batches", "unhurried"]


class LoadedRun:
    """Runs a query over one replayed source to its end."""

    def __init__(
        self,
        query: Stream,
        seed: int,
        cost: float,
        mode: Mode = "singly",
        restarts: bool = False,
    ):
        self.plan = compile_plan(query._node)
        self._cuts, self._fate = random.Random(seed), random.Random(seed + 1)
        self._cost, self._mode, self._restarts = round(cost * SECOND), mode, restarts
        self._stores = [MemoryStore() for _ in self.plan.operators]
        self._kernels = {each.index: self._built(each) for each in self.plan.kernels}
        self._books = [PromiseBook(each) for each in self.plan.operators]
        self._now = 0
        self.ended_at = 0.0
        """When the input ended, in seconds."""
        self.delivered: list[tuple[float, dict[str, Any]]] = []
        """The rows of the result, and when each left, in seconds."""
        self.portions: list[tuple[float, int]] = []
        """When portions left, and how many rows each had."""
        (self._source,) = self.plan.sources
        self._intake = Intake(self._source.spec, self.plan.demands[self._source.index])
        self._run(self._source.source)

    def _built(self, operator: KernelOperator) -> Kernel:
        host = Host(
            lambda: self._now,
            in_batches=self._mode == "batches",
            hurried=self._mode != "unhurried",
            singly=self._mode == "singly",
        )
        return operator.build(self._stores[operator.index], host)

    @property
    def queue(self) -> Kernel:
        """The first queue."""
        return next(kernel for kernel in self._kernels.values() if kernel.queues)

    @property
    def now(self) -> float:
        """The time, in seconds."""
        return self._now / SECOND

    @property
    def staleness(self) -> Staleness:
        """How stale what the queue shows was."""
        assert isinstance(self.queue, MeasuresStaleness)
        return self.queue.staleness()

    def _run(self, source: Any) -> None:
        table, at = source.table, 0
        times = clock_times(table[source.arrival]).tolist()
        self._now = times[0] if times else 0
        ended = False
        while True:
            self._maybe_restart()
            due = sum(each <= self._now for each in times)
            while at < due:
                size = min(self._cuts.randint(1, 5), due - at)
                self._read(table[at : at + size])
                at += size
            if at == table.height and not ended:
                ended, self.ended_at = True, self.now
                self._emit(self._source, End())
            self._maybe_restart()
            if not self._work() and at == table.height:
                break
            if not self.queue.has_work and at < table.height:
                self._now = max(self._now, times[at])
        for operator, store in zip(self.plan.operators, self._stores, strict=True):
            assert store.rows == 0 == store.bytes, f"{operator.title} left {list(store)}"
        assert self._books[self.plan.result.index].ended

    def _read(self, rows: pl.DataFrame) -> None:
        taken = self._intake.take(rows, self._now)
        assert taken.refused is None or not taken.refused.height, "the set-up is wrong"
        for element in (taken.rows, *taken.promises):
            self._emit(self._source, element)

    def _work(self) -> bool:
        """Let one portion out (in batches, what a batch has time for)."""
        if not self.queue.has_work:
            return False
        index = next(index for index, kernel in self._kernels.items() if kernel.queues)
        left = self.queue.work_on()
        rows = sum(each.height for each in left if isinstance(each, pl.DataFrame))
        self.portions.append((self.now, rows))
        self._now += rows * self._cost
        self._emit_all(index, left)
        self.queue.end_portion(rows * self._cost, self._now)
        if self._mode == "batches":
            self._restart()
        return True

    def _maybe_restart(self) -> None:
        if self._restarts and self._fate.random() < 0.3:
            self._restart()

    def _restart(self) -> None:
        for operator in self.plan.kernels:
            kernel = self._kernels[operator.index]
            if self._fate.random() < 0.5:
                kernel.settle()
            saved = copy.deepcopy(kernel.snapshot())
            self._kernels[operator.index] = self._built(operator)
            self._kernels[operator.index].restore(saved)

    def _emit(self, operator: Operator, element: Element) -> None:
        if isinstance(element, pl.DataFrame) and not element.height:
            return
        self._books[operator.index].check(element)
        if operator is self.plan.result and isinstance(element, pl.DataFrame):
            self.delivered += [(self.now, row) for row in element.iter_rows(named=True)]
        for index, port in self.plan.consumers(operator.index):
            self._emit_all(index, feed(self._kernels[index], port, element))

    def _emit_all(self, index: int, elements: Sequence[Element]) -> None:
        for element in elements:
            self._emit(self.plan.operators[index], element)
