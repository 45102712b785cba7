"""Queries that share the queue of an update stream run in one engine; each has a handle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self

import polars as pl
import pyarrow as pa

from lowwater.engines.answers import Answers
from lowwater.engines.clock import Charge, Clock, PerRow, stopwatch
from lowwater.engines.embedded.engine import EmbeddedEngine, ReadPace, Target
from lowwater.engines.embedded.feed import Feed
from lowwater.engines.embedded.run import choose_clock, read_pace, refuse_spark_options
from lowwater.engines.embedded.split import Split
from lowwater.engines.run import STOP_SECONDS, Run, RunOptions
from lowwater.errors import OptionError
from lowwater.metrics import OperatorMetrics, RunMetrics
from lowwater.plan.physical.answers import answer_shape
from lowwater.plan.physical.sharing import SharedPlan
from lowwater.sinks import MemorySink, Sink, make_sink, on_failure
from lowwater.stream.element import Element
from lowwater.stream.floor import Floor
from lowwater.updates.options import Key
from lowwater.updates.shared.shared_queue import SharedUpdateQueue


class SharedEngine(EmbeddedEngine):
    """Runs the plan of several queries; rows of a portion go to the queries they are for."""

    def __init__(
        self,
        shared: SharedPlan,
        targets: Sequence[Target],
        clock: Clock,
        pace: ReadPace,
        keep_last: int,
        split: Split,
    ):
        self._shared, self._split = shared, split
        self._parts = [shared.part(query) for query in range(len(shared.names))]
        self._set_up(shared.plan, targets, clock, pace, keep_last)
        for index, vertex in self.vertices.items():
            vertex.split, vertex.queries = split, shared.queries_of(index)

    def _deliver(self, results: Sequence[int]) -> None:
        for index in dict.fromkeys(results):
            own = [query for query, each in enumerate(results) if each == index]
            (self.vertices.get(index) or self.feeds[index]).deliver = self._delivering(own)

    def _delivering(self, queries: Sequence[int]) -> Callable[[Element], None]:
        """Return the function that hands rows to those of some queries that they are for."""

        def deliver(element: Element) -> None:
            for query in queries:
                alone = frozenset([query])
                if self._split.passes(alone):
                    begun = stopwatch()
                    self.results[query].deliver(element)
                    if self._clock.real:
                        self._split.spend(alone, stopwatch() - begun)

        return deliver

    def _keep_late_rows(self, stream: str, rows: pl.DataFrame) -> None:
        for query, each in enumerate(self.side_outputs):
            if any(feed.spec.name == stream for feed in self._read_by(query)):
                each.take(stream, rows)

    def _pending(self, queue: int, key: Key | None, query: int) -> dict[Key, int]:
        index = self._shared.operators_of(query)[queue]
        kernel = self.vertices[index].kernel
        if not isinstance(kernel, SharedUpdateQueue):
            return super()._pending(index, key, query)
        return kernel.pending_of(query, key, delivered=self.results[query].writing)

    def _read_by(self, query: int) -> Iterable[Feed]:
        shared = self._shared
        return [feed for at, feed in self.feeds.items() if query in shared.queries_of(at)]

    def _operators(self, query: int, elapsed: int) -> Iterable[OperatorMetrics]:
        own = [each for each in self.vertices.values() if query in each.queries]
        for vertex, operator in zip(own, self._parts[query].kernels, strict=True):
            found, kernel = replace(vertex.metrics(elapsed), title=operator.title), vertex.kernel
            if isinstance(kernel, SharedUpdateQueue):
                found = replace(
                    found,
                    rows_out=vertex.call(kernel.rows_given_to, query),
                    staleness=vertex.call(kernel.staleness_of, query),
                    readings=vertex.call(kernel.metrics_of, query),
                )
            yield found


class SharedWork:
    """The one thread on which queries that share a queue run, and the error that ended it."""

    def __init__(self, engine: SharedEngine):
        self.engine = engine
        self.error: BaseException | None = None
        self.stopped = False
        self.thread = threading.Thread(target=self._work, name="lowwater", daemon=True)
        self._lock = threading.Lock()
        self._started = False

    def _work(self) -> None:
        try:
            self.engine.run()
        except BaseException as error:
            self.error = error

    def start(self) -> None:
        """Run in the background; only the first call has an effect."""
        with self._lock:
            if not self._started:
                self._started = True
                self.thread.start()


class SharedRun(Run):
    """The handle on one of several queries that share a queue; stopping one stops all of them."""

    def __init__(self, shared: SharedPlan, query: int, work: SharedWork, sink: Sink):
        plan = shared.part(query)
        super().__init__(plan, work.engine.sink_call, isinstance(sink, MemorySink))
        self._query, self._shared_work, self._sink = query, work, sink
        self._thread = work.thread

    def _work(self) -> None:
        raise AssertionError("the work of shared queries is done on one thread")

    def start(self) -> Self:
        """Run all queries that share the queue in the background."""
        self._shared_work.start()
        return self

    @property
    def exception(self) -> BaseException | None:
        """The error that ended the run, if one did."""
        return self._shared_work.error

    @property
    def stopped(self) -> bool:
        """True if one of the queries was stopped before the run ended."""
        return self._shared_work.stopped

    def _raise(self) -> None:
        if self._shared_work.error is not None:
            raise self._shared_work.error

    def _interrupt(self) -> None:
        self._shared_work.stopped |= self.active
        self._shared_work.engine.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_SECONDS)

    def _forget(self, floor: Floor) -> None:
        self._shared_work.engine.forget(floor, self._query)

    def _unread(self) -> str:
        waiting = self._shared_work.engine.waiting_rows
        return f"{waiting:,} rows that came were not read, and " if waiting else ""

    def _results(self) -> pa.Table:
        assert isinstance(self._sink, MemorySink)
        return self._sink.table()

    def _answers(self, key: Key | None) -> Answers:
        return self._shared_work.engine.answers(key, self._query)

    def last_rows(self) -> pl.DataFrame:
        """Return the last answers, the newest last, at most ``keep_last`` of them."""
        return self._shared_work.engine.results[self._query].last.table()

    def last_late_rows(self, stream: str) -> pl.DataFrame:
        """Return the last late rows of a stream, at most ``keep_last`` of them."""
        return self._shared_work.engine.side_outputs[self._query].last(stream)

    def _late_rows(self, stream: str) -> pa.Table:
        engine = self._shared_work.engine
        return engine.side_outputs[self._query].rows(engine.feed(stream).intake).to_arrow()

    def metrics(self) -> RunMetrics:
        """Return the metrics so far; sources, queue and state are those of all queries that share
        the queue."""
        return self._shared_work.engine.metrics(self._query)


def prepare_shared(shared: SharedPlan, options: Mapping[str, RunOptions]) -> dict[str, SharedRun]:
    """Set queries up that share queues; ``options`` are alike but for sinks and charges."""
    several = [options[name] for name in shared.names]
    first = several[0]
    refuse_spark_options(first)
    charge, costs = _charge([each.charge for each in several])
    timer = choose_clock(shared.plan, first.clock, charge)
    sinks = [make_sink(each.sink, shared.schema(query)) for query, each in enumerate(several)]
    targets = [
        Target(
            shared.results[query],
            shared.schema(query),
            answer_shape(shared.part(query)),
            sink,
            None if each.late_sink is None else make_sink(each.late_sink, {}),
        )
        for query, (each, sink) in enumerate(zip(several, sinks, strict=True))
    ]
    engine = SharedEngine(
        shared, targets, timer, read_pace(first, timer), first.keep_last, Split(costs)
    )
    for target in targets:
        on_failure(target.sink, engine.stop)
        on_failure(target.late_sink, engine.stop)
    work = SharedWork(engine)
    return {
        name: SharedRun(shared, query, work, sinks[query])
        for query, name in enumerate(shared.names)
    }


def _charge(charges: Sequence[Charge]) -> tuple[Charge, list[float] | None]:
    """Return the charge of the one clock of several queries, and the nanoseconds of a row of each
    if rows are charged."""
    rows = [each.nanoseconds for each in charges if isinstance(each, PerRow)]
    if len(rows) == len(charges):
        return PerRow(1), rows
    if len(set(charges)) > 1:
        raise OptionError(
            "charge=: queries that share a queue have one clock; charge each lw.per_row(...), or"
            " all the same"
        )
    return charges[0], None
