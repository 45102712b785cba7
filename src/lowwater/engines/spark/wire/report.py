"""A bucket reports on one batch to the driver, as JSON.

Users' listeners read it too, in Spark's progress events, so the names of the fields are public.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from lowwater.engines.members import Counts
from lowwater.operators.metric import Readings
from lowwater.progress.completeness import Completeness
from lowwater.progress.late import LateRows
from lowwater.progress.marks import ChannelSummary
from lowwater.updates.staleness import Staleness


@dataclass(frozen=True)
class OperatorState:
    """The marks and sizes of an operator in one bucket."""

    marks: Mapping[str, int]
    """The marks by attribute (and input), in ticks."""
    shown: Mapping[str, str]
    """The same marks as people read them."""
    chunks: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class BucketSummary:
    """The marks and sizes of one bucket, saved beside its state for views of a checkpoint."""

    stage: int
    bucket: int
    operators: Mapping[str, OperatorState]
    """By title."""
    streams_shown: Mapping[str, Mapping[str, str]]
    """The marks of streams as people read them, by name and attribute."""


@dataclass(frozen=True)
class OperatorReport(OperatorState):
    """The numbers of an operator in one bucket; rows and promises in and out are of one batch."""

    rows_in: int
    rows_out: int
    promises_in: int
    promises_out: int
    readings: Readings
    staleness: Staleness | None = None
    rows_unneeded: int = 0

    @property
    def counts(self) -> Counts:
        """The rows and promises in and out, in one batch."""
        return Counts(
            self.rows_in, self.rows_out, self.promises_in, self.promises_out, self.rows_unneeded
        )


@dataclass(frozen=True)
class ChannelsReport:
    """The marks of a stream's channels, and the clock in nanoseconds."""

    channels: ChannelSummary
    now: int


@dataclass(frozen=True)
class StreamReport:
    """The numbers of a stream in one bucket and batch.

    If all buckets count the same, one of them reports the number and the others report 0, so that
    the sum over the buckets is right.
    """

    marks: Mapping[str, int]
    """The marks by attribute, in ticks."""
    rows: int = 0
    stamps: int = 0
    """Enabling timestamps or, of a stream that makes these, heartbeats."""
    stray_rows: int = 0
    backward_marks: int = 0
    late: tuple[LateRows, ...] = ()
    completeness: tuple[tuple[str, Hashable, Completeness], ...] = ()
    """By attribute and channel."""
    channels: ChannelsReport | None = None
    ended: bool = False


@dataclass(frozen=True)
class TickRequest:
    """The request of a bucket for a tick of the clock."""

    folder: str
    """The folder in which the clock looks for requests."""
    when: int | None
    """The time from which a tick is requested, in nanoseconds; None if none is."""
    waits: bool
    """True if rows wait in queues for a batch that has time for them."""


@dataclass(frozen=True)
class Report:
    """The report of one bucket on one batch."""

    stage: int
    bucket: int
    batch: int
    operators: Mapping[str, OperatorReport]
    """By title."""
    streams: Mapping[str, StreamReport]
    """By name."""
    streams_shown: Mapping[str, Mapping[str, str]]
    """The marks of streams as people read them, by name and attribute."""
    late: tuple[LateRows, ...] = ()
    """Late rows that operators found."""
    holding: tuple[str, ...] = ()
    """The operators that hold something back."""
    notes: tuple[str, ...] = ()
    """Warnings."""
    request: TickRequest | None = None
