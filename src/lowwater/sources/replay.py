"""Replay of a finite arrival log: a table in arrival order, with arrival times if it has them.

Without an arrival column all rows are there from the start; the engine then interleaves sources
evenly. An arrival column may be a Datetime or a number of seconds; it must not decrease.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from lowwater.errors import OptionError, QueryError, unknown_name
from lowwater.sources.source import AT_ONCE
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk


class Replay:
    """A finite arrival log."""

    live = False

    def __init__(self, table: pl.DataFrame, arrival: str | None = None):
        self._table = table
        self._arrival = arrival
        self._times = _arrival_times(table, arrival) if arrival is not None else None

    def only(self, columns: Mapping[str, pl.DataType]) -> Replay:
        """The same arrivals with these columns; when rows arrive need not be among them."""
        rows = self._table.select(pl.col(name).cast(dtype) for name, dtype in columns.items())
        narrow = Replay(rows, self._arrival if self._arrival in columns else None)
        narrow._times = self._times
        return narrow

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns of the log."""
        return dict(self._table.schema)

    @property
    def arrival(self) -> str | None:
        """The arrival column."""
        return self._arrival

    @property
    def table(self) -> pl.DataFrame:
        """The log itself."""
        return self._table

    @property
    def times(self) -> NDArray[np.int64] | None:
        """When each row arrives, in nanoseconds; None if the log does not say."""
        return self._times

    @property
    def rows(self) -> int:
        """How many rows the log has."""
        return self._table.height

    def open(self) -> ReplayReader:
        """Start from the first row."""
        return ReplayReader(self._table, self._times)

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """All values of the columns: a finite log knows who will speak."""
        names = self._table.select(columns).drop_nulls().unique(maintain_order=True)
        return tuple(names.rows()) if len(columns) > 1 else tuple(names.to_series().to_list())


class ReplayReader:
    """One run over an arrival log."""

    def __init__(self, table: pl.DataFrame, times: NDArray[np.int64] | None):
        self._table, self._times, self._at = table, times, 0
        self._read = slice(0, 0)

    def release(self) -> None:
        """A log does not mind."""

    def begin(self, now: int, first: int) -> None:
        """Play in real time: what arrived at ``first`` arrives now."""
        if self._times is not None:
            self._times = self._times + (now - first)

    @property
    def ended(self) -> bool:
        """Whether all rows have been read."""
        return self._at >= self._table.height

    def due(self, rows: int = 1) -> int | None:
        """When the next rows have arrived (at once, if the log has no arrival times)."""
        if self.ended:
            return None
        last = min(self._at + rows, self._table.height) - 1
        return AT_ONCE if self._times is None else int(self._times[last])

    def read(self, now: int, limit: int) -> Chunk | None:
        """The next rows that have arrived."""
        last = min(self._at + limit, self._table.height)
        if self._times is not None:
            arrived = self._at + int(np.searchsorted(self._times[self._at : last], now, "right"))
            last = min(last, arrived)
        if last <= self._at:
            return None
        chunk = self._table.slice(self._at, last - self._at)
        self._read, self._at = slice(self._at, last), last
        return chunk

    def arrivals(self) -> NDArray[np.int64] | None:
        """When the rows read last arrived, by the clock they are played by."""
        return None if self._times is None else self._times[self._read]

    def told(self) -> list[tuple[str, object]]:
        """A log makes no promises beside its rows."""
        return []

    def notify(self, wake: Callable[[], None]) -> None:
        """A log never changes."""


def replay(table: Any, arrival: str | None = None) -> Replay:
    """A finite arrival log as a source, playable on every engine.

    ``table`` is a polars frame or a pyarrow table, in arrival order; ``arrival`` names the column
    of arrival times, if there is one.
    """
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    if isinstance(table, pa.Table | pa.RecordBatch):
        table = pl.from_arrow(table)
    if not isinstance(table, pl.DataFrame):
        raise OptionError(
            "a stream is made of a polars frame, a pyarrow table, lw.replay(...) or lw.push(...),"
            f" not {type(table).__name__}"
        )
    return Replay(table, arrival)


def clock_times(column: pl.Series) -> NDArray[np.int64]:
    """A column of arrival times as the engine's clock tells time: nanoseconds."""
    dtype = column.dtype
    times: NDArray[np.int64]
    if isinstance(dtype, pl.Datetime):
        times = column.dt.cast_time_unit("ns").to_physical().to_numpy()
        return times
    if dtype.is_integer():
        times = column.cast(pl.Int64).to_numpy() * SECOND
        return times
    if dtype.is_float():
        seconds = column.to_numpy()
        if not np.isfinite(seconds).all():
            raise QueryError(f"replay: arrival column {column.name!r} has NaN or infinite values")
        times = np.rint(seconds * SECOND).astype(np.int64)
        return times
    raise QueryError(
        f"replay: arrival column {column.name!r} has type {dtype}; it must be a Datetime or a"
        " number of seconds"
    )


def _arrival_times(table: pl.DataFrame, arrival: str) -> NDArray[np.int64]:
    if arrival not in table.columns:
        raise QueryError(f"replay: {unknown_name('arrival column', arrival, table.columns)}")
    if table[arrival].null_count():
        raise QueryError(f"replay: arrival column {arrival!r} has nulls")
    times = clock_times(table[arrival])
    if len(times) > 1 and bool((np.diff(times) < 0).any()):
        raise QueryError(f"replay: rows must be in arrival order, but column {arrival!r} goes back")
    return times
