"""Keys of an update queue: what waits of each, and what is known of it (UpStream Fig. 15).

Invariant: in a queue of keys a cell has at most one waiting row, the newest that came.
"""

from __future__ import annotations

import sys
from typing import Any

from lowwater.stream.element import END_OF_TIME
from lowwater.updates.options import Key
from lowwater.updates.staleness import Account

RECENT = 16
"""Gaps between updates are averaged over about so many."""


class WaitingRow:
    """A waiting row: where it is, when it came and what its times are."""

    __slots__ = ("alive", "arrival", "cell", "location", "port", "ticks")

    def __init__(
        self, cell: KeyCell, location: int, arrival: int, ticks: tuple[int, ...], port: int
    ):
        self.cell, self.location, self.arrival = cell, location, arrival
        self.ticks, self.port = ticks, port
        self.alive = True


class KeyCell:
    """One key."""

    __slots__ = (
        *("account", "deleted", "end", "entries", "first", "gap", "gaps"),
        *("key", "last", "newest", "number", "planned", "weight"),
    )

    def __init__(self, key: Key, weight: float, number: int):
        self.key, self.weight = key, weight
        self.number = number
        """Keys are numbered in the order in which they are met."""
        self.entries: list[WaitingRow] = []
        self.first = 0
        self.last: int | None = None
        self.gap: float | None = None
        self.gaps = 0
        """Gaps that were averaged, as far as they count."""
        self.newest: int | None = None
        """The time of the newest row that was taken out of the queue."""
        self.account = Account()
        self.end = END_OF_TIME
        """The mark by which this key is forgotten."""
        self.planned = END_OF_TIME
        """The mark by which it is looked at next, whether that has come."""
        self.deleted = False
        """Whether its newest row says that the key is gone."""

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
        """Return the snapshot."""
        return {
            "key": self.key,
            "number": self.number,
            "first": self.first,
            "last": self.last,
            "gap": (self.gap, self.gaps),
            "newest": self.newest,
            "end": (self.end, self.deleted),
            "account": self.account.saved(),
            "entries": [(e.location, e.arrival, e.ticks, e.port) for e in self.entries],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.number = saved["number"]
        self.first, self.last = saved["first"], saved["last"]
        (self.gap, self.gaps), self.newest = saved["gap"], saved["newest"]
        self.end, self.deleted = saved["end"]
        self.account = Account.restored(saved["account"])
        self.entries = [WaitingRow(self, *each) for each in saved["entries"]]


def key_bytes(key: Key) -> int:
    """Bytes of the values of a key."""
    return sys.getsizeof(key) + sum(map(sys.getsizeof, key))


NUMBER = sys.getsizeof(2**40)
"""Bytes of a time."""
PLACE = 100
"""Bytes of a place in a dict, about: its table is half full on average."""


def bytes_of_slots(*types: type) -> int:
    """Bytes of an object of each of some types, without what is in it."""
    return sum(type_.__basicsize__ + 2 * sys.getsizeof(None) for type_ in types)
