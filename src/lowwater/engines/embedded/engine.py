"""The depth-first engine of ETS §3–§5 over any graph of operators.

An execution step runs the current operator on one element; then the next operator is chosen:
*Forward* to a successor that has input, else *Encore* on the same operator, else *Backtrack* to a
predecessor. When backtracking arrives at a source that has nothing to read, the source makes an
enabling timestamp, if some operator waits for one and the source is declared to make them. Work
that an operator can leave for later is done when nothing is left to be told, in portions.

Invariant: between two readings of sources every queue is empty; what waits is in kernels.
"""

from __future__ import annotations

import copy
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, replace

import polars as pl

from lowwater.engines.awaiting import Awaiting
from lowwater.engines.embedded.clock import Clock, VirtualClock, stopwatch
from lowwater.engines.embedded.feed import Feed
from lowwater.engines.embedded.graph import Stage, Totals
from lowwater.engines.embedded.readings import Readings
from lowwater.engines.embedded.stamping import Stamping, stampings
from lowwater.engines.members import backtrack
from lowwater.errors import LowwaterError, SinkError, StreamWarning
from lowwater.metrics import Histogram, RunMetrics
from lowwater.plan.physical.operator import PhysicalPlan, SourceOperator
from lowwater.progress.late import LateRows
from lowwater.sinks import LastRows, Sink, SinkCall, complete, count_delivered
from lowwater.sources.replay import clock_times
from lowwater.sources.source import AT_ONCE
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk, Element

REFUSED_LIMIT = 1_000_000
"""Refused rows kept in memory per stream when no sink takes them; beyond it a warning says that
they are only counted."""


READ_AT_ONCE = 20_000_000
"""Nanoseconds for which sources that always have more are read before queues are worked on."""


@dataclass(frozen=True)
class Pace:
    """How rows are handed over: at most ``chunk_rows`` at once, and in steps of ``tick``."""

    chunk_rows: int = 65_536
    tick: int | None = None
    """Nanoseconds of arrival time delivered together; 0 delivers each row as it arrives, None
    lets time run until some source has a full chunk."""


class EmbeddedEngine:
    """Runs a physical plan to its end, or until stopped."""

    def __init__(
        self,
        plan: PhysicalPlan,
        sink: Sink,
        clock: Clock,
        pace: Pace,
        late_sink: Sink | None,
        keep_last: int = 0,
    ):
        self._plan, self._sink, self._clock, self._pace = plan, sink, clock, pace
        self._late_sink = late_sink
        self._keep_last, self.last = keep_last, LastRows(keep_last)
        self._last_refused: dict[str, LastRows] = {}
        self._totals = Totals()
        self._latency = Histogram()
        self._delivered = 0
        self.sink_call = SinkCall()
        self._stopped = False
        self._refused: dict[str, list[Chunk]] = {}
        self._refused_rows: dict[str, int] = {}
        self._read_at = 0
        self._reads = self._reading_since = 0
        self._shift = 0  # what a replay's arrival times are moved by on a real clock
        self._columns = list(plan.schema)
        self._arrival = self._arrival_column()
        self._feeds: dict[int, Feed] = {}
        self._stages: dict[int, Stage] = {}
        self._build()
        self._begun = clock.now()
        self._ended_at: int | None = None
        self._readings = Readings(self._metrics)

    def _arrival_column(self) -> str | None:
        """A column of the result that says when its rows arrived, if there is one."""
        names = {each.source.arrival for each in self._plan.sources}
        if len(names) != 1:
            return None
        name = names.pop()
        return name if name in self._plan.schema else None

    def _build(self) -> None:
        for operator in self._plan.operators:
            if isinstance(operator, SourceOperator):
                demands = self._plan.demands[operator.index]
                self._feeds[operator.index] = Feed(operator, demands, self._take_refused)
            else:
                stage = Stage(self._plan.kernel(operator.index), self._clock, self._totals)
                self._stages[operator.index] = stage
        for index in range(len(self._plan.operators)):
            node = self._stages.get(index) or self._feeds[index]
            node.outputs = [self._stages[i].inputs[p] for i, p in self._plan.consumers(index)]
        stages = list(self._stages.values())
        for stage in stages:
            stage.refuse = self._refuse
        self._stampings = stampings(stages, list(self._feeds.values()))
        self._awaiting = Awaiting(
            self._stages,
            {index: feed.spec.groups for index, feed in self._feeds.items() if feed.spec.groups},
            frozenset(index for index, feed in self._feeds.items() if feed.on_demand),
        )
        self._queues = [stage for stage in stages if stage.kernel.queues]
        self._leaving = [stage for stage in stages if stage.kernel.defers]
        last = self._plan.result.index
        (self._stages.get(last) or self._feeds[last]).deliver = self._deliver

    # ---- running ---------------------------------------------------------------------------

    def run(self) -> None:
        """Run until all sources have ended, or until stopped."""
        feeds = list(self._feeds.values())
        for feed in feeds:
            feed.reader.notify(self._clock.wake)
        self._start_clock(feeds)
        self._begun = self._clock.now()
        for feed in feeds:
            feed.start(self._begun)
        self._readings.begin()
        try:
            self._turn(feeds)
            complete(self._sink)
        finally:
            self._ended_at = self._clock.now()
            for feed in feeds:
                feed.reader.release()
            for stage in self._stages.values():
                stage.store.close()
            self._readings.end()
            with ExitStack() as closing:  # the other one too, if one cannot be closed
                for sink in (self._late_sink, self._sink):
                    if sink is not None:
                        closing.callback(self._close, sink)

    def _close(self, sink: Sink) -> None:
        with self.sink_call.during(sink, 0):
            sink.close()

    def _turn(self, feeds: list[Feed]) -> None:
        while not self._stopped:
            self._readings.serve()
            busy = self._fire(feeds) | (self._may_read(feeds) and self._serve(feeds))
            wakes: list[int] = []
            if self._enable(wakes) or busy or self._work_on_queues():
                continue
            if all(feed.ended for feed in feeds):
                break
            self._wait(feeds, wakes)

    def _start_clock(self, feeds: list[Feed]) -> None:
        """A virtual clock starts at the first arrival; on a real one the first arrival is now."""
        dues = [due for feed in feeds if (due := feed.due()) is not None]
        first = min((due for due in dues if due != AT_ONCE), default=None)
        if first is None:
            return
        if self._clock.real:
            self._shift = self._clock.now() - first
            for feed in feeds:
                feed.reader.begin(self._clock.now(), first)
            for stage in self._queues:
                stage.call(stage.kernel.shift_arrivals, self._shift)
        elif isinstance(self._clock, VirtualClock):
            self._clock.begin(first)
        else:
            self._clock.wait(first)

    def stop(self) -> None:
        """End the run at the next step; who waits to send rows is told at once."""
        self._stopped = True
        for feed in self._feeds.values():
            feed.reader.release()
        self._clock.wake()

    def _serve(self, feeds: list[Feed]) -> bool:
        """Read from the source whose rows have waited longest."""
        now = self._clock.now()
        ready = [
            (due, feed.rows, at)
            for at, feed in enumerate(feeds)
            if (due := feed.due()) is not None and due <= now
        ]
        if not ready:
            return False
        feed = feeds[min(ready)[2]]
        self._read_at = now
        begun = stopwatch()
        feed.serve(now, self._pace.chunk_rows)
        self._clock.worked(stopwatch() - begun)
        self._depth_first(feed)
        return True

    def _may_read(self, feeds: list[Feed]) -> bool:
        """Whether to read on. Sources that always have more must not keep queues from being worked
        on; on a virtual clock nothing arrives while others are read."""
        if not self._clock.real or not self._queues:
            return True
        self._reads += 1
        if self._reads == 1:
            self._reading_since = stopwatch()
        return self._reads <= len(feeds) or stopwatch() - self._reading_since < READ_AT_ONCE

    def _work_on_queues(self) -> bool:
        """Nothing is there to be read: work on what has waited longest in a queue."""
        self._reads = 0
        ready = [stage for stage in self._queues if stage.kernel.has_work]
        if not ready:
            return False
        stage = min(ready, key=lambda each: each.kernel.waiting_since or 0)
        begun, self._read_at = self._clock.now(), self._clock.now()
        started = stopwatch()
        stage.execute()
        for arc in stage.outputs:
            if arc:
                self._descend(arc.target)
        self._finish()
        now = self._clock.now()
        stage.call(
            stage.kernel.end_portion,
            now - begun if not self._clock.real else stopwatch() - started,
            now,
        )
        return True

    def _fire(self, feeds: list[Feed]) -> bool:
        now = self._clock.now()
        fired = False
        for feed in feeds:
            timer = feed.next_timer()
            if timer is not None and timer <= now:
                self._read_at = now
                begun = stopwatch()
                feed.fire(now)
                self._clock.worked(stopwatch() - begun)
                self._depth_first(feed)
                for stamping in self._stampings.values():
                    self._depth_first(stamping)
                fired = True
        return fired

    def _wait(self, feeds: list[Feed], wakes: list[int]) -> None:
        tick = self._pace.tick
        rows = self._pace.chunk_rows if tick is None else 1
        times = [due for feed in feeds if (due := feed.due(rows)) is not None]
        if tick:
            times = [time if time == AT_ONCE else -(-time // tick) * tick for time in times]
        times += [timer for feed in feeds if (timer := feed.next_timer()) is not None]
        times += wakes
        before = self._clock.now()
        waiting = [stage for stage in self._stages.values() if stage.holds]
        self._clock.wait(min(times, default=None))
        for stage in waiting:
            stage.idle += self._clock.now() - before

    def _depth_first(self, feed: Feed | Stamping) -> None:
        """Forward, Encore, Backtrack, from the source that has just spoken."""
        for arc in feed.outputs:
            if arc:
                self._descend(arc.target)
        self._finish()

    def _finish(self) -> None:
        """Work that was left until everything that was said is known."""
        for stage in self._leaving:
            while stage.kernel.has_work:
                stage.execute()
                for arc in stage.outputs:
                    if arc:
                        self._descend(arc.target)

    def _descend(self, stage: Stage) -> None:
        path = [stage]
        while path:
            current = path[-1]
            self._readings.serve()
            if current.more:
                current.execute()
            forward = next((arc.target for arc in current.outputs if arc), None)
            if forward is not None:
                path.append(forward)
            elif not current.more:
                path.pop()

    # ---- enabling timestamps ---------------------------------------------------------------

    def _enable(self, wakes: list[int]) -> bool:
        """Ask the sources that operators wait for; whether one answered.

        If none did, ``wakes`` gets the clock times at which one could.
        """
        if not any(feed.on_demand for feed in self._feeds.values()):
            return False
        begun = stopwatch()
        now = self._clock.now()
        if self._enable_groups(now, wakes):
            self._clock.worked(stopwatch() - begun)
            return True
        for stage in reversed(self._stages.values()):
            for request in stage.requests:
                for index, attribute, mark in backtrack(self._stages, stage, request):
                    feed = self._feeds.get(index) or self._stampings[index]
                    due = feed.due()
                    if not feed.on_demand or feed.ended or (due is not None and due <= now):
                        continue
                    if feed.enable(attribute, mark, now):
                        self._read_at = now
                        self._clock.worked(stopwatch() - begun)
                        self._depth_first(feed)
                        return True
                    when = feed.when(attribute, mark, now)
                    if when is not None and when > now:
                        wakes.append(when)
        return False

    def _enable_groups(self, now: int, wakes: list[int]) -> bool:
        """Ask for promises on single groups; whether one was made, or ``wakes`` gets the times."""
        for each in self._awaiting.changes():
            intake = self._feeds[each.source].intake
            intake.request(each.attribute, each.origin, each.group, each.mark)
        for feed in self._feeds.values():
            due = feed.due()
            if not feed.on_demand or feed.ended or (due is not None and due <= now):
                continue
            if feed.enable_groups(now):
                self._read_at = now
                self._depth_first(feed)
                return True
            when = feed.intake.due_groups()
            if when is not None:
                wakes.append(when)
        return False

    # ---- results ---------------------------------------------------------------------------

    def _deliver(self, element: Element) -> None:
        if not isinstance(element, pl.DataFrame):
            return
        rows = element if element.columns == self._columns else element.select(self._columns)
        now = self._clock.now()
        if self._arrival is None:
            self._latency.add(now - self._read_at, rows.height)
        else:
            self._latency.add_all(now - self._shift - clock_times(rows[self._arrival]))
        self.last.add(rows)
        self._write(self._sink, rows)
        self._delivered += rows.height

    def _write(self, sink: Sink, rows: Chunk) -> None:
        try:
            with self.sink_call.during(sink, rows.height):
                sink.write(rows)
        except LowwaterError:
            raise
        except Exception as error:
            raise SinkError(f"the sink failed: {type(error).__name__}: {error}") from error

    def last_refused(self, stream: str) -> Chunk:
        """The last rows of a stream that were not let in, if some are kept."""
        kept = self._last_refused.get(stream)
        return pl.DataFrame() if kept is None else kept.table()

    def _take_refused(self, stream: str, rows: Chunk) -> None:
        self._last_refused.setdefault(stream, LastRows(self._keep_last)).add(rows)
        if self._late_sink is not None:
            self._write(self._late_sink, rows.with_columns(pl.lit(stream).alias("_stream")))
            return
        held = self._refused_rows.get(stream, 0)
        self._refused_rows[stream] = held + rows.height
        if held < REFUSED_LIMIT:
            self._refused.setdefault(stream, []).append(rows.head(REFUSED_LIMIT - held))
        if held <= REFUSED_LIMIT < held + rows.height:
            warnings.warn(
                f"stream {stream!r}: more than {REFUSED_LIMIT:,} rows were refused; from here on"
                " they are counted but not kept in memory. Give late_sink= to keep them all",
                StreamWarning,
                stacklevel=2,
            )

    def _refuse(self, stream: str, rows: Chunk | None, lines: list[LateRows]) -> None:
        """Take note of rows that an operator has found to be late."""
        account = next(f.intake.account for f in self._feeds.values() if f.spec.name == stream)
        for line in lines:
            total = line.mean_seconds * line.rows
            account.add(line.channel, line.reason, line.rows, line.longest_seconds, total)
        if rows is not None:
            self._take_refused(stream, rows)

    def refused(self, stream: str) -> Chunk:
        """The rows of a stream that were not let in."""
        feed = next(feed for feed in self._feeds.values() if feed.spec.name == stream)
        return pl.concat(
            [feed.intake.nothing_refused(), *self._refused.get(stream, [])], how="diagonal"
        )

    @property
    def streams(self) -> list[str]:
        """The names of the sources."""
        return [feed.spec.name for feed in self._feeds.values()]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All operators but the sources, in the order of the plan."""
        return tuple(self._stages.values())

    def rows_read(self, stream: str) -> int:
        """Rows of a stream that were read so far."""
        return next(each.rows for each in self._feeds.values() if each.spec.name == stream)

    def stage(self, name: str) -> Stage:
        """The first stage whose operator has this name, for looking into."""
        return next(s for s in self._stages.values() if s.operator.name == name)

    def metrics(self) -> RunMetrics:
        """What happened so far; any thread may ask."""
        found = self._readings.read(self._clock.wake)
        waiting = {feed.spec.name: feed.waiting() for feed in self._feeds.values()}
        streams = (
            replace(each, waiting_rows=held[0], waiting_bytes=held[1])
            if (held := waiting[each.name]) is not None
            else each
            for each in found.streams
        )
        return replace(found, streams=tuple(streams))  # what waits grows while a sink blocks

    @property
    def waiting_rows(self) -> int:
        """Rows that came to sources and were not read yet; any thread may ask."""
        held = (feed.waiting() for feed in self._feeds.values())
        return sum(each[0] for each in held if each is not None)

    def _metrics(self) -> RunMetrics:
        now = self._clock.now() if self._ended_at is None else self._ended_at
        elapsed = now - self._begun
        totals = self._totals
        rows_out, rows_waiting = count_delivered(self._sink, self._delivered)
        return RunMetrics(
            rows_out=rows_out,
            elapsed_seconds=elapsed / SECOND,
            operators=tuple(stage.metrics(elapsed) for stage in self._stages.values()),
            streams=tuple(feed.metrics(now) for feed in self._feeds.values()),
            state_rows=totals.rows.now,
            state_rows_peak=totals.rows.peak,
            state_bytes=totals.bytes.now,
            state_bytes_peak=totals.bytes.peak,
            memory_peak=totals.memory.peak,
            queue_peak=totals.queued.peak,
            latency=copy.deepcopy(self._latency),
            rows_waiting=rows_waiting,
        )
