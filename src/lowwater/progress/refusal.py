"""Rows that are not let in: set aside, dropped or fatal, and always counted and explained."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import BadInput, BrokenPromise, StreamWarning
from lowwater.progress import late
from lowwater.progress.channel import Ticks
from lowwater.progress.late import LateAccount
from lowwater.progress.spec import LATE_BY, MET, REASON, StreamSpec, channel_name
from lowwater.progress.stale import Moved
from lowwater.progress.tracker import Short
from lowwater.stream.duration import SECOND, nanoseconds, spell
from lowwater.stream.element import Chunk

Mask = NDArray[np.bool_]


class Refusals:
    """The refused rows of one chunk, and the stream's account of all of them."""

    def __init__(self, spec: StreamSpec, account: LateAccount):
        self._spec, self._account = spec, account
        self._aside: list[Chunk] = []

    def collected(self) -> Chunk | None:
        """The rows set aside since the last call; None if there are none."""
        aside, self._aside = self._aside, []
        return pl.concat(aside, how="diagonal") if aside else None

    def nothing(self) -> Chunk:
        """A side output with no rows in it."""
        time = self._spec.domains[self._spec.time].dtype
        added = {REASON: pl.String(), LATE_BY: pl.Float64(), MET: time}
        return pl.DataFrame(schema=self._spec.row_schema | added)

    def unusable(self, chunk: Chunk, bad: Mask, reason: str, detail: str) -> None:
        """Rows with no usable time or channel."""
        if self._spec.late == "fail":
            row = chunk.row(int(np.flatnonzero(bad)[0]))
            raise BadInput(
                f"stream {self._spec.name!r}: a row cannot be used: {detail}: {row}."
                " late='side' would set such rows aside"
            )
        self._account.add(None, reason, int(bad.sum()), 0.0, 0.0)
        if self._spec.late == "side":
            rows = chunk.filter(pl.Series(bad))
            self._aside.append(rows.with_columns(pl.lit(reason).alias(REASON)))

    def late(self, chunk: Chunk, attribute: str, times: Ticks, met: Ticks, broken: Mask) -> None:
        """Rows that break the promise on an attribute."""
        if self._spec.late == "fail":
            self._fail(chunk, attribute, times, met, int(np.flatnonzero(broken)[0]))
        domain = self._spec.domains[attribute]
        seconds = (met[broken] - times[broken]) / domain.ticks_per_second
        rows = chunk.filter(pl.Series(broken)).with_columns(
            pl.lit(late.LATE).alias(REASON),
            pl.Series(LATE_BY, seconds),
            pl.Series(self._mark_column(attribute), met[broken]).cast(domain.dtype),
        )
        self._count(rows)
        if self._spec.late == "side":
            self._aside.append(rows)

    def ahead(self, chunk: Chunk, attribute: str, leaps: Mask, met: Ticks) -> None:
        """Rows dated too far ahead, where that is not only warned about."""
        jump = self._spec.jump
        assert jump is not None
        if jump.then == "fail":
            row = int(np.flatnonzero(leaps)[0])
            time, channel = chunk[attribute][row], self._channel_of(chunk, row)
            mark = self._spec.domains[attribute].show(int(met[row]))
            raise BrokenPromise(
                f"{self._where(channel)}: a row has {attribute} = {time},"
                f" more than {jump.over} ahead of the rows before it (mark {mark})",
                stream=self._spec.name,
                channel=channel,
                time=time,
                mark=mark,
            )
        self._account.add(None, late.AHEAD, int(leaps.sum()), 0.0, 0.0)
        rows = chunk.filter(pl.Series(leaps))
        self._aside.append(rows.with_columns(pl.lit(late.AHEAD).alias(REASON)))

    def backward(self, attribute: str, marks: int, held: object) -> None:
        """A producer's marks that went backwards."""
        self._account.backward_marks += marks
        message = (
            f"stream {self._spec.name!r}: {marks} of the producer's marks on {attribute} went"
            f" backwards; the mark is {held}"
        )
        if self._spec.late == "fail":
            raise BrokenPromise(message, stream=self._spec.name, channel=None, time=None, mark=held)
        warnings.warn(f"{message}, and they are ignored", StreamWarning, stacklevel=2)

    def strange(self, attribute: str, marks: int) -> None:
        """A producer's marks that are no times."""
        self._account.backward_marks += marks
        warnings.warn(
            f"stream {self._spec.name!r}: {marks} of the producer's marks on {attribute} are out"
            " of range and are ignored",
            StreamWarning,
            stacklevel=2,
        )

    def strays(self, attribute: str, rows: int) -> None:
        """Rows dated far ahead that the rows after them contradicted."""
        self._account.strays += rows
        assert self._spec.jump is not None
        warnings.warn(
            f"stream {self._spec.name!r}: {rows} row(s) had {attribute} more than"
            f" {self._spec.jump.over} ahead and the rows after them went back;"
            " their times were not believed",
            StreamWarning,
            stacklevel=2,
        )

    def short(self, attribute: str, short: Short) -> None:
        """A stream, or a channel of it, that is less complete than it should be."""
        found, domain = short.completeness, self._spec.domains[attribute]
        slack = "none yet" if found.slack is None else domain.spell(found.slack)
        since = domain.show(short.shortfall.since)
        warnings.warn(
            f"{self._where(short.channel)}: {found.achieved:.2%} of the rows so far are on time on"
            f" {attribute}, and {found.recent:.2%} of recent ones, where"
            f" {found.target * 100:.10g} % were asked for; this began at {since}:"
            f" {short.shortfall.words}. The slack is {slack} now. The share is made up for if rows"
            " to come are no later than recent ones; completeness in the metrics says how it goes",
            StreamWarning,
            stacklevel=2,
        )

    def stale(self, attribute: str, moved: Moved, rate: int) -> None:
        """Channels that were set aside, and those that have caught up."""
        after = spell(nanoseconds(self._spec.stale_after or 0))
        for name, behind in moved.aside:
            why = "has sent nothing for so long"
            if behind is not None:
                why = f"is {spell(behind * SECOND // rate)} behind most others by {attribute}"
            self._warn(
                f"{self._where(name)}: set aside, for it {why} (stale_after={after!r}); it does not"
                " hold the stream back, and its rows below the stream's mark are late until it has"
                " caught up"
            )
        for name in moved.back:
            self._warn(f"{self._where(name)}: has caught up and counts again")

    def _warn(self, text: str) -> None:
        warnings.warn(text, StreamWarning, stacklevel=4)

    def _where(self, channel: object) -> str:
        named = f", channel {channel!r}" if self._spec.key_columns else ""
        return f"stream {self._spec.name!r}{named}"

    def _mark_column(self, attribute: str) -> str:
        """Where the broken mark goes: by itself if its type is not that of the main time."""
        domains = self._spec.domains
        same = domains[attribute] == domains[self._spec.time]
        return MET if same else f"{MET}_{attribute}"

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
            self._account.add(channel_name(names), late.LATE, count, longest, total)

    def _fail(self, chunk: Chunk, attribute: str, times: Ticks, met: Ticks, row: int) -> None:
        domain = self._spec.domains[attribute]
        channel = self._channel_of(chunk, row)
        time, mark = domain.show(int(times[row])), domain.show(int(met[row]))
        behind = domain.spell(int(met[row] - times[row]))
        promise = self._spec.contracts[attribute].describe()
        raise BrokenPromise(
            f"{self._where(channel)}: a row has {attribute} = {time}, but"
            f" the stream had promised nothing below {mark} ({promise}); it is {behind} late."
            " late='side' would set such rows aside",
            stream=self._spec.name,
            channel=channel,
            time=time,
            mark=mark,
        )
