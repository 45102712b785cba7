"""A clock is the machine's, or a virtual one that makes whole runs repeatable.

A virtual clock jumps to the next event. It can also be charged for work: with the time that work
really took (waiting is then simulated and work is real), or with a fixed cost a step (every run is
then the same), or with nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from lowwater.stream.duration import Duration, nanoseconds


@dataclass(frozen=True, slots=True)
class PerComparison:
    """The charge for work, by the pairs of rows that a join compares.

    >>> PerComparison(5_000).nanoseconds
    5000

    ``nanoseconds``
        Nanoseconds that the comparison of one pair takes.
    """

    nanoseconds: float


@dataclass(frozen=True, slots=True)
class PerRow:
    """The charge for work, by the rows that leave an update queue.

    >>> lw.per_row("10 ms") == PerRow(10_000_000)
    True

    ``nanoseconds``
        Nanoseconds that each row takes.
    """

    nanoseconds: float


Charge = Literal["nothing", "measured"] | int | PerComparison | PerRow
"""The time that a virtual clock counts for a step of work; a number is nanoseconds a step."""


def per_row(cost: Duration) -> PerRow:
    """Let each row that leaves an update queue take ``cost`` on a virtual clock.

    >>> log = pl.DataFrame({"ts": [1, 2], "k": ["a", "b"]})
    >>> updates = lw.stream(log, name="s", time="ts", update_key="k")
    >>> updates.run(charge=lw.per_row("10 ms")).await_termination()
    True

    ``cost``
        Length of time, zero or more.
    """
    return PerRow(nanoseconds(cost, "the cost of a row"))


class Clock(Protocol):
    """The time of a run in nanoseconds since 1970, on which the run can wait for a time."""

    real: bool
    """True if it advances by itself."""

    @property
    def free(self) -> bool:
        """True if work takes no time on it."""

    def now(self) -> int:
        """Return the time."""

    def wait(self, until: int | None) -> None:
        """Wait until a time; None: until :meth:`wake` is called."""

    def wake(self) -> None:
        """End a wait early."""

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Count a step of work and return the nanoseconds it counts as.

        ``nanoseconds`` is the time it really took, ``comparisons`` the pairs of rows it compared
        and ``rows`` the rows it let out of an update queue.
        """


class VirtualClock:
    """A clock that jumps from event to event.

    >>> clock = lw.VirtualClock()
    >>> log = pl.DataFrame({"at": [0.0, 60.0], "ts": [0, 60]})
    >>> lw.stream(lw.replay(log, "at"), name="s", time="ts").collect(clock=clock).num_rows
    2
    >>> clock.now() / 1e9
    60.0

    ``start``
        Time at which it starts, in nanoseconds since 1970. Default: None, that of the first
        arrival.
    ``charge``
        Cost of work: "nothing", "measured" (the time that it really took), nanoseconds a step, or
        ``lw.per_row(...)``. Default: "nothing".
    """

    real = False

    def __init__(self, start: int | None = None, charge: Charge = "nothing"):
        self._now = 0 if start is None else start
        self._set = start is not None
        self._charge = charge

    def begin(self, first: int) -> None:
        """Start at the first arrival, which may be before 1970, unless the user set the start."""
        self._now = max(self._now, first) if self._set else first
        self._set = True

    @property
    def free(self) -> bool:
        """True if nothing is charged."""
        return self._charge == "nothing"

    def now(self) -> int:
        """Return the virtual time."""
        return self._now

    def wait(self, until: int | None) -> None:
        """Jump to a time; nothing happens if it has passed."""
        if until is not None:
            self._now = max(self._now, until)

    def wake(self) -> None:
        """Do nothing: a jump takes no time."""

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Advance by the charge for a step of work and return that charge."""
        if self._charge == "nothing":
            return nanoseconds
        if isinstance(self._charge, PerComparison):
            nanoseconds = round(self._charge.nanoseconds * comparisons)
        elif isinstance(self._charge, PerRow):
            nanoseconds = round(self._charge.nanoseconds * rows)
        elif self._charge != "measured":
            nanoseconds = self._charge
        self._now += nanoseconds
        return nanoseconds


class WallClock:
    """The machine's clock.

    >>> lw.WallClock().now() > 0
    True

    ``time_of_day``
        Function that returns the nanoseconds since 1970. Default: ``time.time_ns``.
    ``monotonic``
        Function that returns nanoseconds that never go back. Default: ``time.monotonic_ns``.
    """

    real = True
    free = False

    def __init__(
        self,
        time_of_day: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._event = threading.Event()
        self._monotonic = monotonic
        self._anchor = time_of_day() - monotonic()

    def now(self) -> int:
        """Return the nanoseconds since 1970.

        The time of day is read once, when the clock is made; from then on the monotonic clock
        counts. So a time of day that is set forward and back again neither ends a silence early nor
        makes one last for ever. It drifts from the time of day as far as the machine's clock is
        corrected during the run.
        """
        return self._anchor + self._monotonic()

    def wait(self, until: int | None) -> None:
        """Sleep until a time, or until :meth:`wake` is called."""
        timeout = None if until is None else max(0, until - self.now()) / 1e9
        self._event.wait(timeout)
        self._event.clear()

    def wake(self) -> None:
        """End a sleep early."""
        self._event.set()

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Return the nanoseconds that the work took: the clock has advanced by itself."""
        return nanoseconds


def stopwatch() -> int:
    """Return the reading of a stopwatch, in nanoseconds, for measuring work."""
    return time.perf_counter_ns()


def average_time(before: int, now: int) -> int:
    """Return the moving average of measured times after a new one, which counts an eighth."""
    return (before * 7 + now) // 8
