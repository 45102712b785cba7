"""Keys of an update queue: what waits of each, and what is known of it (UpStream Fig. 15).

Invariant: in a queue of keys a cell has at most one waiting row, the newest that came.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from lowwater.updates.options import Key
from lowwater.updates.staleness import Account

RECENT = 16
"""Gaps between updates are averaged over about so many."""


class Entry:
    """A waiting row: where it is, when it came and what its times are."""

    __slots__ = ("alive", "arrival", "cell", "location", "port", "ticks")

    def __init__(self, cell: Cell, location: int, arrival: int, ticks: tuple[int, ...], port: int):
        self.cell, self.location, self.arrival = cell, location, arrival
        self.ticks, self.port = ticks, port
        self.alive = True


class Cell:
    """One key."""

    __slots__ = (
        *("account", "entries", "first", "gap", "gaps"),
        *("key", "last", "newest", "number", "weight"),
    )

    def __init__(self, key: Key, weight: float, number: int):
        self.key, self.weight = key, weight
        self.number = number
        """Keys are numbered in the order in which they are met."""
        self.entries: deque[Entry] = deque()
        self.first = 0
        self.last: int | None = None
        self.gap: float | None = None
        self.gaps = 0
        """Gaps that were averaged, as far as they count."""
        self.newest: int | None = None
        """The time of the newest row that was taken out of the queue."""
        self.account = Account()

    def seen(self, first: int, last: int, count: int, begun: int) -> None:
        """Updates came between two times: measure how far apart they are, the first from the one
        before or, if there is none, from where the stream began."""
        since = begun if self.last is None else self.last
        gaps = count if self.last is not None or first > since else count - 1
        if gaps:
            self._average((last - since) / gaps, gaps)
        self.last = last

    def _average(self, gap: float, gaps: int) -> None:
        self.gaps = min(self.gaps + gaps, RECENT)
        before = 0.0 if self.gap is None else self.gap
        self.gap = before + (gap - before) * min(1.0, gaps / self.gaps)

    def saved(self) -> dict[str, Any]:
        """What it takes to go on."""
        return {
            "key": self.key,
            "first": self.first,
            "last": self.last,
            "gap": (self.gap, self.gaps),
            "newest": self.newest,
            "account": self.account.saved(),
            "entries": [(e.location, e.arrival, e.ticks, e.port) for e in self.entries],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what :meth:`saved` gave."""
        self.first, self.last = saved["first"], saved["last"]
        (self.gap, self.gaps), self.newest = saved["gap"], saved["newest"]
        self.account = Account.restored(saved["account"])
        self.entries = deque(Entry(self, *each) for each in saved["entries"])
