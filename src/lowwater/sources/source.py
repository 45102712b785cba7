"""The source seam: a source is a recipe, a reader is one run of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.stream.element import Chunk

AT_ONCE = -(2**63)
"""A clock time before all others: rows that are there and have no arrival times are due then.

It is no time of a clock, so a row that arrived at 0 or before 1970 cannot be taken for such a one.
"""


class Reader(Protocol):
    """One run over a source. Clock times are nanoseconds."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def begin(self, now: int, first: int) -> None:
        """On a real clock: let what was due at ``first`` be due now."""

    def release(self) -> None:
        """Take note that nobody reads any more."""

    def due(self, rows: int = 1) -> int | None:
        """The clock time, in nanoseconds, by which so many rows (or all there are) have arrived.

        ``AT_ONCE`` if they are there and have no arrival times; None if unknown.
        """

    def arrivals(self) -> NDArray[np.int64] | None:
        """The clock times, in nanoseconds, at which the rows read last arrived; None if unknown."""

    def read(self, now: int, limit: int) -> Chunk | None:
        """Up to ``limit`` rows that have arrived by ``now``, in arrival order."""

    def told(self) -> list[tuple[str, object]]:
        """Promises the producer made beside its rows, as (attribute, value); each told once."""

    def notify(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` whenever something new may be there."""


@runtime_checkable
class Holding(Protocol):
    """A reader that holds rows which came and were not read yet."""

    def waiting(self) -> tuple[int, int]:
        """How many rows, and how many bytes they take."""


class Source(Protocol):
    """A recipe for rows."""

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns of its rows."""

    @property
    def arrival(self) -> str | None:
        """The column that says when each row arrived, if there is one."""

    @property
    def live(self) -> bool:
        """Whether rows come by the wall clock, perhaps for ever."""

    def open(self) -> Reader:
        """Start reading from the beginning."""

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """The values of the columns that are known before the first row, as channels are named:
        plain for one column, tuples for several; none if they cannot be known."""
