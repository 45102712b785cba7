"""A chunk with the declared types of its stream, and the rows of it that cannot be judged.

Values that are no times are kept in two forms, so that the side output can name the fault: NaN and
infinities become null, and values outside the time domain become a tick outside its valid range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import BadInput
from lowwater.progress.channel import Ticks
from lowwater.progress.joint import JointRows
from lowwater.progress.judgement import Mask
from lowwater.progress.late import BAD_TIME, NO_CHANNEL, NO_TIME
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk
from lowwater.stream.time_domain import TimeDomain

_MOST_SECONDS = 10**12
_MOST_DAYS = 4_000_000


def conform(
    spec: StreamSpec, chunk: Chunk, now: int, arrivals: NDArray[np.int64] | None = None
) -> Chunk:
    """Return the chunk with the declared columns and types.

    Rows of an internally stamped stream get the time at which they arrived: ``arrivals``, in
    nanoseconds of the engine's clock, or ``now`` if the source has no arrival times.
    """
    chunk = _typed(spec, chunk)
    if spec.stamp == "internal":
        clock = np.full(chunk.height, now) if arrivals is None else arrivals
        return chunk.hstack([pl.Series(spec.time, clock // 1_000).cast(pl.Datetime("us"))])
    if spec.stamp == "latent":
        return chunk
    changes = []
    for attribute, contract in spec.contracts.items():
        columns = [attribute]
        if contract.mark_column is not None:
            columns.append(contract.mark_column)
        for column in columns:
            change = _time(column, chunk.schema[column], spec.domains[attribute])
            if change is not None:
                changes.append(change)
    return chunk.with_columns(changes) if changes else chunk


def _typed(spec: StreamSpec, chunk: Chunk) -> Chunk:
    if chunk.columns == list(spec.schema) and chunk.dtypes == list(spec.schema.values()):
        return chunk
    missing = [name for name in spec.schema if name not in chunk.columns]
    if missing:
        raise BadInput(f"stream {spec.name!r}: rows lack column {missing[0]!r}")
    try:
        return chunk.select(pl.col(name).cast(dtype) for name, dtype in spec.schema.items())
    except pl.exceptions.PolarsError as error:
        raise BadInput(f"stream {spec.name!r}: rows have the wrong type: {error}") from None


def _time(column: str, have: pl.DataType, domain: TimeDomain) -> pl.Expr | None:
    """Return the expression that brings a time column to its domain; None if it is in it."""
    if have == domain.dtype:
        return None
    source = pl.col(column)
    if have.is_float():
        seconds = pl.when(source.is_finite()).then(source.clip(-_MOST_SECONDS, _MOST_SECONDS))
        ticks = (seconds * 1e6).round().cast(pl.Int64)
    elif have == pl.Date:
        days = source.to_physical().cast(pl.Int64).clip(-_MOST_DAYS, _MOST_DAYS)
        ticks = days * (86_400 * 1_000_000)
    else:
        whole = source.cast(pl.Int64, strict=False)
        lost = whole.is_null() & source.is_not_null()
        ticks = pl.when(lost).then(pl.lit(END_OF_TIME)).otherwise(whole)
    return ticks.cast(domain.dtype).alias(column)


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows that cannot be judged, and the reason."""

    rows: Mask
    reason: str
    """One of the reasons of :mod:`~lowwater.progress.late`."""
    detail: str
    """The reason as a phrase with the name of the column."""


class JudgedRows:
    """A conformed chunk of a stream with times in its rows, and the rows of it that can be judged.

    ``over`` is true for rows of a channel or group that has ended; None if there are none.

    Invariant: a row is *pure* (nothing but a producer's punctuation), or has a fault, or is one of
    :attr:`timed`; never two of these, except that a pure row without a channel has a fault. Rows
    after an end are none of these.
    """

    def __init__(self, spec: StreamSpec, chunk: Chunk, over: Mask | None = None):
        self.spec, self.chunk = spec, chunk
        self.pure = pure_rows(spec, chunk)
        self.faults: list[Fault] = []
        self.over: Mask | None = None if over is None else over & ~self.pure
        """Rows after the end of their channel or group; None if there are none."""
        self.usable: Mask = np.ones(chunk.height, dtype=bool) if over is None else ~over
        """Rows without a fault: the timed ones and the pure ones."""
        self._find_faults()

    @property
    def timed(self) -> Mask:
        """Rows with a usable time in every time column, and with a channel."""
        return self.usable & ~self.pure

    def _find_faults(self) -> None:
        chunk = self.chunk
        for attribute, domain in self.spec.domains.items():
            column = chunk[attribute]
            if column.null_count():
                null = column.is_null().to_numpy() & ~self.pure
                self._add(null, NO_TIME, f"{attribute} is null or not a number")
            outside = _outside(column, domain)
            if outside is not None:
                self._add(outside & ~self.pure, BAD_TIME, f"{attribute} is out of range")
        for name in self.spec.key_columns:
            if chunk[name].null_count():
                self._add(chunk[name].is_null().to_numpy(), NO_CHANNEL, f"{name} is null")

    def _add(self, rows: Mask, reason: str, detail: str) -> None:
        rows = rows & self.usable
        if rows.any():
            self.faults.append(Fault(rows, reason, detail))
            self.usable &= ~rows

    def times(self, attribute: str) -> Ticks:
        """Return the times of all rows in ticks; ``END_OF_TIME`` where there is no usable one, and
        in rows that are punctuation only."""
        domain, column = self.spec.domains[attribute], self.chunk[attribute]
        if column.null_count():
            times: Ticks = domain.ticks_of(column).fill_null(END_OF_TIME).to_numpy()
        else:
            times = domain.array_of(column)
        timed = self.timed
        return times if timed.all() else np.where(timed, times, END_OF_TIME)

    def producer_marks(self, attribute: str) -> tuple[Ticks, int] | None:
        """Return the marks the producer sent with each row, each a promise by itself; None if it
        sends none.

        The marks are ticks, ``BEGINNING`` in rows without a mark. The second value is the number
        of marks that are out of range; they count as no mark.
        """
        found = self._marks(attribute)
        if found is None or not self.spec.contracts[attribute].joins_marks:
            return found
        marks, strange = found
        alone = self._joint_marks().sum(axis=0) < 2
        return np.where(alone, marks, BEGINNING), strange

    def _joint_marks(self) -> NDArray[np.bool_]:
        """Return, by attribute and row, whether the row has a mark that may be one of several."""
        marks = [self._marks(name) for name in self.spec.joint]
        return np.array([each[0] > BEGINNING for each in marks if each is not None])

    def joint_promises(self) -> list[JointRows]:
        """Return the rows that promise several attributes jointly."""
        names = self.spec.joint
        if not names:
            return []
        there = self._joint_marks() & self.usable
        found = []
        for pattern in np.unique(there[:, there.sum(axis=0) > 1], axis=1).T:
            used = (name for name, given in zip(names, pattern, strict=True) if given)
            attributes = tuple(sorted(used))
            rows: Mask = (there == pattern[:, None]).all(axis=0)
            bounds = {name: each[0] for name in attributes if (each := self._marks(name))}
            found.append(JointRows(attributes, rows, bounds))
        return found

    def _marks(self, attribute: str) -> tuple[Ticks, int] | None:
        """Return the marks in the column of an attribute; None if there is no such column."""
        column = self.spec.contracts[attribute].mark_column
        if column is None:
            return None
        domain = self.spec.domains[attribute]
        low, high = domain.valid
        marks: Ticks = domain.ticks_of(self.chunk[column]).fill_null(BEGINNING).to_numpy()
        strange = (marks != BEGINNING) & ((marks < low) | (marks >= high))
        if not strange.any():
            return marks, 0
        return np.where(strange, BEGINNING, marks), int(strange.sum())


def pure_rows(spec: StreamSpec, chunk: Chunk) -> Mask:
    """Return the rows that are nothing but a producer's punctuation: those with a mark or an end
    and a null time, and those that a column marks as such."""
    pure = np.zeros(chunk.height, dtype=bool)
    for attribute, contract in spec.contracts.items():
        if contract.mark_column is not None and chunk[attribute].null_count():
            bare = chunk[attribute].is_null() & chunk[contract.mark_column].is_not_null()
            pure |= bare.to_numpy()
        if contract.alone_column is not None:
            pure |= chunk[contract.alone_column].fill_null(False).to_numpy()
    if spec.ended is not None and chunk[spec.time].null_count():
        pure |= (chunk[spec.time].is_null() & chunk[spec.ended].fill_null(False)).to_numpy()
    return pure


def _outside(column: pl.Series, domain: TimeDomain) -> Mask | None:
    """Return the rows whose time is out of range; None if there are none."""
    low, high = domain.valid
    if not column.null_count():
        times = domain.array_of(column)
        if not len(times) or (times.min() >= low and times.max() < high):
            return None
    ticks = domain.ticks_of(column)
    return ((ticks < low) | (ticks >= high)).fill_null(False).to_numpy()
