"""A run hands its results to the sink and measures their latency; late rows go to side outputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import polars as pl

from lowwater.engines.clock import Clock
from lowwater.errors import LowwaterError, SinkError, StreamWarning
from lowwater.metrics import Histogram
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.progress.intake import Intake
from lowwater.sinks import LastRows, Sink, SinkCall, complete, count_delivered
from lowwater.stream.element import Chunk, Element, GroupPunctuation
from lowwater.stream.floor import Floor, needed_rows
from lowwater.stream.time_domain import clock_times
from lowwater.updates.answers import AnswerTable

LATE_LIMIT = 1_000_000
"""Late rows of a stream kept in memory where no sink takes them; beyond it they are counted only,
and a warning says so."""


def _write(sink: Sink, rows: Chunk, call: SinkCall) -> None:
    try:
        with call.during(sink, rows.height):
            sink.write(rows)
    except LowwaterError:
        raise
    except Exception as error:
        raise SinkError(f"the sink failed: {type(error).__name__}: {error}") from error


class Results:
    """Hands results to the sink and measures their latency."""

    def __init__(
        self,
        plan: PhysicalPlan,
        schema: Mapping[str, pl.DataType],
        sink: Sink,
        clock: Clock,
        call: SinkCall,
        keep: int,
        answers: AnswerTable | None = None,
    ):
        self._sink, self._clock, self._call = sink, clock, call
        self.answers = answers
        """The newest answer of each key; None if the query has no update key."""
        self._columns = list(schema)
        self._arrival = _arrival_column(plan, schema)
        self._delivered = 0
        self.floor: Floor = {}
        """The floor of the rows that are handed over."""
        self.unneeded = 0
        """Number of rows below the floor."""
        self.last = LastRows(keep)
        self.latency = Histogram()
        self.read_at = 0
        """The clock time of the latest reading or timer, in nanoseconds. Latency is measured from
        it if results have no column with the arrival of their rows."""
        self.shift = 0
        """Nanoseconds added to arrival times of replays to get times of the clock."""
        self.writing = False
        """True while the sink takes rows."""

    def deliver(self, element: Element) -> None:
        """Hand rows to the sink; promises and the end are passed over, except for reports that keys
        have ended, after which these have no answer."""
        if not isinstance(element, pl.DataFrame):
            if self.answers is not None and isinstance(element, GroupPunctuation):
                self.answers.end(element)
            return
        rows = element if element.columns == self._columns else element.select(self._columns)
        needed = needed_rows(rows, self.floor)
        self.unneeded += rows.height - needed.height
        if not needed.height:
            return
        rows, now = needed, self._clock.now()
        if self._arrival is None:
            self.latency.add(now - self.read_at, rows.height)
        else:
            arrived = rows[self._arrival].drop_nulls()  # an outer join leaves out the other side's
            self.latency.add_all(now - self.shift - clock_times(arrived))
        self.last.add(rows)
        if self.answers is not None:
            self.answers.add(rows, now)
        self.writing = True
        _write(self._sink, rows, self._call)
        self.writing = False
        self._delivered += rows.height

    def counts(self) -> tuple[int, int]:
        """Return the rows that left, and those that wait in the sink."""
        return count_delivered(self._sink, self._delivered)

    def complete(self) -> None:
        """Make the sink finish its work, when every source has ended or the run was stopped."""
        complete(self._sink)

    def close(self) -> None:
        """Close the sink."""
        with self._call.during(self._sink, 0):
            self._sink.close()


def _arrival_column(plan: PhysicalPlan, schema: Mapping[str, pl.DataType]) -> str | None:
    """Return the column of the result that holds the arrival times of rows; None if there is
    none."""
    names = {each.source.arrival for each in plan.sources}
    if len(names) != 1:
        return None
    name = names.pop()
    return name if name in schema else None


class LateOutput:
    """The side output: it hands late rows to a sink, or keeps up to :data:`LATE_LIMIT` of them for
    each stream."""

    def __init__(self, sink: Sink | None, call: SinkCall, keep: int):
        self._sink, self._call, self._keep = sink, call, keep
        self._last: dict[str, LastRows] = {}
        self._rows: dict[str, list[Chunk]] = {}
        self._counts: dict[str, int] = {}

    def take(self, stream: str, rows: Chunk) -> None:
        """Take late rows of a stream."""
        self._last.setdefault(stream, LastRows(self._keep)).add(rows)
        if self._sink is not None:
            _write(self._sink, rows.with_columns(pl.lit(stream).alias("_stream")), self._call)
            return
        held = self._counts.get(stream, 0)
        self._counts[stream] = held + rows.height
        if held < LATE_LIMIT:
            self._rows.setdefault(stream, []).append(rows.head(LATE_LIMIT - held))
        if held <= LATE_LIMIT < held + rows.height:
            warnings.warn(
                f"stream {stream!r}: more than {LATE_LIMIT:,} rows were refused; from here on"
                " they are counted but not kept in memory. Give late_sink= to keep them all",
                StreamWarning,
                stacklevel=2,
            )

    def rows(self, intake: Intake) -> Chunk:
        """Return the late rows of a stream that are kept in memory."""
        kept = self._rows.get(intake.spec.name, [])
        return pl.concat([intake.nothing_refused(), *kept], how="diagonal")

    def last(self, stream: str) -> Chunk:
        """Return the latest late rows of a stream, as many as are kept for looking at."""
        kept = self._last.get(stream)
        return pl.DataFrame() if kept is None else kept.table()

    def close(self) -> None:
        """Close the sink, if there is one."""
        if self._sink is not None:
            with self._call.during(self._sink, 0):
                self._sink.close()
