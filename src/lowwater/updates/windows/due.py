"""When windows of keys are due: the ends of the first open window of each.

Invariant: the end of the first open window of every key that was watched is known, and a key is
found by a mark exactly if that end is not beyond it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from lowwater.stream.element import END_OF_TIME
from lowwater.stream.window import WindowSpec
from lowwater.updates.windows.cells import WindowCell
from lowwater.updates.windows.open_windows import Run


class Due:
    """Keys by the end of their first open window."""

    def __init__(self, window: WindowSpec):
        self._window = window
        self._ends: list[tuple[int, int, WindowCell]] = []

    def watch(self, cell: WindowCell) -> None:
        """The open windows of a key may be others now."""
        earliest = cell.windows.earliest
        due = END_OF_TIME if earliest is None else earliest + self._window.range
        if due != cell.due:
            cell.due = due
            self._push(cell)

    def _push(self, cell: WindowCell) -> None:
        if cell.due < END_OF_TIME:
            heapq.heappush(self._ends, (cell.due, cell.number, cell))

    @property
    def first(self) -> int | None:
        """When the first window ends that has rows and is not complete."""
        while self._ends and self._ends[0][0] != self._ends[0][2].due:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def complete(self, mark: int) -> Iterator[tuple[WindowCell, list[Run]]]:
        """The keys of which windows end by a mark, and these windows; they are open no more."""
        while (first := self.first) is not None and first <= mark:
            cell = heapq.heappop(self._ends)[2]
            yield cell, self.complete_of(cell, mark)

    def complete_of(self, cell: WindowCell, mark: int) -> list[Run]:
        """The same of one key."""
        runs = cell.windows.complete(self._window.first_open(mark))
        self.watch(cell)
        return runs

    def refill(self, cells: Iterable[WindowCell]) -> None:
        """Begin again with these keys, each as it was watched."""
        self._ends.clear()
        for cell in cells:
            self._push(cell)
