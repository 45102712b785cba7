"""The embedded engine reads sources by the clock and runs operators, in one process (ETS §3-§5).

In each turn of its loop the engine fires timers, reads the source whose rows have waited longest
and makes an enabling timestamp. If it could do none of these, it works on a queue of updates; if no
queue holds rows, it sleeps. After each step, operators run until the arcs between them are empty.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import polars as pl

from lowwater.engines.answers import Answers, pending_of
from lowwater.engines.clock import Clock, VirtualClock, stopwatch
from lowwater.engines.embedded.feed import Feed
from lowwater.engines.embedded.graph import Arc, Totals, Vertex
from lowwater.engines.embedded.outputs import LateOutput, Results
from lowwater.engines.embedded.sampler import Sampler
from lowwater.engines.embedded.schedule import Schedule
from lowwater.engines.embedded.timestamps import Timestamps
from lowwater.engines.feedback import Feedback
from lowwater.engines.memory import QueryMemory
from lowwater.errors import StreamWarning
from lowwater.metrics import OperatorMetrics, RunMetrics
from lowwater.plan.physical.answers import answer_shape
from lowwater.plan.physical.floors import floors_of
from lowwater.plan.physical.operator import PhysicalPlan, SourceOperator
from lowwater.progress.first_rows import FirstRows
from lowwater.progress.late import LateRows
from lowwater.sinks import Sink, SinkCall
from lowwater.sources.source import AT_ONCE
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk
from lowwater.stream.floor import Floor, least, raised
from lowwater.updates.answers import AnswerShape, AnswerTable
from lowwater.updates.options import Key
from lowwater.updates.queue_kernel import QueueKernel

CHUNK_ROWS = 65_536
"""The greatest number of rows read from a source at once, unless ``chunk_rows=`` is given."""


@dataclass(frozen=True)
class ReadPace:
    """The pace of reading sources: at most ``chunk_rows`` rows at once, in steps of ``tick``."""

    chunk_rows: int = CHUNK_ROWS
    tick: int | None = None
    """Nanoseconds of arrival time delivered together; 0 delivers each row as it arrives, None
    lets time run until some source has a full chunk."""


@dataclass(frozen=True)
class Target:
    """The destination of the results of an operator, and that of late rows."""

    index: int
    schema: Mapping[str, pl.DataType]
    shape: AnswerShape | None
    """The keys of its answers; None if it has no update key."""
    sink: Sink
    late_sink: Sink | None = None
    """None if late rows are kept."""

    def answers(self) -> AnswerTable | None:
        """Return a table for its newest answers."""
        return None if self.shape is None else AnswerTable(self.shape)


class EmbeddedEngine:
    """Runs a physical plan to its end, or until stopped."""

    def __init__(
        self,
        plan: PhysicalPlan,
        sink: Sink,
        clock: Clock,
        pace: ReadPace,
        late_sink: Sink | None,
        keep_last: int = 0,
        memory: QueryMemory | None = None,
    ):
        targets = [Target(plan.result.index, plan.schema, answer_shape(plan), sink, late_sink)]
        self._set_up(plan, targets, clock, pace, keep_last, memory)

    def _set_up(
        self,
        plan: PhysicalPlan,
        targets: Sequence[Target],
        clock: Clock,
        pace: ReadPace,
        keep_last: int,
        memory: QueryMemory | None = None,
    ) -> None:
        self._clock, self._pace, self._memory = clock, pace, memory
        self.sink_call = call = SinkCall()
        self._shapes = [each.shape for each in targets]
        self.results = [
            Results(plan, each.schema, each.sink, clock, call, keep_last, each.answers())
            for each in targets
        ]
        """The results of each query; there is one unless several share a queue."""
        self.side_outputs = [LateOutput(each.late_sink, call, keep_last) for each in targets]
        """The side output of each query."""
        self._totals = Totals()
        self.feeds: dict[int, Feed] = {}
        self.vertices: dict[int, Vertex] = {}
        self._build(plan, targets)
        self._sampler = Sampler(self._metrics)
        self._schedule = Schedule(self.vertices.values(), clock, self._sampler.serve)
        self._timestamps = Timestamps(self.vertices, self.feeds)
        self._first_rows = FirstRows(
            {index: feed.intake for index, feed in self.feeds.items()},
            {index: feed.operator.source.origin for index, feed in self.feeds.items()},
        )
        self._stopped = False
        self._begun = clock.now()
        self._ended_at: int | None = None

    def _build(self, plan: PhysicalPlan, targets: Sequence[Target]) -> None:
        self._targets = [each.index for each in targets]
        floors = floors_of(plan.operators, self._targets)
        for operator in plan.operators:
            if isinstance(operator, SourceOperator):
                demands = plan.demands[operator.index]
                self.feeds[operator.index] = Feed(operator, demands, self._keep_late_rows)
            else:
                kernel = plan.kernel(operator.index)
                floor = floors[operator.index]
                account = self._memory.account(kernel.title) if self._memory is not None else None
                vertex = Vertex(
                    kernel, floor, self._clock, self._totals, self._take_late_rows, account
                )
                self.vertices[operator.index] = vertex
        for index in range(len(plan.operators)):
            node = self.vertices.get(index) or self.feeds[index]
            node.outputs = [self.vertices[i].inputs[port] for i, port in plan.consumers(index)]
        self._deliver(self._targets)
        self._feedback = Feedback(
            {index: vertex.part.inputs for index, vertex in self.vertices.items()},
            lambda index: self.vertices[index].floors(),
            dict(enumerate(floors)),
            self._targets,
            self._state_floor,
        )
        for vertex in self.vertices.values():
            vertex.feedback = self._feedback
        self._feedback.begin()

    def _deliver(self, results: Sequence[int]) -> None:
        """Let the rows of operators leave as the results of the queries."""
        for index, own in zip(results, self.results, strict=True):
            (self.vertices.get(index) or self.feeds[index]).deliver = own.deliver

    def _keep_late_rows(self, stream: str, rows: Chunk) -> None:
        for each in self.side_outputs:
            each.take(stream, rows)

    def _state_floor(self, index: int, floor: Floor) -> None:
        """Hand an operator or a source the floor of its rows."""
        if index in self.vertices:
            self.vertices[index].forget(floor)
        else:
            self.feeds[index].intake.floor = floor

    def feed(self, stream: str) -> Feed:
        """Return the source of a stream, by name."""
        return next(each for each in self.feeds.values() if each.spec.name == stream)

    def _take_late_rows(self, stream: str, rows: Chunk | None, lines: list[LateRows]) -> None:
        """Count rows of a stream that an operator found to be late; keep them if there are any."""
        self.feed(stream).intake.account.add_lines(lines)
        if rows is not None:
            self._keep_late_rows(stream, rows)

    # ---- running ---------------------------------------------------------------------------

    def run(self) -> None:
        """Run until all sources have ended, or until stopped."""
        feeds = list(self.feeds.values())
        for feed in feeds:
            feed.reader.notify(self._clock.wake)
        self._start_clock(feeds)
        self._begun = self._clock.now()
        for feed in feeds:
            feed.start(self._begun)
        self._sampler.begin()
        try:
            self._loop(feeds)
            for each in self.results:
                each.complete()
        finally:
            self._ended_at = self._clock.now()
            for feed in feeds:
                feed.reader.release()
            for vertex in self.vertices.values():
                vertex.store.close()
            if self._memory is not None:
                self._memory.close()
            self._sampler.end()
            with ExitStack() as closing:  # closes all sinks, even if closing one of them fails
                for late in self.side_outputs:
                    closing.callback(late.close)
                for results in self.results:
                    closing.callback(results.close)

    def _loop(self, feeds: list[Feed]) -> None:
        while not self._stopped:
            self._sampler.serve()
            self._share_memory()
            self._sampler.answer_questions()
            busy = self._fire_timers(feeds)
            if self._schedule.may_read(len(feeds)):
                busy |= self._read(feeds)
            if self._make_timestamp() or busy or self._work_on_queue():
                continue
            if all(feed.ended for feed in feeds):
                break
            self._wait(feeds)

    def _share_memory(self) -> None:
        """Let joins report what memory they need, and obey their shares of the budget."""
        if self._memory is None:
            return
        for vertex in self.vertices.values():
            if vertex.settle_memory():
                self._schedule.run_from(vertex.outputs)
        shortage = self._memory.judge()
        if shortage is not None:
            warnings.warn(shortage, StreamWarning, stacklevel=2)

    def _start_clock(self, feeds: list[Feed]) -> None:
        """Start a virtual clock at the first arrival; on a real clock, shift arrivals so that the
        first one is now."""
        dues = [due for feed in feeds if (due := feed.due()) is not None]
        first = min((due for due in dues if due != AT_ONCE), default=None)
        if first is None:
            return
        if self._clock.real:
            shift = self._clock.now() - first
            for results in self.results:
                results.shift = shift
            for feed in feeds:
                feed.begin(self._clock.now(), first)
            for queue in self._schedule.queues:
                queue.call(queue.kernel.shift_arrivals, shift)
        elif isinstance(self._clock, VirtualClock):
            self._clock.begin(first)
        else:
            self._clock.wait(first)

    def stop(self) -> None:
        """End the run at the next step; senders that wait for room are released at once."""
        self._stopped = True
        for feed in self.feeds.values():
            feed.reader.release()
        self._clock.wake()

    def forget(self, floor: Floor, query: int = 0) -> None:
        """Raise the floor of a query's answers between two steps; any thread may call this."""
        self._sampler.do(lambda: self._forget(floor, query), self._clock.wake)

    def _forget(self, floor: Floor, query: int) -> None:
        self.results[query].floor = raised(self.results[query].floor, floor)
        index = self._targets[query]
        together = zip(self._targets, self.results, strict=True)
        self._feedback.forget(index, least([own.floor for at, own in together if at == index]))

    def _read(self, feeds: list[Feed]) -> bool:
        """Read from the source whose rows have waited longest; return whether there was one."""
        now = self._clock.now()
        ready = [
            (due, feed.rows, at)
            for at, feed in enumerate(feeds)
            if (due := feed.due()) is not None and due <= now
        ]
        if not ready:
            return False
        feed = feeds[min(ready)[2]]
        self._note_reading(now)
        begun = stopwatch()
        feed.serve(now, self._pace.chunk_rows)
        self._clock.worked(stopwatch() - begun)
        moved = self._first_rows.confirm(feed.operator.index)
        confirmed = [self.feeds[each] for each in sorted(moved) if not self.feeds[each].ended]
        for each in confirmed:
            each.promise()
        self._schedule.run_from(feed.outputs)
        for each in confirmed:
            self._schedule.run_from(each.outputs)
        return True

    def _note_reading(self, now: int) -> None:
        for each in self.results:
            each.read_at = now

    def _fire_timers(self, feeds: list[Feed]) -> bool:
        """Fire the timers that are due; return whether there was one."""
        now = self._clock.now()
        fired = False
        for feed in feeds:
            timer = feed.next_timer()
            if timer is not None and timer <= now:
                self._note_reading(now)
                begun = stopwatch()
                feed.fire(now)
                self._clock.worked(stopwatch() - begun)
                self._schedule.run_from(feed.outputs)
                for clock in self._timestamps.clocks:
                    self._schedule.run_from(clock.outputs)
                fired = True
        return fired

    def _make_timestamp(self) -> bool:
        """Make an enabling timestamp if one is requested; return whether one was made."""
        begun, now = stopwatch(), self._clock.now()
        arcs: Iterable[Arc] | None = self._timestamps.make(now)
        if arcs is None:
            return False
        self._note_reading(now)
        self._clock.worked(stopwatch() - begun)
        self._schedule.run_from(arcs)
        return True

    def _work_on_queue(self) -> bool:
        """Let a portion out of a queue of updates; return whether there was one."""
        queue = self._schedule.next_queue()
        if queue is None:
            return False
        self._note_reading(self._clock.now())
        self._schedule.work_on(queue)
        return True

    def _wait(self, feeds: list[Feed]) -> None:
        """Sleep until something is to be read, a timer is due or a request can be met."""
        tick = self._pace.tick
        rows = self._pace.chunk_rows if tick is None else 1
        times = [due for feed in feeds if (due := feed.due(rows)) is not None]
        if tick:
            times = [time if time == AT_ONCE else -(-time // tick) * tick for time in times]
        times += [timer for feed in feeds if (timer := feed.next_timer()) is not None]
        times += self._timestamps.wakes
        before = self._clock.now()
        holding = [vertex for vertex in self.vertices.values() if vertex.holds]
        self._clock.wait(min(times, default=None))
        for vertex in holding:
            vertex.idle += self._clock.now() - before

    # ---- metrics ---------------------------------------------------------------------------

    def metrics(self, query: int = 0) -> RunMetrics:
        """Return the metrics of a query so far; any thread may call this."""
        found = self._sampler.read(self._clock.wake)[query]
        waiting = {feed.spec.name: feed.waiting() for feed in self.feeds.values()}
        streams = (
            replace(each, waiting_rows=held[0], waiting_bytes=held[1])
            if (held := waiting[each.name]) is not None
            else each
            for each in found.streams
        )
        return replace(found, streams=tuple(streams))  # rows gather even while a sink blocks

    def answers(self, key: Key | None, query: int = 0) -> Answers:
        """Return the newest answers of a query, of all update keys or at least of one; any thread
        may call this."""
        return self._sampler.ask(self._clock.wake, lambda: self._answers(key, query))

    def _answers(self, key: Key | None, query: int) -> Answers:
        shape, table = self._shapes[query], self.results[query].answers
        assert shape is not None
        assert table is not None
        now = self._clock.now() if self._ended_at is None else self._ended_at
        waiting = []
        for each in shape.queues:
            waiting.append((self._pending(each.operator, each.key_of(key), query), each.order))
        return Answers(table.copy(), pending_of(waiting, shape), now)

    def _pending(self, queue: int, key: Key | None, query: int) -> dict[Key, int]:
        """Return the keys that wait in a queue, or one, with their oldest updates; ``queue`` is its
        place in the plan of the query."""
        kernel = self.vertices[queue].kernel
        assert isinstance(kernel, QueueKernel)
        return kernel.pending(key, delivered=self.results[query].writing)

    @property
    def waiting_rows(self) -> int:
        """The number of rows that sources hold and the run has not read; any thread may read it."""
        held = (feed.waiting() for feed in self.feeds.values())
        return sum(each[0] for each in held if each is not None)

    def _metrics(self) -> list[RunMetrics]:
        """Return the metrics of each query."""
        return [self._metrics_of(query) for query in range(len(self.results))]

    def _operators(self, query: int, elapsed: int) -> Iterable[OperatorMetrics]:
        """Return the metrics of the operators that work for a query."""
        return (vertex.metrics(elapsed) for vertex in self.vertices.values())

    def _read_by(self, query: int) -> Iterable[Feed]:
        """Return the sources that a query reads."""
        return self.feeds.values()

    def _metrics_of(self, query: int) -> RunMetrics:
        now = self._clock.now() if self._ended_at is None else self._ended_at
        elapsed = now - self._begun
        totals, results = self._totals, self.results[query]
        rows_out, rows_waiting = results.counts()
        return RunMetrics(
            rows_out=rows_out,
            elapsed_seconds=elapsed / SECOND,
            operators=tuple(self._operators(query, elapsed)),
            streams=tuple(feed.metrics(now) for feed in self._read_by(query)),
            state_rows=totals.rows.now,
            state_rows_peak=totals.rows.peak,
            state_bytes=totals.bytes.now,
            state_bytes_peak=totals.bytes.peak,
            memory_peak=totals.memory.peak,
            queue_peak=totals.queued.peak,
            latency=copy.deepcopy(results.latency),
            rows_waiting=rows_waiting,
            rows_unneeded=results.unneeded,
        )
