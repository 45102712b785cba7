"""The seam between sources and engines: a source describes rows, a reader reads them once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.stream.element import Chunk

AT_ONCE = -(2**63)
"""The clock time at which rows are due that are there and have no arrival times.

It is before all others, also before 1970, so that no row can have it as its arrival time.
"""


class Reader(Protocol):
    """Reads the rows of a source once. Clock times are nanoseconds."""

    @property
    def ended(self) -> bool:
        """True if no more rows will come."""

    def begin(self, now: int, first: int) -> None:
        """Start on a real clock: rows with arrival time ``first`` are due at ``now``."""

    def release(self) -> None:
        """End the reading."""

    def due(self, rows: int = 1) -> int | None:
        """Return the clock time by which ``rows`` rows (or all there are) have arrived.

        ``AT_ONCE`` if they are there and have no arrival times; None if unknown.
        """

    def arrivals(self) -> NDArray[np.int64] | None:
        """Return the clock times at which the rows read last arrived; None if unknown."""

    def read(self, now: int, limit: int) -> Chunk | None:
        """Return up to ``limit`` rows that arrived by ``now``, in arrival order; None if none."""

    def take_promises(self) -> list[tuple[str, object]]:
        """Return the producer's promises beside its rows since the last call.

        Each is an attribute and the least value of rows to come.
        """

    def notify(self, wake: Callable[[], None]) -> None:
        """Have ``wake`` called, from any thread, whenever something new may be there."""


@runtime_checkable
class BufferingReader(Protocol):
    """A reader with a buffer of rows that came and were not read yet."""

    def waiting(self) -> tuple[int, int]:
        """Return the number of rows in the buffer, and their size in bytes."""


class Source(Protocol):
    """A description of rows. A source has no state of its own: each run opens a reader."""

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns of its rows, and their types."""

    @property
    def arrival(self) -> str | None:
        """The column with the arrival times of rows; None if there is none."""

    @property
    def live(self) -> bool:
        """True if rows come by the wall clock, perhaps for ever."""

    def open(self) -> Reader:
        """Return a reader at the first row."""

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """Return the channels that are known before the first row; empty if they are not.

        A channel is named by the value of a single column, or a tuple of the values of several.
        """
