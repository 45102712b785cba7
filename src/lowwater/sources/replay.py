"""Replay of a finite arrival log: a table in arrival order, with or without arrival times.

Without an arrival column all rows are there from the start, and the engine interleaves sources
evenly. An arrival column is a Datetime or a number of seconds, and must not decrease.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from lowwater.errors import OptionError, QueryError, unknown_name
from lowwater.sources.source import AT_ONCE, Reader, Source
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import clock_times


class Replay(Source):
    """A finite arrival log; ``arrival`` is the column of arrival times, None if there is none."""

    def __init__(self, table: pl.DataFrame, arrival: str | None = None):
        self.table = table
        """The rows of the log."""
        self.schema = dict(table.schema)
        self.arrival = arrival
        self.times = _arrival_times(table, arrival) if arrival is not None else None
        """The arrival time of each row in nanoseconds; None if the log has none."""

    def only(self, columns: Mapping[str, pl.DataType]) -> Replay:
        """Return the log with these columns only; rows keep their arrival times."""
        rows = self.table.select(pl.col(name).cast(dtype) for name, dtype in columns.items())
        narrow = Replay(rows, self.arrival if self.arrival in columns else None)
        narrow.times = self.times
        return narrow

    @property
    def origin(self) -> Hashable:
        """The table, as it was given."""
        return id(self.table)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.table.height

    def open(self) -> ReplayReader:
        """Return a reader at the first row."""
        return ReplayReader(self.table, self.times)

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """Return all channels: a finite log has all of their rows."""
        names = self.table.select(columns).drop_nulls().unique(maintain_order=True)
        return tuple(names.rows()) if len(columns) > 1 else tuple(names.to_series().to_list())


class ReplayReader(Reader):
    """Reads an arrival log once."""

    def __init__(self, table: pl.DataFrame, times: NDArray[np.int64] | None):
        self._table, self._times, self._at = table, times, 0
        self._read = slice(0, 0)
        self._shifted = 0

    @property
    def shifted(self) -> int:
        """The nanoseconds by which arrival times were moved."""
        return self._shifted

    def begin(self, now: int, first: int) -> None:
        """Shift all arrival times so that ``first`` becomes ``now``."""
        if self._times is not None:
            self._shifted = now - first
            self._times = self._times + self._shifted

    @property
    def ended(self) -> bool:
        """True if all rows have been read."""
        return self._at >= self._table.height

    def due(self, rows: int = 1) -> int | None:
        """Return the arrival time of the last of the next rows; None at the end of the log."""
        if self.ended:
            return None
        last = min(self._at + rows, self._table.height) - 1
        return AT_ONCE if self._times is None else int(self._times[last])

    def read(self, now: int, limit: int) -> Chunk | None:
        """Return the next rows that have arrived; None if there are none."""
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
        """Return the arrival times of the rows read last; None if the log has none."""
        return None if self._times is None else self._times[self._read]


def replay(table: Any, arrival: str | None = None) -> Replay:
    """Return a finite arrival log as a source, for both engines.

    >>> log = pl.DataFrame({"at": [0.0, 0.5], "ts": [1, 2]})
    >>> lw.stream(lw.replay(log, "at"), name="s", time="ts").collect()["ts"].to_pylist()
    [1, 2]

    ``table``
        A Polars frame or a PyArrow table, in the order of arrival.
    ``arrival``
        Name of the column of arrival times, which never decrease: a Datetime, or a number of
        seconds. Default: None, rows have no arrival times.
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


def _arrival_times(table: pl.DataFrame, arrival: str) -> NDArray[np.int64]:
    if arrival not in table.columns:
        raise QueryError(f"replay: {unknown_name('arrival column', arrival, table.columns)}")
    if table[arrival].null_count():
        raise QueryError(f"replay: arrival column {arrival!r} has nulls")
    times = clock_times(table[arrival])
    if len(times) > 1 and bool((np.diff(times) < 0).any()):
        raise QueryError(f"replay: rows must be in arrival order, but column {arrival!r} goes back")
    return times
