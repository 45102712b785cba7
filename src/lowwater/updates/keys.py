"""The keys of an update queue: the waiting rows of each and its statistics (UpStream Fig. 15).

Invariant: while rows replace each other, a key has at most one waiting row, the newest that
arrived.
"""

from __future__ import annotations

import sys
from typing import Any

from lowwater.stream.element import END_OF_TIME
from lowwater.updates.options import Key
from lowwater.updates.staleness import Account

RECENT = 16
"""Approximate number of gaps between updates over which their length is averaged."""


class Entry:
    """A row or a window of a queue; ``ticks`` are its times, one for each attribute."""

    __slots__ = ("alive", "ticks")

    def __init__(self, ticks: tuple[int, ...]):
        self.ticks = ticks
        self.alive = True
        """True until it leaves the queue."""


class WaitingRow(Entry):
    """A waiting row: its location, arrival, times in ticks and input port."""

    __slots__ = ("arrival", "cell", "location", "port")

    def __init__(
        self, cell: KeyCell, location: int, arrival: int, ticks: tuple[int, ...], port: int
    ):
        super().__init__(ticks)
        self.cell, self.location, self.arrival, self.port = cell, location, arrival, port


class KeyCell:
    """A key: its waiting rows, its staleness, the gaps between its updates and its end."""

    __slots__ = (
        *("account", "deleted", "end", "entries", "first", "gap", "gaps"),
        *("key", "last", "newest", "number", "planned", "weight"),
    )

    def __init__(self, key: Key, weight: float, number: int):
        self.key, self.weight = key, weight
        self.number = number
        """Number of the key, from 0 in the order in which keys first appear."""
        self.entries: list[WaitingRow] = []
        self.first = 0
        """Arrival of its first waiting update, in clock nanoseconds."""
        self.last: int | None = None
        """Arrival of its last update; None before the first."""
        self.gap: float | None = None
        """Average nanoseconds between its updates; None before the second."""
        self.gaps = 0
        """Number of gaps in the average ``gap``, at most ``RECENT``."""
        self.newest: int | None = None
        """Time of the newest row taken out of the queue, in ticks; None before the first."""
        self.account = Account()
        self.end = END_OF_TIME
        """The mark at which the key is forgotten, in ticks."""
        self.planned = END_OF_TIME
        """The least end of this key in the heap of the expiry; the end of time if it is not
        there."""
        self.deleted = False
        """True if the newest row deletes the key."""

    @property
    def busy(self) -> bool:
        """True if an update of the key waits."""
        return bool(self.entries)

    def measure_gaps(self, first: int, last: int, count: int, begun: int) -> None:
        """Measure the gaps between updates that arrived from ``first`` to ``last``.

        The gap before the first counts from the previous update or, for a new key, from ``begun``,
        the start of the stream. All times are in clock nanoseconds.
        """
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
        """Set the state to that of a snapshot."""
        self.number = saved["number"]
        self.first, self.last = saved["first"], saved["last"]
        (self.gap, self.gaps), self.newest = saved["gap"], saved["newest"]
        self.end, self.deleted = saved["end"]
        self.account = Account.restored(saved["account"])
        self.entries = [WaitingRow(self, *each) for each in saved["entries"]]


def key_bytes(key: Key) -> int:
    """Return the bytes of the values of a key."""
    return sys.getsizeof(key) + sum(map(sys.getsizeof, key))


NUMBER = sys.getsizeof(2**40)
"""Bytes of a time in ticks or nanoseconds."""
DICT_ENTRY = 100
"""Approximate bytes of an entry in a dict, whose table is half full on average."""


def bytes_of_slots(*types: type) -> int:
    """Return the bytes of one object of each type, without the objects it refers to."""
    return sum(type_.__basicsize__ + 2 * sys.getsizeof(None) for type_ in types)
