"""Time domains: the ticks in which a progressing attribute counts time.

Kernels compare whole ticks. A ``Datetime`` column counts in its own unit (ns, µs, ms), an integer
column in the unit its stream declares (seconds by default), a row number counts rows. Columns of
``Date`` and of floating-point seconds become ``Datetime("us")`` at the intake.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import OptionError, QueryError, Term
from lowwater.stream.duration import SECOND, Duration, nanoseconds, spell
from lowwater.stream.element import BEGINNING, END_OF_TIME

UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": SECOND}
"""The units of integer time columns, in ticks a second."""

_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800  # seconds since 1970


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """The type of a progressing attribute, and its ticks a second; 0 if it counts rows."""

    dtype: pl.DataType
    ticks_per_second: int

    @classmethod
    def of(cls, dtype: pl.DataType, unit: str = "s", what: str = "time column") -> TimeDomain:
        """Return the domain of a column; raise if its type cannot be a time.

        ``unit`` is the unit of an integer column. ``what`` names the column in error messages.
        """
        if isinstance(dtype, pl.Datetime):
            return cls(dtype, UNITS[dtype.time_unit])
        if dtype == pl.Date or dtype.is_float():
            return cls(pl.Datetime("us"), UNITS["us"])
        if dtype.is_integer():
            if unit not in UNITS:
                raise OptionError(f"unit must be one of {', '.join(UNITS)}, not {unit!r}")
            return cls(pl.Int64(), UNITS[unit])
        raise QueryError(
            f"{what} has type {dtype}; a time is a Datetime, a Date, an integer"
            " (with unit='s', 'ms', 'us' or 'ns') or floating-point seconds"
        )

    @property
    def counts_rows(self) -> bool:
        """True if ticks are row numbers."""
        return self.ticks_per_second == 0

    @property
    def valid(self) -> tuple[int, int]:
        """The least valid tick, and the first tick above all valid ones."""
        if isinstance(self.dtype, pl.Datetime):
            scale = self.ticks_per_second
            return max(_YEAR_1 * scale, BEGINNING + 1), min(_YEAR_10000 * scale, END_OF_TIME)
        return BEGINNING + 1, END_OF_TIME

    def ticks(self, duration: Duration, what: str | Term = "duration") -> int:
        """Return a length of time in ticks; raise if that is not a whole number.

        ``what`` names the option in error messages.
        """
        if self.counts_rows:
            raise OptionError(what, ": this attribute counts rows, not time")
        length = nanoseconds(duration, what)
        ticks, rest = divmod(length * self.ticks_per_second, SECOND)
        if rest:
            raise OptionError(
                what,
                f" of {spell(length)} is finer than the time column, which counts in"
                f" {spell(SECOND // self.ticks_per_second)}; use a multiple of that",
            )
        return ticks

    def spell(self, ticks: int) -> str:
        """Return a length in ticks as a person writes it."""
        if self.counts_rows:
            return f"{ticks} rows"
        return spell(ticks * SECOND // self.ticks_per_second)

    def to_ticks(self, column: pl.Expr) -> pl.Expr:
        """Return the ticks of a column of this domain, as an expression."""
        return column.to_physical().cast(pl.Int64)

    def ticks_of(self, column: pl.Series) -> pl.Series:
        """Return the ticks of a series of this domain."""
        return column.to_physical().cast(pl.Int64)

    def array_of(self, column: pl.Series) -> NDArray[np.int64]:
        """Return the ticks of a series of this domain without nulls; nothing is copied."""
        return column.to_numpy().view(np.int64)

    def from_ticks(self, ticks: pl.Expr) -> pl.Expr:
        """Return the column of this domain for an expression of ticks."""
        return ticks.cast(self.dtype)

    def show(self, ticks: int) -> datetime | int | None:
        """Return a tick value as a person reads it; None if it is not a valid time."""
        low, high = self.valid
        if not low <= ticks < high:
            return None
        if isinstance(self.dtype, pl.Datetime):
            micros = ticks * 1_000_000 // self.ticks_per_second
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
            return moment if self.dtype.time_zone else moment.replace(tzinfo=None)
        return ticks


def clock_times(column: pl.Series) -> NDArray[np.int64]:
    """Return a column of arrival times, a Datetime or a number of seconds, in nanoseconds."""
    dtype = column.dtype
    times: NDArray[np.int64]
    if isinstance(dtype, pl.Datetime):
        times = column.dt.cast_time_unit("ns").to_physical().to_numpy()
    elif dtype.is_integer():
        times = column.cast(pl.Int64).to_numpy() * SECOND
    elif dtype.is_float():
        seconds = column.to_numpy()
        if not np.isfinite(seconds).all():
            raise QueryError(f"replay: arrival column {column.name!r} has NaN or infinite values")
        times = np.rint(seconds * SECOND).astype(np.int64)
    else:
        raise QueryError(
            f"replay: arrival column {column.name!r} has type {dtype}; it must be a Datetime or a"
            " number of seconds"
        )
    return times


ROWS = TimeDomain(pl.Int64(), 0)
"""The domain of row numbers."""
BUCKETS = TimeDomain(pl.Int64(), 0)
"""The domain of the numbers of time buckets (``lw.same``)."""
