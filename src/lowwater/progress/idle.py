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


GRAIN = 10_000_000
"""Nanoseconds: requests of single groups are met at multiples of this time, so that the groups that
become due in between are asked together."""
GROUPS_AT_ONCE = 1_000
"""The greatest number of groups asked together; between two such steps rows are read."""


@dataclass(frozen=True, slots=True)
class EnablingRule:
    """The rule by which a silent channel gets a timestamp. Clock times are nanoseconds."""

    rate: int
    """Ticks a second."""
    skew: int
    """The largest skew between two arrivals, in ticks."""
    behind: int | None = None
    """The most ticks by which a row of the stream is behind the clock; None if that is not known.
    It is 0 if rows get their times from the clock."""
    shift: int = 0
    """Nanoseconds by which the engine's clock is ahead of the arrival times in a log."""

    def start(self, newest: int, contract_mark: int) -> int:
        """Return the timestamp of a channel when its last row came; ``BEGINNING`` if none has.

        ``newest`` and ``contract_mark`` are those of the channel.
        """
        return BEGINNING if newest == BEGINNING else min(newest - self.skew, contract_mark)

    def by_clock(self, now: int) -> int:
        """Return the bound on all rows to come that follows from the clock alone; ``BEGINNING`` if
        none does."""
        if self.behind is None:
            return BEGINNING
        return (now - self.shift) * self.rate // SECOND - self.behind

    def timestamps(
        self, starts: NDArray[np.int64], seen: NDArray[np.int64], now: int
    ) -> NDArray[np.int64]:
        """Return the timestamps of channels, in ticks; ``BEGINNING`` where there is none.

        ``seen`` is the clock time of the last row of each channel.
        """
        active = starts != BEGINNING
        seconds, rest = np.divmod(now - np.where(active, seen, now), SECOND)
        passed = seconds * self.rate + rest * self.rate // SECOND
        return np.maximum(np.where(active, starts + passed, BEGINNING), self.by_clock(now))

    def time_of(self, mark: int, start: int, seen: int) -> int | None:
        """Return the clock time at which the timestamp reaches ``mark``; None if it never does."""
        times = [] if start == BEGINNING else [seen + self.wait(mark - start)]
        if self.behind is not None:
            times.append(self.shift - -(mark + self.behind) * SECOND // self.rate)
        return min(times, default=None)

    def wait(self, ticks: int) -> int:
        """Return the nanoseconds of silence that raise a timestamp by ``ticks``."""
        return -(-max(0, ticks) * SECOND // self.rate)


class StampedGroups(Protocol):
    """Groups whose silence gives them timestamps."""

    def mark_of(self, name: Hashable) -> int:
        """Return the mark of a group, in ticks; of one that is not known, that of all to come."""

    def time_of(self, name: Hashable, mark: int) -> int | None:
        """Return the clock time at which a group's timestamp reaches ``mark``; None if never."""


class RequestQueue:
    """The marks requested of single groups, in the order of the times at which they can be met.

    Cost: a request, a row or a timestamp costs the logarithm of the number of groups requested.
    Requests are met at most once in ``GRAIN`` nanoseconds for each ``GROUPS_AT_ONCE`` groups.
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
        time = -(-time // GRAIN) * GRAIN
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
        """Remove and return requests that can be met by ``now``: groups, at most
        ``GROUPS_AT_ONCE``, and marks."""
        found: list[tuple[Hashable, int]] = []
        while len(found) < GROUPS_AT_ONCE and (time := self.due()) is not None and time <= now:
            _, _, group = heappop(self._queue)
            found.append((group, self._due.pop(group)[1]))
        return found
