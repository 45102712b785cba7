"""A run in this process, on a thread of its own or on the caller's."""

from __future__ import annotations

import threading

import polars as pl
import pyarrow as pa

from lowwater.engines.embedded.clock import Charge, Clock, VirtualClock, WallClock
from lowwater.engines.embedded.engine import EmbeddedEngine, Pace
from lowwater.engines.run import STOP_SECONDS, RunOptions, Shown, warn_of_sink
from lowwater.errors import OptionError, StreamError, unknown_name
from lowwater.metrics import RunMetrics
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.sinks import MemorySink, make_sink, on_failure
from lowwater.stream.duration import nanoseconds

CHUNK_ROWS = 65_536
"""Rows handed over at once, unless the user says otherwise."""


class EmbeddedRun:
    """A query that is running, or has run."""

    dashboard: Shown | None = None

    def __init__(self, engine: EmbeddedEngine, sink: object):
        self._engine, self._sink = engine, sink
        self._error: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="lowwater", daemon=True)

    def _work(self) -> None:
        try:
            self._engine.run()
        except BaseException as error:
            self._error = error

    def start(self) -> EmbeddedRun:
        """Run in the background."""
        self._thread.start()
        return self

    def run_here(self) -> EmbeddedRun:
        """Run in the calling thread until the end."""
        self._work()
        self._raise()
        return self

    @property
    def exception(self) -> BaseException | None:
        """The error that ended the run, if one did."""
        return self._error

    @property
    def active(self) -> bool:
        """Whether it is still running."""
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        """True if ``stop()`` was called before the run ended."""
        return self._stopped

    def stop(self) -> None:
        """End the run and wait for it (a sink, which runs inside it, cannot wait).

        A sink that blocks cannot be interrupted: after ten seconds this returns and warns of it.
        """
        self._stopped |= self.active
        self._engine.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(STOP_SECONDS)
            self._warn_of_sink(0.0)
            self._raise()

    def _warn_of_sink(self, seconds: float) -> None:
        if not self._thread.is_alive():
            return
        waiting = self._engine.waiting_rows
        more = f"{waiting:,} rows that came were not read, and " if waiting else ""
        warn_of_sink(self._engine.sink_call, seconds, more)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end; true if it has come. An error of the run is raised here."""
        self._thread.join(timeout)
        if timeout is not None:
            self._warn_of_sink(timeout)
        self._raise()
        return not self._thread.is_alive()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def results(self) -> pa.Table:
        """The results so far, if they were kept in memory (no ``sink=`` was given)."""
        if not self.active:
            self._raise()
        if not isinstance(self._sink, MemorySink):
            raise OptionError(
                "results went to the sink; they are kept only when sink= is not given"
            )
        return self._sink.table()

    def last_rows(self) -> pl.DataFrame:
        """The last answers, the newest last: as many as the run was asked to keep."""
        return self._engine.results.last.table()

    def last_late_rows(self, stream: str) -> pl.DataFrame:
        """The same of the rows of a stream that were not let in."""
        return self._engine.side_output.last(stream)

    def late_rows(self, stream: str | None = None) -> pa.Table:
        """The side output: rows of a stream that were not let in, and why.

        ``_reason`` says why, ``_late_by_seconds`` how late, ``_mark`` which promise was broken.
        """
        names = [each.spec.name for each in self._engine.feeds.values()]
        if stream is None:
            if len(names) > 1:
                raise OptionError(f"several streams ran: say which of {', '.join(names)}")
            stream = names[0]
        if stream not in names:
            raise OptionError(unknown_name("stream", stream, names))
        intake = self._engine.feed(stream).intake
        return self._engine.side_output.rows(intake).to_arrow()

    def metrics(self) -> RunMetrics:
        """Return the metrics so far."""
        return self._engine.metrics()


def prepare_embedded(plan: PhysicalPlan, options: RunOptions) -> EmbeddedRun:
    """Set a plan up in this process."""
    for option in ("checkpoint", "trigger", "buckets", "session"):
        if getattr(options, option) is not None:
            raise OptionError(f'{option}= is for engine="spark"; the embedded engine has none')
    timer = _clock(plan, options.clock, options.charge)
    tick = options.tick
    exact = tick is None and isinstance(timer, WallClock)
    pace = Pace(
        options.chunk_rows or CHUNK_ROWS,
        0 if exact else None if tick is None else nanoseconds(tick, "tick"),
    )
    target = make_sink(options.sink, plan.schema)
    try:
        late = make_sink(options.late_sink, {}) if options.late_sink is not None else None
    except BaseException:
        target.close()
        raise
    engine = EmbeddedEngine(plan, target, timer, pace, late, options.keep_last)
    for sink in (target, late):
        on_failure(sink, engine.stop)
    return EmbeddedRun(engine, target)


def _clock(plan: PhysicalPlan, clock: Clock | str | None, charge: Charge) -> Clock:
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
