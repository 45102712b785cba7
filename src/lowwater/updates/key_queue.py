"""The keys of a queue of updates, of rows and of windows alike (KeyHashTable, UpStream §7).

A key has a cell, made when its first update comes, and a place in the line while it waits. It ends
``expire`` after the time of its newest row, or right after that row if the row deletes the key. It
is forgotten when the mark has reached its end: no older row can come then, so nothing that was
outdated before is taken for new after. A waiting update of it is worked on first.

Invariant: for every key that has an end and does not wait, that end or an earlier time is in the
heap of the expiry.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

import polars as pl

from lowwater.stream.element import END_OF_TIME, GONE, MARK, GroupPunctuation
from lowwater.updates.key_lines import KeyLine, make_line
from lowwater.updates.keys import KeyCell, key_bytes
from lowwater.updates.options import Key, Updates
from lowwater.updates.staleness import Account

SLACK = 4
"""Heaps are made anew when they hold so many times what is alive."""


class Waits(Protocol):
    """What waits."""

    @property
    def ticks(self) -> tuple[int, ...]:
        """Its times, attribute by attribute."""

    @property
    def alive(self) -> bool:
        """Whether it waits still."""


class LeastTimes:
    """The least ticks, attribute by attribute; entries that are gone are passed over."""

    def __init__(self, attributes: int):
        self._heaps: list[list[tuple[int, int, Waits]]] = [[] for _ in range(attributes)]
        self._order = count()

    def add(self, entry: Waits) -> None:
        """A row waits."""
        for heap, ticks in zip(self._heaps, entry.ticks, strict=True):
            heapq.heappush(heap, (ticks, next(self._order), entry))

    def values(self, alive: int) -> list[int]:
        """The least of each attribute among the rows that wait, of which there are so many."""
        found = []
        for heap in self._heaps:
            if len(heap) > SLACK * alive + 64:
                heap[:] = [each for each in heap if each[2].alive]
                heapq.heapify(heap)
            while heap and not heap[0][2].alive:
                heapq.heappop(heap)
            found.append(heap[0][0] if heap else END_OF_TIME)
        return found

    def refill(self, entries: Iterable[Waits]) -> None:
        """Begin again with these rows."""
        for heap in self._heaps:
            heap.clear()
        for entry in entries:
            self.add(entry)


C = TypeVar("C", bound=KeyCell)


def gone(
    ended: Sequence[tuple[Key, int]], names: Sequence[str], schema: Mapping[str, pl.DataType]
) -> GroupPunctuation:
    """Say of keys that they have been deleted, each with its end."""
    columns = {name: schema[name] for name in names} | {MARK: pl.Int64()}
    rows = [(*key, end) for key, end in ended]
    return GroupPunctuation(GONE, pl.DataFrame(rows, columns, orient="row"))


class KeyExpiry(Generic[C]):
    """The keys that end, by when they do."""

    def __init__(self, expire: int | None, waits: Callable[[C], bool]):
        self._expire, self._waits = expire, waits
        self._ends: list[tuple[int, int, int, C]] = []
        self._order = count()
        self.expired = self.deleted = 0
        """Keys forgotten because of their age, and because a row said that they are gone."""

    def newest(self, cell: C, tick: int, deleted: bool) -> None:
        """The newest row of a key has this time and says, or does not, that the key is gone."""
        cell.deleted = deleted
        if deleted:
            cell.end = tick + 1
        elif self._expire is None or tick == END_OF_TIME:
            cell.end = END_OF_TIME
        else:
            cell.end = tick + self._expire
        self.watch(cell)

    def watch(self, cell: C) -> None:
        """A key has another end, or waits no more."""
        if cell.end < cell.planned:
            cell.planned = cell.end
            heapq.heappush(self._ends, (cell.end, cell.number, next(self._order), cell))

    def ended(self, mark: int) -> list[C]:
        """The keys that end by a mark and do not wait; who asks forgets them."""
        found: list[C] = []
        while self._ends and self._ends[0][0] <= mark:
            end, _, _, cell = heapq.heappop(self._ends)
            if cell.planned != end:
                continue
            cell.planned = END_OF_TIME
            if cell.end > mark:
                self.watch(cell)
            elif not self._waits(cell):  # it is watched again when it waits no more
                found.append(cell)
                self.deleted += cell.deleted
                self.expired += not cell.deleted
        return found

    def end_now(self, cells: Iterable[C]) -> list[C]:
        """Keys that end by what is promised of them alone; who calls forgets them."""
        found = [cell for cell in cells if cell.planned < END_OF_TIME or cell.end < END_OF_TIME]
        for cell in found:
            cell.planned = END_OF_TIME
            self.deleted += cell.deleted
            self.expired += not cell.deleted
        return found

    def saved(self) -> tuple[int, int]:
        """How many keys were forgotten."""
        return self.expired, self.deleted

    def restore(self, saved: tuple[int, int], cells: Iterable[C]) -> None:
        """Go on from what :meth:`saved` gave, with these keys."""
        self.expired, self.deleted = saved
        self._ends.clear()
        for cell in cells:
            self.watch(cell)


class KeyQueue(Generic[C]):
    """The cells of all keys, whose turn it is, and which times and ends they have."""

    def __init__(
        self,
        by: Updates,
        make: Callable[[Key, float, int], C],
        cost: Callable[[], float],
        now: Callable[[], int],
        *,
        cell_bytes: int,
        busy: Callable[[C], bool],
        attributes: int = 1,
        expire: int | None = None,
    ):
        self._make, self._cell_bytes = make, cell_bytes
        self._weights, self._other_weight = dict(by.weights), by.other_weight
        self.cells: dict[Key, C] = {}
        self.line: KeyLine[C] = make_line(by.schedule, bool(by.weights), cost, now)
        self.least = LeastTimes(attributes)
        self.expiry = KeyExpiry(expire, busy)
        self.begun: int | None = None
        """Arrival of the first row, in clock nanoseconds."""
        self._met = self._key_bytes = 0

    def find(self, key: Key) -> C:
        """Return the cell of a key; make one if it has none."""
        cell = self.cells.get(key)
        if cell is None:
            weight = self._weights.get(key, self._other_weight)
            cell = self.cells[key] = self._make(key, weight, self._met)
            self._met += 1
            self._key_bytes += key_bytes(key)
        return cell

    def remove(self, cell: C) -> bool:
        """Forget a key; false if it was forgotten before."""
        if self.cells.pop(cell.key, None) is None:
            return False
        self._key_bytes -= key_bytes(cell.key)
        return True

    def begin(self, arrival: int) -> None:
        """Note the arrival of a row; the first counts."""
        if self.begun is None:
            self.begun = arrival

    @property
    def bytes(self) -> int:
        """Bytes of the cells and the values of keys, about."""
        return len(self.cells) * self._cell_bytes + self._key_bytes

    def accounts(self) -> dict[tuple[object, ...], tuple[Account, float]]:
        """Return the account and the weight of each key."""
        cells = list(self.cells.values())  # copied first: another thread may be looking
        return {cell.key: (cell.account, cell.weight) for cell in cells}

    def saved(self) -> dict[str, Any]:
        """Return the cells and counters; the line is saved by its owner."""
        return {
            "cells": [cell.saved() for cell in self.cells.values()],
            "begun": self.begun,
            "met": self._met,
            "forgotten": self.expiry.saved(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for each in saved["cells"]:
            self.find(each["key"]).restore(each)
        self.begun, self._met = saved["begun"], saved["met"]
        self.expiry.restore(saved["forgotten"], self.cells.values())
