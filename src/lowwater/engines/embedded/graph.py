"""The operator graph at run time: stages joined by arcs, each arc a queue of elements.

Metering is done here, around the kernels, which know nothing of it.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Protocol

import polars as pl

from lowwater.engines.awaiting import Awaiting
from lowwater.engines.embedded.clock import Clock, stopwatch
from lowwater.engines.embedded.pages import PagedStore
from lowwater.engines.step import Where, proceed, step
from lowwater.errors import StreamWarning
from lowwater.metrics import OperatorMetrics
from lowwater.operators.kernel import Kernel
from lowwater.plan.physical.operator import KernelOperator
from lowwater.progress.late import LateRows
from lowwater.stream.element import Chunk, Element, End, GroupPunctuation, Punctuation
from lowwater.stream.time_domain import ROWS
from lowwater.updates.staleness import Shows


class Gauge:
    """A number that remembers its peak."""

    __slots__ = ("now", "peak")

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0

    def add(self, amount: int) -> None:
        """Move the number."""
        self.now += amount
        if self.now > self.peak:  # noqa: PLR1730 (max() costs more, and this runs per element)
            self.peak = self.now


class Totals:
    """What all stages together hold."""

    def __init__(self) -> None:
        self.queued = Gauge()  # rows and promises in arcs and in the buffers of merges
        self.rows = Gauge()
        self.bytes = Gauge()
        self.memory = Gauge()  # bytes of state and of rows waiting in arcs


class Arc:
    """A queue from one stage to a port of the next."""

    __slots__ = ("_elements", "_totals", "length", "port", "target")

    def __init__(self, target: Stage, port: int, totals: Totals):
        self.target, self.port = target, port
        self.length = Gauge()
        self._elements: deque[Element] = deque()
        self._totals = totals

    def __bool__(self) -> bool:
        return bool(self._elements)

    def push(self, element: Element) -> None:
        """Add an element at the tail."""
        self._elements.append(element)
        self._count(weight(element), size(element))

    def pop(self) -> Element:
        """Take the element at the front."""
        element = self._elements.popleft()
        self._count(-weight(element), -size(element))
        return element

    def _count(self, elements: int, grown: int) -> None:
        self.length.add(elements)
        self._totals.queued.add(elements)
        if grown:
            self._totals.memory.add(grown)


def rows_of(elements: Iterable[Element]) -> int:
    """How many rows there are in elements."""
    return sum(each.height for each in elements if isinstance(each, pl.DataFrame))


def weight(element: Element) -> int:
    """How many rows or promises an element is."""
    return element.height if isinstance(element, pl.DataFrame) else 1


def size(element: Element) -> int:
    """The bytes of an element's rows."""
    return int(element.estimated_size()) if isinstance(element, pl.DataFrame) else 0


class Watch(Protocol):
    """Follows the steps of operators while a run goes on."""

    def begins(self, stage: Stage, port: int | None, element: Element | None) -> None:
        """An operator is about to take an element of an input, or to go on without one."""

    def worked(self, stage: Stage, results: Sequence[Element], leaving: int) -> None:
        """It has done so; the clock does not show it yet. ``leaving``: rows let out of a queue."""

    def charged(self, stage: Stage, nanoseconds: int, compared: int) -> None:
        """The clock shows the time of the step, in nanoseconds; so many pairs were compared."""


class Stage:
    """An operator with its kernel, its input queues and its meters."""

    def __init__(self, operator: KernelOperator, clock: Clock, totals: Totals):
        self.operator = operator
        self._where = Where.of(operator)
        self.store = PagedStore()
        self.kernel: Kernel = operator.build(self.store, clock.now)
        self.kernel.in_portions = True
        self.kernel.unhurried, self.kernel.singly = clock.free, not clock.real
        self.inputs: list[Arc] = [Arc(self, port, totals) for port in range(len(operator.inputs))]
        self.outputs: list[Arc] = []
        self.deliver: Callable[[Element], None] | None = None
        self.refuse: Callable[[str, Chunk | None, list[LateRows]], None] | None = None
        self._clock, self._totals = clock, totals
        self._held_in_merge = operator.name in ("merge", "sort")
        self.rows_in = self.rows_out = self.promises_in = self.promises_out = 0
        self.rows, self.bytes = Gauge(), Gauge()
        self.busy = 0
        self.idle = 0
        self.awaiting: Awaiting | None = None
        self.watch: Watch | None = None

    @property
    def more(self) -> bool:
        """Whether there is input to work on."""
        return any(self.inputs)

    def execute(self) -> None:
        """Take one element in, or go on with what is left, and push what comes of it."""
        arc = next((each for each in self.inputs if each), None)
        element = arc.pop() if arc is not None else None
        compared = self.kernel.comparisons
        if self.watch is not None:
            self.watch.begins(self, None if arc is None else arc.port, element)
        begun = stopwatch()
        if arc is None or element is None:
            results = proceed(self.kernel, self._where)
        else:
            results = self._run(arc.port, element)
        took = stopwatch() - begun
        self.busy += took
        leaving = rows_of(results) if self.kernel.queues and arc is None else 0
        if self.watch is not None:
            self.watch.worked(self, results, leaving)
        compared = self.kernel.comparisons - compared
        counted = self._clock.worked(took, compared, leaving)
        if self.watch is not None:
            self.watch.charged(self, counted, compared)
        self.kernel.record_time(counted)
        self._meter()
        for note in self.kernel.notes():
            warnings.warn(f"{self.operator.title}: {note}", StreamWarning, stacklevel=2)
        aside = self.kernel.take_late_rows()
        if aside is not None and self.refuse is not None:
            self.refuse(*aside)
        for result in results:
            self._emit(result)

    def _run(self, port: int, element: Element) -> Sequence[Element]:
        if isinstance(element, pl.DataFrame):
            self.rows_in += element.height
        elif not isinstance(element, End):
            self.promises_in += 1
        results = step(self.kernel, port, element, self._where)
        if self.awaiting is not None:
            self.awaiting.take(self.operator.index, port, element)
        return results

    @property
    def holds(self) -> bool:
        """Whether something is held back that progress would let out."""
        if self.awaiting is not None and self.awaiting.covers(self.operator.index):
            return self.awaiting.holds(self.operator.index)
        return bool(self.kernel.requests())

    def _emit(self, element: Element) -> None:
        if isinstance(element, pl.DataFrame):
            if not element.height:
                return
            self.rows_out += element.height
        elif isinstance(element, Punctuation | GroupPunctuation):
            self.promises_out += 1
        for arc in self.outputs:
            arc.push(element)
        if self.deliver is not None:
            self.deliver(element)

    def say(self, elements: Iterable[Element]) -> None:
        """Push promises that follow from no input."""
        for element in elements:
            self._emit(element)

    def _meter(self) -> None:
        held_rows, held_bytes = self.kernel.held
        rows = self.store.rows + held_rows - self.rows.now
        if rows:
            if self._held_in_merge:
                self._totals.queued.add(rows)
            self.rows.add(rows)
            self._totals.rows.add(rows)
        grown = self.store.bytes + held_bytes - self.bytes.now
        if grown:
            self.bytes.add(grown)
            self._totals.bytes.add(grown)
            self._totals.memory.add(grown)

    def _shown(self, name: str, mark: int) -> datetime | int | None:
        """A mark as a person reads it; ``ts[1]`` is the mark of ``ts`` on input 1."""
        attribute = name.partition("[")[0]
        for node in (*self.operator.node.inputs, self.operator.node):
            if attribute in node.progress:
                return node.progress[attribute].domain.show(mark)
        return ROWS.show(mark)

    def metrics(self, elapsed: int) -> OperatorMetrics:
        """What this stage did."""
        return OperatorMetrics(
            self.operator.title,
            self.operator.detail,
            self.rows_in,
            self.rows_out,
            self.promises_in,
            self.promises_out,
            {name: self._shown(name, mark) for name, mark in self.kernel.marks().items()},
            self.rows.now,
            self.rows.peak,
            self.bytes.now,
            self.bytes.peak,
            sum(arc.length.now for arc in self.inputs),
            max((arc.length.peak for arc in self.inputs), default=0),
            self.busy / 1e9,
            self.idle / elapsed if elapsed else 0.0,
            self.kernel.metrics(),
            self.kernel.staleness() if isinstance(self.kernel, Shows) else None,
        )
