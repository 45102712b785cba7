"""Enabling timestamps: the mark of a silent channel (ETS §5), and the requests for such marks.

A channel whose newest time is ``t`` and that has been silent for ``τ`` since then gets the mark
``t + τ - δ``, where ``δ`` is the largest skew between two arrivals. If times come from the clock,
the mark is the clock time. In place of ``t - δ`` the mark by the contract is taken if that is less,
so that no row that the contract allows is late because of a silence.

Operators request marks of single groups. The requests of each group are kept separately, because
the times of two groups may be far apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING

Origin = Hashable
"""Identifies the operator that requests a mark."""


@dataclass(frozen=True, slots=True)
class EnablingRule:
    """The rule by which a silent channel gets a timestamp. Clock times are nanoseconds."""

    rate: int
    """Ticks a second."""
    skew: int
    """The largest skew between two arrivals, in ticks."""
    internal: bool
    """True if rows get their times from the clock."""

    def timestamp(self, newest: int, contract_mark: int, seen: int | None, now: int) -> int:
        """Return the timestamp of a channel, in ticks; ``BEGINNING`` if there is none.

        ``newest`` and ``contract_mark`` are those of the channel; ``seen`` is the clock time of its
        last row, None if none has come.
        """
        if self.internal:
            return now * self.rate // SECOND
        if seen is None or newest == BEGINNING:
            return BEGINNING
        return min(newest - self.skew, contract_mark) + (now - seen) * self.rate // SECOND

    def timestamps(
        self,
        newest: NDArray[np.int64],
        contract_marks: NDArray[np.int64],
        seen: NDArray[np.int64],
        now: int,
    ) -> NDArray[np.int64]:
        """Return the timestamps of many channels; ``seen`` is ``BEGINNING`` where no row came."""
        active = (seen != BEGINNING) & (newest != BEGINNING)
        seconds, rest = np.divmod(now - np.where(active, seen, now), SECOND)
        passed = seconds * self.rate + rest * self.rate // SECOND
        start = np.minimum(newest - self.skew, contract_marks)
        return np.where(active, start + passed, BEGINNING)

    def time_of(self, mark: int, newest: int, contract_mark: int, seen: int | None) -> int | None:
        """Return the clock time at which the timestamp reaches ``mark``; None if it never does."""
        if self.internal:
            return -(-mark * SECOND // self.rate)
        if seen is None or newest == BEGINNING:
            return None
        return seen + self.wait(mark - min(newest - self.skew, contract_mark))

    def wait(self, ticks: int) -> int:
        """Return the nanoseconds of silence that raise a timestamp by ``ticks``."""
        return -(-max(0, ticks) * SECOND // self.rate)


class StampedGroups(Protocol):
    """Groups whose silence gives them timestamps."""

    def mark_of(self, name: Hashable) -> int:
        """Return the mark of a group, in ticks."""

    def time_of(self, name: Hashable, mark: int) -> int | None:
        """Return the clock time at which a group's timestamp reaches ``mark``; None if never."""


class RequestQueue:
    """The marks requested of single groups, in the order of the times at which they can be met.

    Cost: a request, a row or a timestamp costs the logarithm of the number of groups requested.
    """

    def __init__(self, groups: StampedGroups):
        self._groups = groups
        self._requested: dict[Hashable, dict[Origin, int]] = {}
        self._due: dict[Hashable, tuple[int, int]] = {}  # clock time, and the mark to reach
        self._queue: list[tuple[int, int, Hashable]] = []  # clock times, outdated ones too
        self._numbers = count()

    def put(self, origin: Origin, group: Hashable, mark: int | None) -> None:
        """Set the mark that ``origin`` requests of a group; None withdraws its request."""
        requested = self._requested.setdefault(group, {})
        if mark is None:
            requested.pop(origin, None)
        else:
            requested[origin] = mark
        if not requested:
            del self._requested[group]
        self._schedule(group)

    def reschedule(self, groups: Iterable[Hashable]) -> None:
        """Schedule the requests of groups again after they got rows or their marks moved."""
        for group in groups if self._requested else ():
            if group in self._requested:
                self._schedule(group)

    def _schedule(self, group: Hashable) -> None:
        """Schedule the least requested mark above a group's mark at its clock time."""
        held = self._groups.mark_of(group)
        marks = [mark for mark in self._requested.get(group, {}).values() if mark > held]
        time = self._groups.time_of(group, min(marks)) if marks else None
        if time is None:
            self._due.pop(group, None)
            return
        due = (time, min(marks))
        if self._due.get(group) != due:
            self._due[group] = due
            heappush(self._queue, (time, next(self._numbers), group))

    def due(self) -> int | None:
        """Return the clock time at which the next request can be met; None if none can."""
        while self._queue:
            time, _, group = self._queue[0]
            if group in self._due and self._due[group][0] == time:
                return time
            heappop(self._queue)
        return None

    def take(self, now: int) -> list[tuple[Hashable, int]]:
        """Remove and return the requests that can be met by ``now``: groups and marks."""
        found = []
        while (time := self.due()) is not None and time <= now:
            _, _, group = heappop(self._queue)
            found.append((group, self._due.pop(group)[1]))
        return found
