"""The operator graph at run time has vertices joined by arcs; each arc is a queue of elements.

Time, rows and bytes are measured here, around kernels and stores, never inside them.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Protocol

import polars as pl

from lowwater.engines.clock import Clock, stopwatch
from lowwater.engines.embedded.pages import PagedStore
from lowwater.engines.embedded.split import Split
from lowwater.engines.members import Member, Part
from lowwater.engines.memory import MemoryAccount
from lowwater.errors import StreamWarning
from lowwater.metrics import OperatorMetrics
from lowwater.operators.kernel import Host
from lowwater.plan.physical.operator import KernelOperator
from lowwater.progress.late import LateRows
from lowwater.state.peak_counter import PeakCounter
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk, Element
from lowwater.stream.floor import Floor
from lowwater.updates.shared.shared_queue import SharedUpdateQueue


class Totals:
    """The rows, bytes and elements that all vertices together hold."""

    def __init__(self) -> None:
        self.queued = PeakCounter()
        """Rows and promises in arcs, and rows in the buffers of merges and sorts."""
        self.rows = PeakCounter()
        self.bytes = PeakCounter()
        self.memory = PeakCounter()
        """Bytes of state and of rows waiting in arcs."""


class Arc:
    """A queue from a vertex or a source to an input of a vertex."""

    __slots__ = ("_elements", "_totals", "length", "port", "target")

    def __init__(self, target: Vertex, port: int, totals: Totals):
        self.target, self.port = target, port
        self.length = PeakCounter()
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
    """Return the number of rows in elements."""
    return sum(each.height for each in elements if isinstance(each, pl.DataFrame))


def weight(element: Element) -> int:
    """Return the number of rows of an element; 1 for a promise or an end."""
    return element.height if isinstance(element, pl.DataFrame) else 1


def size(element: Element) -> int:
    """Return the bytes of an element's rows."""
    return int(element.estimated_size()) if isinstance(element, pl.DataFrame) else 0


class StepWatch(Protocol):
    """Follows the steps of one operator while a run goes on."""

    def begins(self, port: int | None, element: Element | None) -> None:
        """Note that the operator is about to take an element of an input, or to go on without
        one."""

    def worked(self, results: Sequence[Element], leaving: int) -> None:
        """Note that the step is done, before the clock is charged for it.

        ``leaving`` is the number of rows that the step let out of a queue of updates.
        """

    def charged(self, nanoseconds: int, compared: int) -> None:
        """Note that the clock is charged ``nanoseconds`` for the step, in which ``compared`` pairs
        of rows were compared."""


TakeLateRows = Callable[[str, Chunk | None, list[LateRows]], None]
"""A function that takes the name of a stream, the rows of it that an operator found to be late
(None if they are dropped), and the lines of their account."""


class Vertex(Member):
    """An operator at work, with its input queues and its meters.

    Invariant: ``rows`` and ``bytes`` are the sizes of its state after its last step, and
    ``busy`` and ``idle`` are nanoseconds.
    """

    def __init__(
        self,
        operator: KernelOperator,
        floor: Floor,
        clock: Clock,
        totals: Totals,
        take_late_rows: TakeLateRows,
        account: MemoryAccount | None = None,
    ):
        self.operator, self.store = operator, PagedStore()
        self._account = account
        budget = None if account is None else account.query.ledger.budget
        host = Host(
            clock.now,
            in_portions=True,
            hurried=not clock.free,
            singly=not clock.real,
            memory=budget,
            budget=budget,
        )
        super().__init__(Part.of(operator, operator.title, floor), self.store, host)
        self.inputs: list[Arc] = [Arc(self, port, totals) for port in range(len(operator.inputs))]
        self.outputs: list[Arc] = []
        self.deliver: Callable[[Element], None] | None = None
        self._clock, self._totals, self._take_late_rows = clock, totals, take_late_rows
        self._held_in_merge = operator.traits.buffers
        self.rows, self.bytes = PeakCounter(), PeakCounter()
        self.busy = 0
        self.idle = 0
        self.watch: StepWatch | None = None
        self.split: Split | None = None
        """The queries that rows are for at the moment, where several share a queue."""
        self.queries: frozenset[int] = frozenset()
        """The queries that it works for, by number, where several share a queue."""

    @property
    def has_input(self) -> bool:
        """True if an element waits at some input."""
        return any(self.inputs)

    def execute(self) -> None:
        """Take one element in, or do a portion of the work that is left, and emit the results."""
        self.settle_memory()
        arc = next((each for each in self.inputs if each), None)
        element = arc.pop() if arc is not None else None
        compared = self.kernel.comparisons
        if self.watch is not None:
            self.watch.begins(None if arc is None else arc.port, element)
        begun = stopwatch()
        if arc is None or element is None:
            results = self.call(self.kernel.work_on)
        else:
            results = self.take(arc.port, element)
        took = stopwatch() - begun
        self.busy += took
        leaving = rows_of(results) if self.kernel.queues and arc is None else 0
        if self.split is not None and self.kernel.queues and arc is None:
            queue = self.kernel
            own = queue.queries if isinstance(queue, SharedUpdateQueue) else self.queries
            self.split.begin(own)
            leaving = self.split.charge(leaving)
        if self.watch is not None:
            self.watch.worked(results, leaving)
        compared = self.kernel.comparisons - compared
        counted = self._clock.worked(took, compared, leaving)
        if self.split is not None:
            self.split.spend(self.queries, counted)
        if self.watch is not None:
            self.watch.charged(counted, compared)
        self.call(self.kernel.record_time, counted)
        self._meter()
        for note in self.notes():
            warnings.warn(note, StreamWarning, stacklevel=2)
        late = self.call(self.kernel.take_late_rows)
        if late is not None:
            self._take_late_rows(*late)
        self.emit(results)

    def forget(self, floor: Floor) -> None:
        """Free the state that only rows below a floor depend on."""
        super().forget(floor)
        self._meter()

    def settle_memory(self) -> bool:
        """Report the memory that is needed and used, take the share of the budget, and emit what
        leaves because it is smaller; return whether something left."""
        if self._account is None:
            return False
        results = self.settle_share(self._account)
        self._meter()
        self.emit(results)
        return bool(results)

    def emit(self, elements: Iterable[Element]) -> None:
        """Put elements on all arcs that leave the vertex; rows of the result are delivered."""
        for element in elements:
            if isinstance(element, pl.DataFrame) and not element.height:
                continue
            self.counts.count_out(element)
            rows = isinstance(element, pl.DataFrame)
            for arc in self.outputs:
                if self.split is None or not rows or self.split.passes(arc.target.queries):
                    arc.push(element)
            if self.deliver is not None:
                self.deliver(element)

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

    def metrics(self, elapsed: int) -> OperatorMetrics:
        """Return the metrics; ``elapsed`` is the time of the run so far, in nanoseconds."""
        return OperatorMetrics(
            title=self.operator.title,
            detail=self.operator.detail,
            **asdict(self.counts),
            marks=self.show(self.marks()),
            state_rows=self.rows.now,
            state_rows_peak=self.rows.peak,
            state_bytes=self.bytes.now,
            state_bytes_peak=self.bytes.peak,
            queue=sum(arc.length.now for arc in self.inputs),
            queue_peak=max((arc.length.peak for arc in self.inputs), default=0),
            busy_seconds=self.busy / SECOND,
            idle_share=self.idle / elapsed if elapsed else 0.0,
            readings=self.call(self.kernel.metrics),
            staleness=self.staleness(),
        )
