"""The least time of each attribute among waiting rows: what holds promises back."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from typing import Protocol

from lowwater.stream.element import END_OF_TIME

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


class Least:
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
