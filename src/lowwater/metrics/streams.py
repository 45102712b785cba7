"""The metrics of a stream are its rows, marks and channels, and its completeness."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from lowwater.metrics.lag import Mark
from lowwater.operators.metric import Readings, readings_of, seconds, share, size, total
from lowwater.progress.completeness import WORDS, Completeness
from lowwater.progress.late import LATE, NOT_NEEDED, LateRows
from lowwater.stream.duration import SECOND, Duration
from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.time_domain import TimeDomain


@dataclass(frozen=True)
class CompletenessMetrics:
    """The completeness of a stream whose slack is learned, or of one channel of it."""

    attribute: str
    channel: Hashable
    """None for the whole stream."""
    rows: int
    late_rows: int
    target: Annotated[
        float, share("stream_complete_target", "target", "The share of rows to be on time.")
    ]
    """The share of rows that should be on time."""
    expected: Annotated[
        float,
        share("stream_complete_expected", "expected now", "The share expected of rows to come."),
    ]
    """The share of the rows to come that will be on time, estimated from recent rows."""
    recent: float
    """The share of recent rows that were on time."""
    slack_seconds: Annotated[
        float | None, seconds("stream_slack_seconds", "slack", "The slack in force.")
    ]
    """The slack in force, the longest of all channels; None before the first mark."""
    shortfall: str | None = None
    """Why the share of rows on time is more than 0.3 points below the target; None if it is not.
    Of a stream, the reason of the channel that has been below for longest."""
    short_since: datetime | int | None = None
    """The newest time of the stream when the share fell that low; None if it has not."""

    @property
    def achieved(self) -> float:
        """The share of all rows so far that were on time."""
        return 1 - self.late_rows / self.rows if self.rows else 1.0


ACHIEVED = share("stream_complete_achieved", "achieved", "The share of rows that were on time.")


@dataclass(frozen=True)
class ChannelMetrics:
    """The metrics of one channel, or group, of a stream."""

    channel: Hashable
    mark: Mark
    """The mark of the channel; None before its first promise."""
    silent_seconds: float | None
    """Seconds since it last sent rows, by the engine's clock; None if that is not known."""
    stale: bool = False
    """True if it is stale (``stale_after=``) and so does not hold the stream back."""


@dataclass(frozen=True)
class HoldingChannel:
    """The channel that holds a stream back."""

    channel: Hashable
    behind_nanoseconds: int | None
    """The time by which it is behind the channel furthest ahead; None before its first promise."""
    stale_after: Duration | None
    """The option ``stale_after=`` of the stream; None if it is not given."""


CHANNELS = 500
"""The greatest number of channels that the metrics of a stream list: those furthest behind."""


@dataclass(frozen=True)
class StreamMetrics:
    """The metrics of one stream."""

    name: str
    rows: Annotated[int, total("stream_rows", "rows", "Rows read of a stream.")]
    refused_rows: Annotated[
        int, total("stream_refused_rows", "refused rows", "Rows not let in, for any reason.")
    ]
    late: tuple[LateRows, ...]
    marks: Mapping[str, Mark]
    slowest_channel: Hashable
    enabling_timestamps: Annotated[
        int,
        total("stream_timestamps", "timestamps on demand", "Timestamps made on demand.", "count"),
    ]
    heartbeats: Annotated[
        int, total("stream_heartbeats", "heartbeats", "Heartbeats made.", "count")
    ]
    stray_rows: Annotated[
        int | None,
        total(
            "stream_stray_rows",
            "stray rows",
            "Rows dated far ahead that the rows after them contradicted; on Spark, those that a"
            " later batch, or the batch itself, contradicted.",
        ),
    ]
    backward_marks: Annotated[
        int | None,
        total(
            "stream_backward_marks",
            "marks that went back",
            "Marks of a producer that went back or are no times; on Spark, of each channel at most"
            " one in a batch.",
            "count",
        ),
    ]
    completeness: tuple[CompletenessMetrics, ...] = ()
    """Of a stream whose slack is learned, the line of the stream and then those of its channels."""
    channels: tuple[ChannelMetrics, ...] = ()
    """The channels that are furthest behind, the furthest first; nothing if there is but one."""
    channel_count: Annotated[
        int, size("stream_channels", "channels", "Channels of a stream.", "count")
    ] = 0
    ahead: Mark = None
    """The mark of the channel that is furthest ahead."""
    ended: bool = False
    waiting_rows: Annotated[
        int | None,
        size(
            "stream_waiting_rows",
            "rows not read yet",
            "Rows that came and were not read yet: pushed, or lines of a socket.",
        ),
    ] = None
    """None of sources that hold no rows, such as files."""
    waiting_bytes: Annotated[
        int | None, size("stream_waiting_bytes", "bytes not read yet", "Bytes of them.", "bytes")
    ] = None
    stale_channels: Annotated[
        int,
        size("stream_stale_channels", "stale channels", "Channels that are stale.", "count"),
    ] = 0
    """Number of channels that are stale."""
    holding: HoldingChannel | None = None
    """The channel that holds the stream back; None if none does."""

    @property
    def late_rows(self) -> int:
        """The number of rows that were refused because they were late."""
        return sum(line.rows for line in self.late if line.reason == LATE)

    @property
    def unneeded_rows(self) -> int:
        """The number of rows that were not let in because no operator needs them."""
        return sum(line.rows for line in self.late if line.reason == NOT_NEEDED)

    @property
    def longest_late_seconds(self) -> float:
        """The greatest lateness of a row, in seconds; 0 if no row was late."""
        return max((line.longest_seconds for line in self.late if line.reason == LATE), default=0.0)

    def completeness_of(self, attribute: str) -> CompletenessMetrics | None:
        """Return how complete the stream is by an attribute; None if its slack is not learned."""
        lines = (each for each in self.completeness if each.attribute == attribute)
        return next((each for each in lines if each.channel is None), None)

    def all_readings(self, time: str) -> Readings:
        """Return all measurements of the stream, by metric; ``time`` is its time column."""
        found = readings_of(self) | {
            LATE_ROWS: self.late_rows,
            UNNEEDED_ROWS: self.unneeded_rows,
        }
        complete = self.completeness_of(time)
        if complete is None:
            return found
        return found | readings_of(complete) | {ACHIEVED: complete.achieved}


LATE_ROWS = total("stream_late_rows", "late rows", "Rows that were late.")
UNNEEDED_ROWS = total(
    "stream_unneeded_rows", "rows not needed", "Rows not let in because no operator needs them."
)
LAG = seconds("stream_lag_seconds", "lag", "How far the mark of a stream is behind.")
CHANNEL_LAG = seconds(
    "channel_lag_seconds",
    "lag",
    "How far channels are behind, for the 100 of a stream that are furthest behind.",
)


def channel_metrics(
    behind: Iterable[tuple[Hashable, int, int | None]],
    domain: TimeDomain,
    now: int | None,
    stale: Container[Hashable] = (),
) -> tuple[ChannelMetrics, ...]:
    """Return channels from a tracker's name, mark and clock of the last row; ``now`` is that clock
    now, in nanoseconds."""
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
    """Return the completeness of a stream; ``domains`` are those of its attributes."""
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
) -> HoldingChannel | None:
    """Return the channel that holds a stream back; None if none does.

    ``behind`` are the channels, the one furthest behind first, each with its mark; ``ahead`` is the
    mark furthest ahead, ``stale`` the stale channels and ``after`` the option ``stale_after=``.
    """
    holding = next(((name, mark) for name, mark, _ in behind if name not in stale), None)
    if holding is None or not BEGINNING < ahead < END_OF_TIME or holding[1] >= ahead:
        return None
    name, mark = holding
    length = None if mark == BEGINNING else (ahead - mark) * SECOND // domain.ticks_per_second
    return HoldingChannel(name, length, after)
