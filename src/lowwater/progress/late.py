"""The rows that a stream does not pass on: their reasons, counts, lateness and destination.

They are late rows, rows without a usable time or channel, and rows dated too far ahead. The
``late`` option of the stream decides whether they go to the side output, are dropped, or stop the
query. They are counted by channel and reason in any case. Rows that no operator needs (below the
floor) are counted and dropped, late or not.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from lowwater.errors import BadInput, BrokenPromise, StreamWarning
from lowwater.progress.channel import Ticks
from lowwater.progress.judgement import Deficit, Judgement, Mask
from lowwater.progress.spec import LATE_BY, MISSED_MARK, REASON, StreamSpec, channel_name
from lowwater.progress.stale import StaleChanges
from lowwater.stream.duration import SECOND, nanoseconds, spell
from lowwater.stream.element import Chunk

LATE = "late"
NO_TIME = "no time"
BAD_TIME = "time out of range"
NO_CHANNEL = "no channel"
AHEAD = "dated far ahead"
AFTER_END = "after its end"
NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class LateRows:
    """A line of the account: the rows of one channel that were not passed on for one reason."""

    stream: str
    channel: Hashable
    """None if the stream has no channels, or if the reason does not depend on the channel."""
    reason: str
    rows: int
    """Number of these rows."""
    longest_seconds: float
    """The longest lateness of these rows, in seconds; 0 if they were not late."""
    mean_seconds: float
    """The mean lateness of these rows, in seconds."""


class LateAccount:
    """Counts the rows of one stream that were not passed on, by channel and reason."""

    def __init__(self, stream: str):
        self._stream = stream
        self._lines: dict[tuple[Hashable, str], tuple[int, float, float]] = {}
        self.strays = 0
        """Number of leaps that later rows contradicted."""
        self.backward_marks = 0
        """Number of the producer's marks that went backwards or were out of range."""

    def add(self, channel: Hashable, reason: str, rows: int, longest: float, total: float) -> None:
        """Count ``rows`` rows of one channel; the longest and the total lateness are seconds."""
        count, most, sums = self._lines.get((channel, reason), (0, 0.0, 0.0))
        self._lines[channel, reason] = (count + rows, max(most, longest), sums + total)

    def add_lines(self, lines: Iterable[LateRows]) -> None:
        """Count the rows of lines that another account has made."""
        for line in lines:
            total = line.mean_seconds * line.rows
            self.add(line.channel, line.reason, line.rows, line.longest_seconds, total)

    @property
    def rows(self) -> int:
        """Number of the rows that were refused; rows not needed are none of them."""
        lines = list(self._lines.items())
        return sum(count for (_, reason), (count, _, _) in lines if reason != NOT_NEEDED)

    def lines(self) -> list[LateRows]:
        """Return the counts by channel and reason, the largest first."""
        lines = [
            LateRows(self._stream, channel, reason, count, most, total / count)
            for (channel, reason), (count, most, total) in list(self._lines.items())
        ]
        return sorted(lines, key=lambda line: -line.rows)


class SideOutput:
    """The rows that a stream does not pass on, treated as its ``late`` option states.

    The methods ``warn_...`` report other faults of a stream. ``account`` counts the rows.
    """

    def __init__(self, spec: StreamSpec, account: LateAccount):
        self._spec, self._account = spec, account
        self._rows: list[Chunk] = []

    def take_rows(self) -> Chunk | None:
        """Return the rows for the side output since the last call; None if there are none."""
        rows, self._rows = self._rows, []
        return pl.concat(rows, how="diagonal") if rows else None

    def empty(self) -> Chunk:
        """Return a side output with its columns and no rows."""
        time = self._spec.domains[self._spec.time].dtype
        added = {REASON: pl.String(), LATE_BY: pl.Float64(), MISSED_MARK: time}
        return pl.DataFrame(schema=self._spec.row_schema | added)

    def add_unusable(self, chunk: Chunk, bad: Mask, reason: str, detail: str) -> None:
        """Take the rows ``bad`` of a chunk, which have no usable time or channel."""
        if self._spec.late == "fail":
            row = chunk.row(int(np.flatnonzero(bad)[0]))
            raise BadInput(
                f"stream {self._spec.name!r}: a row cannot be used: {detail}: {row}."
                " late='side' writes such rows to the side output"
            )
        self._account.add(None, reason, int(bad.sum()), 0.0, 0.0)
        if self._spec.late == "side":
            rows = chunk.filter(pl.Series(bad))
            self._rows.append(rows.with_columns(pl.lit(reason).alias(REASON)))

    def add_judged(
        self, chunk: Chunk, attribute: str, times: Ticks, judged: Judgement, keep: Mask
    ) -> None:
        """Take the rows of a chunk that are late or too far ahead on an attribute.

        ``keep`` is true for the rows to look at; it becomes false for those that are taken.
        """
        leaps = keep & judged.leaps
        if self._spec.jump and self._spec.jump.then != "warn" and leaps.any():
            self.add_ahead(chunk, attribute, leaps, judged.before)
            keep &= ~leaps
        if judged.strays:
            self.warn_strays(attribute, judged.strays)
        if judged.deficit is not None:
            self.warn_deficit(attribute, judged.deficit)
        late = keep & judged.late(times)
        if late.any():
            self.add_late(chunk, attribute, times, judged.before, late)
            keep &= ~late

    def add_broken(
        self,
        chunk: Chunk,
        attribute: str,
        times: Mapping[str, Ticks],
        marks: Ticks,
        late: Mask,
        keep: Mask,
    ) -> None:
        """Take the rows ``late`` of a chunk, which break a joint promise.

        ``attribute`` is the first that the promise is on, and ``marks`` are the bounds on it.
        ``keep`` is true for the rows to look at; it becomes false for those that are taken.
        """
        found = late & keep
        if found.any():
            self.add_late(chunk, attribute, times[attribute], marks, found)
            keep &= ~found

    def add_late(
        self, chunk: Chunk, attribute: str, times: Ticks, marks: Ticks, late: Mask
    ) -> None:
        """Take the rows ``late`` of a chunk; ``marks`` are the marks before each row, in ticks."""
        if self._spec.late == "fail":
            self._fail(chunk, attribute, times, marks, int(np.flatnonzero(late)[0]))
        domain = self._spec.domains[attribute]
        seconds = (marks[late] - times[late]) / domain.ticks_per_second
        rows = chunk.filter(pl.Series(late)).with_columns(
            pl.lit(LATE).alias(REASON),
            pl.Series(LATE_BY, seconds),
            pl.Series(self._mark_column(attribute), marks[late]).cast(domain.dtype),
        )
        self._count(rows)
        if self._spec.late == "side":
            self._rows.append(rows)

    def add_after_end(self, chunk: Chunk, over: Mask) -> None:
        """Take the rows ``over`` of a chunk, whose channels or groups had ended before them."""
        if self._spec.late == "fail":
            row = int(np.flatnonzero(over)[0])
            time, channel = chunk[self._spec.time][row], self._channel_of(chunk, row)
            raise BrokenPromise(
                f"{self._where(channel)}: a row with {self._spec.time} = {time} came, but the"
                " producer had promised that no more would. late='side' writes such rows to the"
                " side output",
                stream=self._spec.name,
                channel=channel,
                time=time,
                mark=None,
            )
        rows = chunk.filter(pl.Series(over)).with_columns(pl.lit(AFTER_END).alias(REASON))
        for *names, count in rows.group_by(self._spec.key_columns).agg(pl.len()).iter_rows():
            self._account.add(channel_name(names), AFTER_END, count, 0.0, 0.0)
        if self._spec.late == "side":
            self._rows.append(rows)

    def add_ahead(self, chunk: Chunk, attribute: str, leaps: Mask, marks: Ticks) -> None:
        """Take the rows ``leaps`` of a chunk, which are dated too far ahead."""
        jump = self._spec.jump
        assert jump is not None
        if jump.then == "fail":
            row = int(np.flatnonzero(leaps)[0])
            time, channel = chunk[attribute][row], self._channel_of(chunk, row)
            mark = self._spec.domains[attribute].show(int(marks[row]))
            raise BrokenPromise(
                f"{self._where(channel)}: a row has {attribute} = {time},"
                f" more than {jump.over} ahead of the rows before it (mark {mark})",
                stream=self._spec.name,
                channel=channel,
                time=time,
                mark=mark,
            )
        self._account.add(None, AHEAD, int(leaps.sum()), 0.0, 0.0)
        rows = chunk.filter(pl.Series(leaps))
        self._rows.append(rows.with_columns(pl.lit(AHEAD).alias(REASON)))

    # ---- warnings --------------------------------------------------------------------------

    def warn_backward(self, attribute: str, marks: int, held: object) -> None:
        """Count and report ``marks`` marks of a producer that went backwards.

        ``held`` is the stream's mark, as people read it.
        """
        self._account.backward_marks += marks
        message = (
            f"stream {self._spec.name!r}: {marks} of the producer's marks on {attribute} went"
            f" backwards; the mark is {held}"
        )
        if self._spec.late == "fail":
            raise BrokenPromise(message, stream=self._spec.name, channel=None, time=None, mark=held)
        warnings.warn(f"{message}, and they are ignored", StreamWarning, stacklevel=2)

    def warn_ended(self, channel: Hashable) -> None:
        """Report a promise for a channel or group that has ended; it is ignored."""
        self._warn(
            f"{self._where(channel)}: a promise was made for it after its end, and it is ignored"
        )

    def warn_out_of_range(self, attribute: str, marks: int) -> None:
        """Count and report ``marks`` marks of a producer that are no times."""
        self._account.backward_marks += marks
        warnings.warn(
            f"stream {self._spec.name!r}: {marks} of the producer's marks on {attribute} are out"
            " of range and are ignored",
            StreamWarning,
            stacklevel=2,
        )

    def warn_strays(self, attribute: str, rows: int) -> None:
        """Count and report rows dated far ahead that later rows contradicted."""
        self._account.strays += rows
        assert self._spec.jump is not None
        warnings.warn(
            f"stream {self._spec.name!r}: {rows} row(s) had {attribute} more than"
            f" {self._spec.jump.over} ahead and the rows after them went back;"
            " their times moved no mark",
            StreamWarning,
            stacklevel=2,
        )

    def warn_deficit(self, attribute: str, deficit: Deficit) -> None:
        """Report a stream, or a channel of it, that is less complete than it should be."""
        found, short = deficit.completeness, deficit.shortfall
        domain = self._spec.domains[attribute]
        slack = "none yet" if found.slack is None else domain.spell(found.slack)
        since = domain.show(short.since)
        warnings.warn(
            f"{self._where(deficit.channel)}: {found.achieved:.2%} of the rows so far are on time"
            f" on {attribute}, and {found.recent:.2%} of recent ones, where the contract states"
            f" {found.target * 100:.10g} %; this began at {since}: {short.words}. The slack is"
            f" {slack} now. The share reaches {found.target * 100:.10g} % again if later rows are"
            " no later than recent ones; see completeness in the metrics",
            StreamWarning,
            stacklevel=2,
        )

    def warn_stale(self, attribute: str, changes: StaleChanges, rate: int) -> None:
        """Report channels that became stale or caught up; ``rate`` is ticks a second."""
        after = spell(nanoseconds(self._spec.stale_after or 0))
        for name, behind in changes.stale:
            why = "has sent nothing for that long"
            if behind is not None:
                why = f"is {spell(behind * SECOND // rate)} behind most others by {attribute}"
            self._warn(
                f"{self._where(name)}: stale, because it {why} (stale_after={after!r}); it does not"
                " hold the stream back, and its rows below the stream's mark are late until it has"
                " caught up"
            )
        for name in changes.caught_up:
            self._warn(
                f"{self._where(name)}: has caught up, and its mark holds for the stream again"
            )

    def _warn(self, text: str) -> None:
        warnings.warn(text, StreamWarning, stacklevel=4)

    def _where(self, channel: object) -> str:
        named = f", channel {channel!r}" if self._spec.key_columns else ""
        return f"stream {self._spec.name!r}{named}"

    def _mark_column(self, attribute: str) -> str:
        """Return the column for the mark; attributes of another type than the main time have a
        column of their own."""
        domains = self._spec.domains
        same = domains[attribute] == domains[self._spec.time]
        return MISSED_MARK if same else f"{MISSED_MARK}_{attribute}"

    def _channel_of(self, chunk: Chunk, row: int) -> Any:
        return channel_name([chunk[name][row] for name in self._spec.key_columns])

    def _count(self, rows: Chunk) -> None:
        keys = list(self._spec.key_columns)
        amounts = [
            pl.len().alias("__rows"),
            pl.col(LATE_BY).max().alias("__longest"),
            pl.col(LATE_BY).sum().alias("__total"),
        ]
        counted = rows.group_by(keys).agg(amounts) if keys else rows.select(amounts)
        for *names, count, longest, total in counted.iter_rows():
            self._account.add(channel_name(names), LATE, count, longest, total)

    def _fail(self, chunk: Chunk, attribute: str, times: Ticks, marks: Ticks, row: int) -> None:
        domain = self._spec.domains[attribute]
        channel = self._channel_of(chunk, row)
        time, mark = domain.show(int(times[row])), domain.show(int(marks[row]))
        behind = domain.spell(int(marks[row] - times[row]))
        promise = self._spec.contracts[attribute].describe()
        raise BrokenPromise(
            f"{self._where(channel)}: a row has {attribute} = {time}, but"
            f" the stream had promised nothing below {mark} ({promise}); it is {behind} late."
            " late='side' writes such rows to the side output",
            stream=self._spec.name,
            channel=channel,
            time=time,
            mark=mark,
        )
