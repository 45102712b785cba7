"""The metrics of a run are values, readable at any moment of the run and after it.

A field that is one number carries its declaration, a :class:`~lowwater.operators.metric.Metric`.
None stands for a number that the engine does not measure, and no view shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from lowwater.errors import OptionError, unknown_name
from lowwater.metrics.histogram import Histogram
from lowwater.metrics.lag import Mark
from lowwater.metrics.streams import StreamMetrics
from lowwater.operators.metric import (
    Mean,
    Metric,
    Readings,
    Sum,
    peak,
    readings_of,
    seconds,
    share,
    size,
    total,
)
from lowwater.stream.duration import SECOND
from lowwater.updates.queue_kernel import GIVEN_UP, KEYS, SHOWN, WAITING
from lowwater.updates.staleness import Staleness


@dataclass(frozen=True)
class OperatorMetrics:
    """The metrics of one operator."""

    title: str
    detail: str
    rows_in: Annotated[int, total("operator_rows_in", "rows in", "Rows that an operator took in.")]
    rows_out: Annotated[int, total("operator_rows_out", "rows out", "Rows that left an operator.")]
    promises_in: Annotated[
        int,
        total("operator_promises_in", "promises in", "Promises that an operator took in.", "count"),
    ]
    promises_out: Annotated[
        int,
        total("operator_promises_out", "promises out", "Promises that left an operator.", "count"),
    ]
    marks: Mapping[str, Mark]
    """The promises held, by attribute (and input); None before the first and after the end."""
    state_rows: Annotated[
        int, size("operator_state_rows", "rows in state", "Rows that an operator keeps.")
    ]
    state_rows_peak: Annotated[
        int,
        peak(
            "operator_state_rows_peak",
            "rows in state at most",
            "The most rows that an operator kept at one moment; on Spark, at the end of a batch.",
        ),
    ]
    state_bytes: Annotated[
        int,
        size("operator_state_bytes", "bytes of state", "Bytes that an operator keeps.", "bytes"),
    ]
    state_bytes_peak: Annotated[
        int,
        peak(
            "operator_state_bytes_peak",
            "bytes of state at most",
            "The most bytes that an operator kept at one moment; on Spark, at the end of a batch.",
            "bytes",
        ),
    ]
    queue: Annotated[
        int | None,
        size("operator_queue", "queue", "Rows and promises that wait for an operator.", "count"),
    ] = None
    """None on Spark, as is its peak: a batch ends with empty queues."""
    queue_peak: Annotated[
        int | None,
        peak(
            "operator_queue_peak",
            "queue at most",
            "The most rows and promises that waited at one input of an operator.",
            "count",
        ),
    ] = None
    busy_seconds: Annotated[
        float | None,
        seconds("operator_busy_seconds", "busy", "Time that an operator has worked."),
    ] = None
    """None on Spark."""
    idle_share: Annotated[
        float | None,
        share(
            "operator_idle",
            "idle, waiting",
            "The share of the run's time in which an operator held rows back and had no input.",
        ),
    ] = None
    """On Spark the time between batches; None of runs in which no operator requests ticks."""
    rows_unneeded: Annotated[
        int,
        total(
            "operator_rows_unneeded",
            "rows not needed",
            "Rows that an operator did not take in, because no row of the result needs them.",
        ),
    ] = 0
    readings: Readings = field(default_factory=Readings)
    """The kernel's measurements of its own work, by metric."""
    staleness: Staleness | None = None
    """The staleness of the shown rows of an update stream; None of other operators."""

    @property
    def about(self) -> Mapping[str, str | int | float]:
        """The readings by their labels: ``about["held rows[0]"]``."""
        return self.readings.about

    @property
    def all_readings(self) -> Readings:
        """All measurements of the operator, by metric."""
        return readings_of(self) | self.readings | _staleness_readings(self.staleness)


@dataclass(frozen=True)
class BatchMetrics:
    """The metrics of one batch on Spark, from Spark's own report."""

    number: int
    started: datetime
    seconds: Annotated[float, seconds("batch_seconds", "batch", "Duration of the last batch.")]
    rows: Annotated[int, size("batch_rows", "rows of a batch", "Rows read in the last batch.")]
    """Rows read from all streams."""
    parts: Mapping[str, float]
    """The seconds that each step of the batch took, by Spark's names."""


@dataclass(frozen=True)
class RunMetrics:
    """The metrics of a whole run."""

    rows_out: Annotated[
        int, total("rows_out", "rows out", "Rows answered, those in files that readers can see.")
    ]
    """Rows that the sink has handed over: of a folder, those in files that readers can see."""
    elapsed_seconds: Annotated[
        float, seconds("elapsed_seconds", "elapsed", "Clock time since the run began.")
    ]
    operators: tuple[OperatorMetrics, ...]
    streams: tuple[StreamMetrics, ...]
    state_rows: Annotated[int, size("state_rows", "rows in state", "Rows kept in state.")]
    state_rows_peak: Annotated[
        int,
        peak(
            "state_rows_peak",
            "rows in state at most",
            "The most rows kept at one moment; on Spark, at the end of a batch.",
        ),
    ]
    state_bytes: Annotated[int, size("state_bytes", "bytes of state", "Bytes of state.", "bytes")]
    state_bytes_peak: Annotated[
        int,
        peak(
            "state_bytes_peak",
            "bytes of state at most",
            "The most bytes of state at one moment; on Spark, at the end of a batch.",
            "bytes",
        ),
    ]
    memory_peak: Annotated[
        int | None,
        peak(
            "memory_peak_bytes",
            "memory at most",
            "The most bytes that state and rows in queues took together.",
            "bytes",
        ),
    ] = None
    """The most bytes that state and rows waiting in queues took together; None on Spark."""
    queue_peak: Annotated[
        int | None,
        peak(
            "queue_peak",
            "queues at most",
            "The most rows and promises that waited in all queues and buffers together.",
            "count",
        ),
    ] = None
    """The most elements (rows and promises) that waited in all queues and buffers together; None on
    Spark."""
    latency: Histogram = field(repr=False, default_factory=Histogram)
    """The latency of rows, in nanoseconds; empty on Spark."""
    batches: tuple[BatchMetrics, ...] = ()
    """On Spark the last batches, the oldest first."""
    rows_waiting: Annotated[
        int,
        size("rows_waiting", "rows waiting", "Rows that wait in the sink for their file."),
    ] = 0
    """Rows that wait in the sink for their file to be written; not in ``rows_out``."""
    rows_unneeded: Annotated[
        int,
        total(
            "rows_unneeded",
            "answers not needed",
            "Rows of the result that were not handed over, because forget_before() was called.",
        ),
    ] = 0

    @property
    def late_rows(self) -> int:
        """Rows refused for being late, over all streams."""
        return sum(each.late_rows for each in self.streams)

    @property
    def refused_rows(self) -> int:
        """Rows not let in for any reason, over all streams."""
        return sum(each.refused_rows for each in self.streams)

    @property
    def all_readings(self) -> Readings:
        """All measurements of the run as a whole, by metric."""
        found = readings_of(self) | {REFUSED_ROWS: self.refused_rows}
        if self.latency.count:
            found |= {
                metric: self.latency.quantile(share) / SECOND for share, metric in LATENCY.items()
            }
        return found | (readings_of(self.batches[-1]) if self.batches else {})

    def operator(self, name: str) -> OperatorMetrics:
        """Return the first operator whose title begins with ``name``."""
        for each in self.operators:
            if each.title.startswith(name):
                return each
        raise OptionError(unknown_name("operator", name, (each.title for each in self.operators)))

    def stream(self, name: str) -> StreamMetrics:
        """Return the stream of that name."""
        for each in self.streams:
            if each.name == name:
                return each
        raise OptionError(unknown_name("stream", name, (each.name for each in self.streams)))


REFUSED_ROWS = total("refused_rows", "refused rows", "Rows not let in, for any reason.")
ACTIVE = size("query_active", "active", "1 while the query runs, then 0.", "count")
LATENCY: Mapping[float, Metric[float]] = {
    0.5: seconds("latency_p50_seconds", "median latency", "Latency of half of the rows, at most."),
    0.99: seconds("latency_p99_seconds", "latency, p99", "Latency of 99 % of the rows, at most."),
    1.0: seconds("latency_longest_seconds", "longest latency", "Latency of any row, at most."),
}
"""The quantiles of latency that are reported, by the share of rows that do not exceed them."""


@dataclass(frozen=True)
class UpdateMetrics:
    """The staleness of an update stream, and the number of rows that wait in it."""

    title: str
    keys: int
    staleness_seconds: float
    """Seconds by which the shown row of a key is out of date, on average over keys and time."""
    stalest_key: tuple[object, ...]
    """The key whose shown rows are the most out of date."""
    stalest_seconds: float
    """Seconds by which they are, on average over time."""
    waiting: int
    given_up: int
    """Rows, or windows, that newer ones replaced."""
    of_windows: bool

    @classmethod
    def of(cls, operator: OperatorMetrics) -> UpdateMetrics | None:
        """Return the metrics of an update stream; None of another operator, or if it had no row."""
        stale = operator.staleness
        if stale is None or not stale.keys:
            return None
        key, worst = next(iter(stale.by_key.items()), ((), None))
        return cls(
            operator.title,
            stale.keys,
            stale.application,
            key,
            0.0 if worst is None else worst.application,
            operator.readings[WAITING],
            operator.readings[GIVEN_UP],
            SHOWN in operator.readings,
        )


STALENESS = Metric(
    "updates_staleness_seconds",
    float,
    "seconds",
    Mean(KEYS, exact=True),
    "staleness",
    "How long what is shown of a key was out of date, on average over keys and time.",
)
QUEUE_STALENESS = Metric(
    "updates_queue_staleness_seconds",
    float,
    "seconds",
    Mean(KEYS, exact=True),
    "staleness of the queue",
    "Staleness up to the moment at which an update leaves the queue.",
)
WEIGHT = Metric(
    "updates_weight", float, "count", Sum(), "weight", "The weights of all keys together."
)
WEIGHTED_STALENESS = Metric(
    "updates_weighted_staleness_seconds",
    float,
    "seconds",
    Mean(WEIGHT, exact=True),
    "weighted staleness",
    "Staleness in which each key counts as much as its weight.",
)


def _staleness_readings(found: Staleness | None) -> Readings:
    if found is None or not found.keys:
        return Readings()
    return Readings(
        {
            STALENESS: found.application,
            QUEUE_STALENESS: found.queue,
            WEIGHTED_STALENESS: found.weighted,
            WEIGHT: found.weight,
        }
    )
