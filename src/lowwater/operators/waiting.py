"""The marks that single groups await: for each group, the least that releases one of its rows.

An operator holds a row until a promise reaches one of the marks that release it. If groups have
promises of their own, one group may be years behind another, so that one least mark for all groups
is not enough. :class:`Waits` has the least mark of each group, and the groups for which it changed.

Invariant: the least mark that a group awaits is above all that was promised on the group. The cost
of a chunk or promise grows with the groups in it, not with all groups.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

import polars as pl

from lowwater.stream.element import BEGINNING, MARK, Chunk, Element, GroupPunctuation, Punctuation

TIME = "__time"
Cell = tuple[int, int]
"""The first and the last of the marks that release a row, as points of a grid."""


def _same(time: int) -> int:
    return time


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """The marks of an input that release a row: those from ``near`` to ``far`` ticks after its time
    that are ``offset`` ticks above a multiple of ``step``.
    """

    port: int
    """The input whose rows are held."""
    ticks: pl.Expr
    """The expression of a row's time, in ticks."""
    keys: tuple[str, ...]
    """The columns of the row that name its group."""
    attribute: str
    """The attribute to be promised."""
    near: int
    far: int
    step: int = 1
    offset: int = 0
    chained: bool = False
    """True if a row stays held when a later one of its group comes before the mark that would
    release it."""
    awaits: int | None = None
    """The input whose promise releases the row; None if it is the row's own."""
    names: tuple[str, ...] = ()
    """The columns that name the group in that input, if it is another one."""
    moved: Callable[[int], int] = _same
    """Function from the row's time to the time in the other input from which ``near`` and ``far``
    are counted."""

    @property
    def promised(self) -> tuple[int, tuple[str, ...]]:
        """The input whose promise releases rows, and its key columns."""
        return (self.port, self.keys) if self.awaits is None else (self.awaits, self.names)

    def cells(self, chunk: Chunk) -> list[tuple[Any, ...]]:
        """Return the keys of rows with the first and the last mark that release them, each once."""
        grid = self.ticks
        if self.step > 1:  # times with the same marks are one cell
            low = (grid + (self.near - self.offset + self.step - 1)) // self.step
            high = (grid + (self.far - self.offset)) // self.step
            cells = chunk.select(*self.keys, low.alias(TIME), high.alias(MARK)).unique()
            return [row for row in cells.iter_rows() if row[-2] <= row[-1]]
        times = chunk.select(*self.keys, grid.alias(TIME)).unique()
        if self.chained and times.height > 1:
            times = times.sort(TIME)
            after = pl.col(TIME).shift(-1).over(self.keys) - pl.col(TIME)
            times = times.filter((after >= self.far).fill_null(True))
        return [
            (*key, self.moved(time) + self.near, self.moved(time) + self.far)
            for *key, time in times.iter_rows()
        ]


class Waits:
    """The marks that the groups held by one operator await."""

    def __init__(self, release: Release):
        self.release = release
        self._cells: dict[Hashable, list[Cell]] = {}
        self._marks: dict[Hashable, int] = {}
        self._least: dict[Hashable, int] = {}
        self._order: list[tuple[int, int, Hashable]] = []  # least marks awaited, old ones too
        self._numbers = count()
        self._whole = BEGINNING
        self._changed: set[Hashable] = set()

    def __bool__(self) -> bool:
        return bool(self._least)

    @property
    def least(self) -> dict[Hashable, int]:
        """The least mark that each waiting group awaits."""
        return self._least

    def hold(self, chunk: Chunk) -> None:
        """Add rows that are held."""
        touched: set[Hashable] = set()
        for cell in self.release.cells(chunk):
            self._add(cell[:-2], (cell[-2], cell[-1]))
            touched.add(cell[:-2])
        for key in touched:
            self._update(key)

    def _add(self, key: Hashable, cell: Cell) -> None:
        cells = self._cells.setdefault(key, [])
        at = bisect_left(cells, cell)
        if at < len(cells) and cells[at] == cell:
            return
        if self.release.chained:
            far = self.release.far
            if at < len(cells) and cells[at][0] - cell[0] < far:
                return
            if at and cell[0] - cells[at - 1][0] < far:
                cells[at - 1] = cell
                return
        insort(cells, cell)

    def on_promise(self, port: int, element: Element) -> None:
        """Take a promise into account."""
        awaits, names = self.release.promised
        if port != awaits:
            return
        if isinstance(element, GroupPunctuation):
            if element.attribute == self.release.attribute and set(element.keys) == set(names):
                self._on_groups(element.marks.select(*names, MARK))
        elif isinstance(element, Punctuation) and element.attributes == (self.release.attribute,):
            self._on_all(element.values[0])

    def _on_groups(self, marks: Chunk) -> None:
        for row in marks.iter_rows():
            key, mark = row[:-1], row[-1]
            if key in self._cells:
                self._marks[key] = max(mark, self._marks.get(key, mark))
                self._update(key)

    def _on_all(self, mark: int) -> None:
        self._whole = max(self._whole, mark)
        while self._order and self._order[0][0] <= self._whole:
            least, _, key = heappop(self._order)
            if self._least.get(key) == least:
                self._update(key)

    def end(self, port: int) -> None:
        """Drop all waits for an input that has ended."""
        if port == self.release.promised[0]:
            self._changed |= self._least.keys()
            self._cells, self._marks, self._least, self._order = {}, {}, {}, []

    def _update(self, key: Hashable) -> None:
        """Find the least mark that a group awaits, and drop the group if it awaits none."""
        step, offset = self.release.step, self.release.offset
        cells = self._cells[key]
        mark = max(self._marks.get(key, BEGINNING), self._whole)
        above = (mark - offset) // step + 1 if mark > BEGINNING else BEGINNING
        passed = next((at for at, (_, last) in enumerate(cells) if last >= above), len(cells))
        del cells[:passed]
        least = max(cells[0][0], above) * step + offset if cells else None
        if least == self._least.get(key):
            if least is not None:
                return
        elif least is not None:
            self._least[key] = least
            heappush(self._order, (least, next(self._numbers), key))
        if least is None:
            self._least.pop(key, None)
            del self._cells[key]
            self._marks.pop(key, None)
        self._changed.add(key)

    def changed(self) -> Sequence[tuple[Hashable, int | None]]:
        """Return the groups whose least awaited mark changed since the last call, with that mark.

        The mark is None if a group no longer awaits any.
        """
        changed = [(key, self._least.get(key)) for key in self._changed]
        self._changed = set()
        return changed

    def snapshot(self) -> dict[str, Any]:
        """Return the cells and the marks."""
        return {"cells": self._cells, "marks": self._marks, "whole": self._whole}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._cells = {key: list(cells) for key, cells in saved["cells"].items()}
        self._marks, self._whole = dict(saved["marks"]), saved["whole"]
        for key in list(self._cells):
            self._update(key)
