"""The seam between sources and engines: a source describes rows, a reader reads them once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.producer import ProducerPromise
from lowwater.stream.element import Chunk

AT_ONCE = -(2**63)
"""The clock time at which rows without arrival times are due.

It is before all times, also those before 1970, so that no row has it as its arrival time.
"""


class Reader(ABC):
    """Reads the rows of a source once. Clock times are nanoseconds.

    Unless overridden, rows have no arrival times, no promises come beside them, no rows are
    buffered and nothing new comes.
    """

    @property
    @abstractmethod
    def ended(self) -> bool:
        """True if no more rows will come."""

    @abstractmethod
    def due(self, rows: int = 1) -> int | None:
        """Return the clock time by which ``rows`` rows (or all there are) have arrived.

        ``AT_ONCE`` if they are there and have no arrival times; None if unknown.
        """

    @abstractmethod
    def read(self, now: int, limit: int) -> Chunk | None:
        """Return up to ``limit`` rows that arrived by ``now``, in arrival order; None if none."""

    def begin(self, now: int, first: int) -> None:  # noqa: B027 (optional)
        """Start on a real clock: rows with arrival time ``first`` are due at ``now``."""

    @property
    def shifted(self) -> int:
        """The nanoseconds by which arrival times were moved so that rows are due on a real
        clock."""
        return 0

    def release(self) -> None:  # noqa: B027 (optional)
        """End the reading."""

    def arrivals(self) -> NDArray[np.int64] | None:
        """Return the clock times at which the rows read last arrived; None if they arrived when
        they were read."""
        return None

    def take_promises(self) -> list[ProducerPromise]:
        """Return the producer's promises beside its rows since the last call."""
        return []

    def check_promises(self, check: Callable[[ProducerPromise], object]) -> None:  # noqa: B027
        """Set the function that raises an error if a promise has no meaning for the stream."""

    def waiting(self) -> tuple[int, int] | None:
        """Return the number of rows that came and were not read yet, and their bytes; None if no
        rows are buffered."""
        return None

    def notify(self, wake: Callable[[], None]) -> None:  # noqa: B027 (optional)
        """Set the function to call, from any thread, whenever rows or promises may have come."""


class Source(ABC):
    """A description of rows. A source has no state of its own: each run opens a reader."""

    schema: Mapping[str, pl.DataType]
    """The columns of its rows, and their types."""
    arrival: str | None = None
    """The column with the arrival times of rows; None if rows arrive when they are read."""
    live: bool = False
    """True if rows come by the wall clock, perhaps for ever."""

    @property
    def origin(self) -> Hashable:
        """Identifies where the rows come from: sources of one origin read the same rows."""
        return id(self)

    @abstractmethod
    def open(self) -> Reader:
        """Return a reader at the first row."""

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """Return the channels that are known before the first row; empty if they are not.

        A channel is named by the value of a single column, or a tuple of the values of several.
        """
        return ()
