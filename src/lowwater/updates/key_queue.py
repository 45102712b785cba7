"""The keys of a queue of updates, of rows or of windows (KeyHashTable, UpStream §7).

A key has a cell, made when its first update arrives, and stands in the line while an update of it
waits. A key ends ``expire`` ticks after the time of its newest row, or right after that row if the
row deletes the key. A key is *forgotten*, which drops its cell, when the mark has reached its end
and it is not busy, that is, no update of it waits or is worked on. No older row can arrive then, so
an outdated row is never taken for a new one.

Invariant: for every key that has an end and is not busy, that end or an earlier time is in the heap
of the expiry.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Generic, TypeVar

import polars as pl

from lowwater.stream.element import END_OF_TIME, ENDED, MARK, Element, GroupPunctuation
from lowwater.updates.key_lines import KeyLine
from lowwater.updates.keys import Entry, KeyCell, key_bytes
from lowwater.updates.options import Key, Updates
from lowwater.updates.staleness import Account

SLACK = 4
"""A heap is rebuilt when it holds this many times the entries that still wait."""


class LeastTimes:
    """The least time of the waiting entries, for each attribute; entries that left are skipped."""

    def __init__(self, attributes: int):
        self._heaps: list[list[tuple[int, int, Entry]]] = [[] for _ in range(attributes)]
        self._order = count()

    def add(self, entry: Entry) -> None:
        """Add an entry that begins to wait."""
        for heap, ticks in zip(self._heaps, entry.ticks, strict=True):
            heapq.heappush(heap, (ticks, next(self._order), entry))

    def values(self, alive: int) -> list[int]:
        """Return the least time of each attribute; ``alive`` is the number of waiting entries."""
        found = []
        for heap in self._heaps:
            if len(heap) > SLACK * alive + 64:
                heap[:] = [each for each in heap if each[2].alive]
                heapq.heapify(heap)
            while heap and not heap[0][2].alive:
                heapq.heappop(heap)
            found.append(heap[0][0] if heap else END_OF_TIME)
        return found

    def refill(self, entries: Iterable[Entry]) -> None:
        """Replace all entries."""
        for heap in self._heaps:
            heap.clear()
        for entry in entries:
            self.add(entry)


C = TypeVar("C", bound=KeyCell)


def report_of(
    ended: Sequence[tuple[Key, int]], names: Sequence[str], schema: Mapping[str, pl.DataType]
) -> list[Element]:
    """Return the punctuation that reports keys that have ended, each once with its last end in
    ticks; nothing for no key."""
    if not ended:
        return []
    last: dict[Key, int] = {}
    for key, end in ended:
        last[key] = max(end, last.get(key, end))
    columns = {name: schema[name] for name in names} | {MARK: pl.Int64()}
    rows = [(*key, end) for key, end in last.items()]
    return [GroupPunctuation(ENDED, pl.DataFrame(rows, columns, orient="row"))]


class KeyExpiry(Generic[C]):
    """The keys that end, ordered by their ends."""

    def __init__(self, expire: int | None):
        self._expire = expire
        self._ends: list[tuple[int, int, int, C]] = []
        self._order = count()

    def set_end(self, cell: C, tick: int, deleted: bool) -> None:
        """Set the end of a key from the time of its newest row and whether that deletes the key."""
        cell.deleted = deleted
        if deleted:
            cell.end = tick + 1
        elif self._expire is None or tick == END_OF_TIME:
            cell.end = END_OF_TIME
        else:
            cell.end = tick + self._expire
        self.watch(cell)

    def watch(self, cell: C) -> None:
        """Put the end of a key into the heap, unless an end as early is there.

        This is needed after the end changed, and after the last waiting update of the key left.
        """
        if cell.end < cell.planned:
            cell.planned = cell.end
            heapq.heappush(self._ends, (cell.end, cell.number, next(self._order), cell))

    def ended(self, mark: int) -> list[C]:
        """Return the keys that end by a mark and are not busy; the caller forgets them."""
        found: list[C] = []
        while self._ends and self._ends[0][0] <= mark:
            end, _, _, cell = heapq.heappop(self._ends)
            if cell.planned != end:
                continue
            cell.planned = END_OF_TIME
            if cell.end > mark:
                self.watch(cell)
            elif not cell.busy:  # a busy key is watched again when it is no longer busy
                found.append(cell)
        return found

    def refill(self, cells: Iterable[C]) -> None:
        """Replace all keys."""
        self._ends.clear()
        for cell in cells:
            self.watch(cell)


class KeyQueue(Generic[C]):
    """The cells of all keys, the line of those that wait, their least times and their ends.

    ``make`` makes a cell of ``cell_bytes`` bytes from a key, its weight and its number. An entry
    has a time for each of ``attributes``. Keys expire ``expire`` ticks after their newest row, or
    never if it is None.
    """

    def __init__(
        self,
        by: Updates,
        make: Callable[[Key, float, int], C],
        line: KeyLine[C],
        cell_bytes: int,
        attributes: int = 1,
        expire: int | None = None,
    ):
        self._make, self._cell_bytes = make, cell_bytes
        self._weights, self._other_weight = dict(by.weights), by.other_weight
        self._new_keys_wait = by.schedule == "linecutting"
        self._targets, self._other_target = dict(by.targets), by.other_target
        self.cells: dict[Key, C] = {}
        self.line = line
        self.least = LeastTimes(attributes)
        self.expiry: KeyExpiry[C] = KeyExpiry(expire)
        self.begun: int | None = None
        """Arrival of the first row, in clock nanoseconds."""
        self._met = 0  # number of keys so far
        self._key_bytes = 0
        self.expired = self.deleted = 0
        """Number of keys forgotten because of their age, and because a row deleted them."""
        self._past = [0, 0, 0]
        """Updates and results of forgotten keys, and the number of those that missed targets."""

    def find(self, key: Key) -> C:
        """Return the cell of a key; make one if it has none."""
        cell = self.cells.get(key)
        if cell is None:
            weight = self._weights.get(key, self._other_weight)
            cell = self.cells[key] = self._make(key, weight, self._met)
            self._met += 1
            self._key_bytes += key_bytes(key)
            cell.account.target = self._targets.get(key, self._other_target)
        return cell

    def remove(self, cell: C) -> bool:
        """Forget a key that has ended; return false if it was forgotten before."""
        if self.cells.get(cell.key) is not cell:
            return False
        del self.cells[cell.key]
        cell.planned = END_OF_TIME
        self.deleted += cell.deleted
        self.expired += not cell.deleted
        self._key_bytes -= key_bytes(cell.key)
        self._past[0] += cell.account.updates
        self._past[1] += cell.account.delivered
        self._past[2] += cell.account.missed
        return True

    def begin(self, arrival: int) -> None:
        """Set ``begun`` at the first call; ``arrival`` is that of a row, in clock nanoseconds."""
        if self.begun is None:
            self.begun = arrival

    def gap_start(self, first: int) -> int:
        """Return the clock time from which the gap before the first update of a key counts.

        ``first`` is the arrival of that update; the gap does not count if it is returned.
        """
        return first if self.begun is None or self._new_keys_wait else self.begun

    @property
    def bytes(self) -> int:
        """Approximate bytes of the cells and of the values of keys."""
        return len(self.cells) * self._cell_bytes + self._key_bytes

    def accounts(self) -> dict[tuple[object, ...], tuple[Account, float]]:
        """Return the account and the weight of each key."""
        cells = list(self.cells.values())  # a copy: metrics are read in another thread
        return {cell.key: (cell.account, cell.weight) for cell in cells}

    @property
    def missed(self) -> int:
        """Number of forgotten keys that missed their targets."""
        return self._past[2]

    def totals(self) -> tuple[int, int]:
        """Return the number of updates and of results shown, also of forgotten keys."""
        accounts = [account for account, _ in self.accounts().values()]
        updates, delivered, _ = self._past
        return (
            updates + sum(each.updates for each in accounts),
            delivered + sum(each.delivered for each in accounts),
        )

    def saved(self) -> dict[str, Any]:
        """Return the cells and counters; the line is saved by its owner."""
        return {
            "cells": [cell.saved() for cell in self.cells.values()],
            "begun": self.begun,
            "met": self._met,
            "past": tuple(self._past),
            "forgotten": (self.expired, self.deleted),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        for each in saved["cells"]:
            cell = self.find(each["key"])
            target = cell.account.target
            cell.restore(each)
            cell.account.target = target
        self.begun, self._met, self._past = saved["begun"], saved["met"], list(saved["past"])
        self.expired, self.deleted = saved["forgotten"]
        self.expiry.refill(self.cells.values())
