"""What operators await of single groups, and when the clocks of these groups allow it.

A request is a mark that releases something of one group. Each is kept by itself, so none hides that
of another group however far apart their clocks are. The next one that can be met is at the head of
a heap; what a request, a row or a timestamp costs follows the groups it is about.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

Origin = Hashable
"""Who awaits a mark."""


class Stamped(Protocol):
    """Groups that can be stamped by their silence."""

    def mark_of(self, name: Hashable) -> int:
        """The mark of a group."""

    def reached(self, name: Hashable, mark: int) -> int | None:
        """The clock time at which a group can be stamped with a mark; None if never."""


class RequestQueue:
    """The marks awaited of single groups, by when they can be promised."""

    def __init__(self, groups: Stamped):
        self._groups = groups
        self._wanted: dict[Hashable, dict[Origin, int]] = {}
        self._due: dict[Hashable, tuple[int, int]] = {}  # when, and which mark
        self._queue: list[tuple[int, int, Hashable]] = []  # times of groups, old ones too
        self._numbers = count()
        self.looked = 0
        """How often a group was looked at."""

    def put(self, origin: Origin, group: Hashable, mark: int | None) -> None:
        """Take note of what an origin awaits of a group; None: nothing any more."""
        wanted = self._wanted.setdefault(group, {})
        if mark is None:
            wanted.pop(origin, None)
        else:
            wanted[origin] = mark
        if not wanted:
            del self._wanted[group]
        self._look(group)

    def moved(self, groups: Iterable[Hashable]) -> None:
        """Rows of some groups have come, so that their clocks stand elsewhere."""
        for group in groups if self._wanted else ():
            if group in self._wanted:
                self._look(group)

    def _look(self, group: Hashable) -> None:
        """See when the least mark that is awaited of a group and not yet promised can be."""
        self.looked += 1
        held = self._groups.mark_of(group)
        marks = [mark for mark in self._wanted.get(group, {}).values() if mark > held]
        time = self._groups.reached(group, min(marks)) if marks else None
        if time is None:
            self._due.pop(group, None)
            return
        due = (time, min(marks))
        if self._due.get(group) != due:
            self._due[group] = due
            heappush(self._queue, (time, next(self._numbers), group))

    def due(self) -> int | None:
        """The clock time at which the next group can be stamped; None if none can."""
        while self._queue:
            time, _, group = self._queue[0]
            if group in self._due and self._due[group][0] == time:
                return time
            heappop(self._queue)
        return None

    def take(self, now: int) -> list[tuple[Hashable, int]]:
        """The groups that can be stamped with what is awaited of them, and these marks."""
        found = []
        while (time := self.due()) is not None and time <= now:
            _, _, group = heappop(self._queue)
            found.append((group, self._due.pop(group)[1]))
        self.looked += len(found)
        return found
