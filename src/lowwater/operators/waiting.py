"""Which marks single groups await: of each group the least that releases something held of it.

An operator holds a row until a promise reaches one of the marks that release it. Where groups are
promised each by itself, one group may be years behind another, so the least mark awaited of all
says nothing of the others. Waits know the least of every group, and which of them have changed.

Invariant: a group's least awaited mark is above all that was promised of the group; what a chunk or
a promise costs follows the groups in it, not those there are.
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
"""The first and the last point of the grid of marks that release a row."""


def _same(time: int) -> int:
    return time


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Which marks of an input release a row: those from ``near`` to ``far`` ticks after its time
    that are ``offset`` more than a multiple of ``step``.
    """

    port: int
    """The input whose rows are held."""
    ticks: pl.Expr
    """The time of a row."""
    keys: tuple[str, ...]
    """The columns of the row that name its group."""
    attribute: str
    """What is to be promised."""
    near: int
    far: int
    step: int = 1
    offset: int = 0
    chained: bool = False
    """Whether a row is held on if a later one of its group comes before the mark that would
    release it."""
    awaits: int | None = None
    """The input that is to promise it; None: the same."""
    names: tuple[str, ...] = ()
    """The columns of that input that name the group, if it is another one."""
    moved: Callable[[int], int] = _same
    """The time of the other input that the row's own stands for."""

    @property
    def promised(self) -> tuple[int, tuple[str, ...]]:
        """The input that is to promise, and its key columns."""
        return (self.port, self.keys) if self.awaits is None else (self.awaits, self.names)

    def cells(self, chunk: Chunk) -> list[tuple[Any, ...]]:
        """The keys of rows with the first and the last mark that release them, each once."""
        grid = self.ticks
        if self.step > 1:  # times between which there is no end of a mark's reach are alike
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
    """What one operator holds of single groups, as the marks they await."""

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
        """The least mark every group awaits that waits for one."""
        return self._least

    def hold(self, chunk: Chunk) -> None:
        """Take note of rows that are held."""
        touched: set[Hashable] = set()
        for cell in self.release.cells(chunk):
            self._add(cell[:-2], (cell[-2], cell[-1]))
            touched.add(cell[:-2])
        for key in touched:
            self._look(key)

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

    def hear(self, port: int, element: Element) -> None:
        """Take note of a promise."""
        awaits, names = self.release.promised
        if port != awaits:
            return
        if isinstance(element, GroupPunctuation):
            if element.attribute == self.release.attribute and set(element.keys) == set(names):
                self._hear_groups(element.marks.select(*names, MARK))
        elif isinstance(element, Punctuation) and element.attributes == (self.release.attribute,):
            self._hear_all(element.values[0])

    def _hear_groups(self, marks: Chunk) -> None:
        for row in marks.iter_rows():
            key, mark = row[:-1], row[-1]
            if key in self._cells:
                self._marks[key] = max(mark, self._marks.get(key, mark))
                self._look(key)

    def _hear_all(self, mark: int) -> None:
        self._whole = max(self._whole, mark)
        while self._order and self._order[0][0] <= self._whole:
            least, _, key = heappop(self._order)
            if self._least.get(key) == least:
                self._look(key)

    def end(self, port: int) -> None:
        """An input has ended: nothing is awaited of it any more."""
        if port == self.release.promised[0]:
            self._changed |= self._least.keys()
            self._cells, self._marks, self._least, self._order = {}, {}, {}, []

    def _look(self, key: Hashable) -> None:
        """See what a group awaits now."""
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
        """The groups that await another mark than when this was last called, and which; None:
        none."""
        told = [(key, self._least.get(key)) for key in self._changed]
        self._changed = set()
        return told

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {"cells": self._cells, "marks": self._marks, "whole": self._whole}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._cells = {key: list(cells) for key, cells in saved["cells"].items()}
        self._marks, self._whole = dict(saved["marks"]), saved["whole"]
        for key in list(self._cells):
            self._look(key)
