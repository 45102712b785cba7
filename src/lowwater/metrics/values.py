"""Metrics as values: what a run did, readable at any moment and after it."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lowwater.errors import OptionError, unknown_name
from lowwater.metrics.histogram import Histogram
from lowwater.operators.metric import Readings
from lowwater.progress.completeness import WORDS, Completeness
from lowwater.progress.late import LateRows
from lowwater.stream.duration import SECOND, Duration, spell
from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.staleness import Staleness


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator."""

    title: str
    detail: str
    rows_in: int
    rows_out: int
    promises_in: int
    promises_out: int
    marks: Mapping[str, datetime | int | None]
    """The promises held, by attribute (and input); None before the first and after the end."""
    state_rows: int
    state_rows_peak: int
    state_bytes: int
    state_bytes_peak: int
    queue: int
    queue_peak: int
    busy_seconds: float
    idle_share: float
    """Share of the run's time in which it held something back and had no input; on Spark, of runs
    with a stream that may be silent, the time between batches."""
    readings: Readings = field(default_factory=Readings)
    """What the kernel measures of its own work, by metric."""
    staleness: Staleness | None = None
    """Of the queue of an update stream: how stale what is shown was, and is."""

    @property
    def about(self) -> Mapping[str, str | int | float]:
        """The readings by the words for them: ``about["held rows[0]"]``."""
        return self.readings.about


@dataclass(frozen=True)
class CompletenessMetrics:
    """How complete a stream whose promise is learned is, or one channel of it."""

    attribute: str
    channel: Hashable
    """None for the whole stream."""
    rows: int
    late_rows: int
    target: float
    """The share of rows that shall be on time."""
    expected: float
    """The share of the rows now coming that should be, by what recent rows were like."""
    recent: float
    """The share of recent rows that were."""
    slack_seconds: float | None
    """The slack in force, the longest of all channels; None before the first mark."""
    shortfall: str | None = None
    """Why fewer rows are on time than shall be, by more than 0.3 points; None if that is not so.
    Of a stream, the reason of the channel of which it has been so longest."""
    short_since: datetime | int | None = None
    """The newest time when that began."""

    @property
    def achieved(self) -> float:
        """The share of all rows so far that were on time."""
        return 1 - self.late_rows / self.rows if self.rows else 1.0


@dataclass(frozen=True)
class ChannelMetrics:
    """One channel, or group, of a stream."""

    channel: Hashable
    mark: datetime | int | None
    """Its own promise; None before the first."""
    silent_seconds: float | None
    """How long it has sent nothing, by the engine's clock; None where that is not known."""
    stale: bool = False
    """Whether it is set aside (``stale_after=``), so that it does not hold the stream back."""


CHANNELS = 500
"""Of how many channels of a stream metrics tell, at most."""


@dataclass(frozen=True)
class StreamMetrics:
    """One source."""

    name: str
    rows: int
    refused_rows: int
    late: tuple[LateRows, ...]
    marks: Mapping[str, datetime | int | None]
    slowest_channel: Hashable
    enabling_timestamps: int
    heartbeats: int
    stray_rows: int
    backward_marks: int
    completeness: tuple[CompletenessMetrics, ...] = ()
    """Where the promise is learned: the stream's first, then each channel's; else nothing."""
    channels: tuple[ChannelMetrics, ...] = ()
    """The channels that are furthest behind, the furthest first; nothing if there is but one."""
    channel_count: int = 0
    ahead: datetime | int | None = None
    """The mark of the channel that is furthest ahead."""
    ended: bool = False
    waiting_rows: int = 0
    """Rows that came and were not read yet: pushed, or lines of a socket."""
    waiting_bytes: int = 0
    stale_channels: int = 0
    """How many channels are set aside."""
    holding: str = ""
    """Which channel holds the stream back, by how much, and what to write; nothing if none does."""


@dataclass(frozen=True)
class BatchMetrics:
    """A batch on Spark, as Spark tells of it."""

    number: int
    started: datetime
    seconds: float
    rows: int
    """Rows read from all streams."""
    parts: Mapping[str, float]
    """What took how many seconds, by Spark's names."""


@dataclass(frozen=True)
class RunMetrics:
    """A whole run."""

    rows_out: int
    """Rows that the sink has handed over: of a folder, those in files that readers can see."""
    elapsed_seconds: float
    operators: tuple[OperatorMetrics, ...]
    streams: tuple[StreamMetrics, ...]
    state_rows: int
    state_rows_peak: int
    state_bytes: int
    state_bytes_peak: int
    memory_peak: int
    """The most bytes that state and rows waiting in queues took together."""
    queue_peak: int
    """The most elements (rows and promises) that waited in all queues and buffers together."""
    latency: Histogram = field(repr=False)
    batches: tuple[BatchMetrics, ...] = ()
    """On Spark the last batches, the oldest first."""
    rows_waiting: int = 0
    """Rows that wait in the sink for their file to be written; not in ``rows_out``."""

    @property
    def late_rows(self) -> int:
        """Rows refused for being late, over all streams."""
        return sum(line.rows for s in self.streams for line in s.late if line.reason == "late")

    def operator(self, name: str) -> OperatorMetrics:
        """The first operator whose title begins with ``name``."""
        for each in self.operators:
            if each.title.startswith(name):
                return each
        raise OptionError(unknown_name("operator", name, (each.title for each in self.operators)))

    def stream(self, name: str) -> StreamMetrics:
        """The stream of that name."""
        for each in self.streams:
            if each.name == name:
                return each
        raise OptionError(unknown_name("stream", name, (each.name for each in self.streams)))


def channel_metrics(
    behind: Iterable[tuple[Hashable, int, int | None]],
    domain: TimeDomain,
    now: int | None,
    stale: Container[Hashable] = (),
) -> tuple[ChannelMetrics, ...]:
    """Channels as told by a tracker; ``now`` is the clock they were last heard by."""
    return tuple(
        ChannelMetrics(
            channel,
            domain.show(mark),
            None if seen is None or now is None else max(0, now - seen) / SECOND,
            channel in stale,
        )
        for channel, mark, seen in behind
    )


def completeness_metrics(
    found: Iterable[tuple[str, Hashable, Completeness]], domains: Mapping[str, TimeDomain]
) -> tuple[CompletenessMetrics, ...]:
    """What a stream says of its completeness; ``domains`` are those of its attributes."""
    return tuple(
        CompletenessMetrics(
            attribute,
            channel,
            each.rows,
            each.late,
            each.target,
            each.expected,
            each.recent,
            None if each.slack is None else each.slack / domains[attribute].ticks_per_second,
            None if each.reason is None else WORDS[each.reason],
            None if each.since is None else domains[attribute].show(each.since),
        )
        for attribute, channel, each in found
    )


def holding_channel(
    behind: Iterable[tuple[Hashable, int, int | None]],
    ahead: int,
    stale: Container[Hashable],
    domain: TimeDomain,
    after: Duration | None,
) -> str:
    """Which channel holds a stream back, by how much, and what to write; nothing if none does."""
    holding = next(((name, mark) for name, mark, _ in behind if name not in stale), None)
    if holding is None or not BEGINNING < ahead < END_OF_TIME or holding[1] >= ahead:
        return ""
    name, mark = holding
    if mark == BEGINNING:
        text = f"channel {name!r} holds the stream back: it has promised nothing yet"
    else:
        length = spell((ahead - mark) * SECOND // domain.ticks_per_second)
        text = (
            f"channel {name!r} holds the stream back: it is {length} behind the one furthest ahead"
        )
    if after is not None:
        return f"{text}; channels are set aside by stale_after={after!r}"
    return (
        f"{text}; stale_after='1 hour' (STALE AFTER 1 HOUR in a pipeline) sets aside a channel that"
        " is further behind than that"
    )
