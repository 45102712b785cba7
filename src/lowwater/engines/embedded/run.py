"""An embedded run works in this process, on a thread of its own or on the caller's."""

from __future__ import annotations

import threading
from typing import Self

import polars as pl
import pyarrow as pa

from lowwater.engines.admission import query_memory
from lowwater.engines.answers import Answers
from lowwater.engines.clock import Charge, Clock, VirtualClock, WallClock
from lowwater.engines.embedded.engine import CHUNK_ROWS, EmbeddedEngine, ReadPace
from lowwater.engines.run import STOP_SECONDS, Run, RunOptions
from lowwater.errors import OptionError, StreamError
from lowwater.metrics import RunMetrics
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.sinks import MemorySink, make_sink, on_failure
from lowwater.stream.duration import nanoseconds
from lowwater.stream.floor import Floor
from lowwater.updates.options import Key


class EmbeddedRun(Run):
    """The run of a query in this process."""

    def __init__(self, plan: PhysicalPlan, engine: EmbeddedEngine, sink: object):
        super().__init__(plan, engine.sink_call, isinstance(sink, MemorySink))
        self._engine, self._sink = engine, sink

    def _work(self) -> None:
        try:
            self._engine.run()
        except BaseException as error:
            self._error = error

    def run_here(self) -> Self:
        """Run in the calling thread until the end."""
        self._work()
        self._raise()
        return self

    def _interrupt(self) -> None:
        self._engine.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_SECONDS)

    def _forget(self, floor: Floor) -> None:
        self._engine.forget(floor)

    def _unread(self) -> str:
        waiting = self._engine.waiting_rows
        return f"{waiting:,} rows that came were not read, and " if waiting else ""

    def _results(self) -> pa.Table:
        assert isinstance(self._sink, MemorySink)
        return self._sink.table()

    def last_rows(self) -> pl.DataFrame:
        """Return the last answers, the newest last, at most ``keep_last`` of them."""
        return self._engine.results[0].last.table()

    def last_late_rows(self, stream: str) -> pl.DataFrame:
        """Return the last late rows of a stream, at most ``keep_last`` of them."""
        return self._engine.side_outputs[0].last(stream)

    def _late_rows(self, stream: str) -> pa.Table:
        return self._engine.side_outputs[0].rows(self._engine.feed(stream).intake).to_arrow()

    def _answers(self, key: Key | None) -> Answers:
        return self._engine.answers(key)

    def metrics(self) -> RunMetrics:
        """Return the metrics so far."""
        return self._engine.metrics()


def prepare_embedded(plan: PhysicalPlan, options: RunOptions) -> EmbeddedRun:
    """Set a plan up in this process."""
    refuse_spark_options(options)
    timer = choose_clock(plan, options.clock, options.charge)
    pace = read_pace(options, timer)
    memory = None
    if options.memory is not None:
        memory = query_memory(plan, options.memory, options.ledger, options.rates, options.label)
        memory.wake = timer.wake
    target = make_sink(options.sink, plan.schema)
    try:
        late = make_sink(options.late_sink, {}) if options.late_sink is not None else None
    except BaseException:
        target.close()
        raise
    engine = EmbeddedEngine(plan, target, timer, pace, late, options.keep_last, memory)
    for sink in (target, late):
        on_failure(sink, engine.stop)
    return EmbeddedRun(plan, engine, target)


def refuse_spark_options(options: RunOptions) -> None:
    """Refuse options that only the Spark engine has."""
    for option in ("checkpoint", "trigger", "buckets", "session"):
        if getattr(options, option) is not None:
            raise OptionError(f'{option}= is for engine="spark"; the embedded engine has none')


def read_pace(options: RunOptions, clock: Clock) -> ReadPace:
    """Return the pace of reading sources on a clock."""
    tick = options.tick
    exact = tick is None and isinstance(clock, WallClock)
    return ReadPace(
        options.chunk_rows or CHUNK_ROWS,
        0 if exact else None if tick is None else nanoseconds(tick, "tick"),
    )


def choose_clock(plan: PhysicalPlan, clock: Clock | str | None, charge: Charge) -> Clock:
    """Return the clock of a run."""
    live = any(each.source.live for each in plan.sources)
    if clock is None:
        clock = "wall" if live else "virtual"
    if clock == "wall":
        clock = WallClock()
    elif clock == "virtual":
        clock = VirtualClock(charge=charge)
    elif isinstance(clock, str):
        raise OptionError(f"clock= is 'virtual' or 'wall', not {clock!r}")
    if live and not clock.real:
        raise StreamError("a live source needs the wall clock")
    return clock
