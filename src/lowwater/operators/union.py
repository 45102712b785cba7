"""Bag union (OOP A.2.1): rows pass at once; a promise passes once every input has made it.

Invariant: the output mark on an attribute is the minimum of the inputs' marks on it. Each bound of
a joint promise is the minimum over the inputs: a row that keeps its own input's promise keeps the
weaker one too. The mark of a group in an input is the greater of its own and that of the whole
input. A group that has ended in all inputs is dropped; so is one that has ended in some, once its
marks in the others are no more than those of the whole inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.kernel import Kernel, Request
from lowwater.state.group_table import GroupTable, Numbers
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Element,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.floor import Floor
from lowwater.stream.low_water_mark import LowWaterMark

PROMISED = "promised"
Kind = tuple[str, tuple[str, ...]]
"""The attribute and the key columns of promises on single groups."""


class Union(Kernel):
    """Passes the rows of all inputs on as they come; ``ports`` is the number of inputs."""

    rule: ClassVar[str] = "the least mark over the inputs"

    def __init__(self, store: ChunkStore, ports: int):
        super().__init__(store, ports)
        self._marks: dict[tuple[str, ...], list[LowWaterMark]] = {}
        self._groups: dict[Kind, GroupTable] = {}

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the promise of the least mark, if it moved."""
        marks = self._marks.get(promise.attributes)
        if marks is None:
            marks = [LowWaterMark(range(self.ports)) for _ in promise.bounds]
            self._marks[promise.attributes] = marks
            for ended in set(range(self.ports)) - self._open:
                for mark in marks:
                    mark.close(ended)
        moved = [
            mark.advance(port, value) for mark, value in zip(marks, promise.values, strict=True)
        ]
        promises = self._promise(promise.attributes) if any(moved) else []
        return [*promises, *self._promise_all_groups(promise.attributes)]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Return the promise of the groups whose least mark moved."""
        kind = (promise.attribute, promise.keys)
        table = self._groups.get(kind)
        if table is None:
            table = self._groups[kind] = self._table(len(self._groups))
        places = table.admit(promise.marks.select(promise.keys))
        held, marks = table.get(str(port), places), promise.marks[MARK].to_numpy()
        moved = marks > held
        table.put(str(port), places[moved], marks[moved])
        return self._promise_groups(kind, places[moved])

    def _table(self, number: int) -> GroupTable:
        columns = dict.fromkeys([*map(str, range(self.ports)), PROMISED], BEGINNING)
        return GroupTable(columns, self.store, f"groups{number}")

    def _promise_groups(self, kind: Kind, places: Numbers) -> list[Element]:
        """Return the promise of groups whose mark is above their last and that of all rows."""
        table, whole = self._groups[kind], self._marks.get(kind[:1])
        least = np.full(len(places), END_OF_TIME, np.int64)
        for port in self._open:
            mark = whole[0].of(port) if whole else BEGINNING
            np.minimum(least, np.maximum(table.get(str(port), places), mark), out=least)
        ended = least == END_OF_TIME
        before = np.maximum(table.get(PROMISED, places), whole[0].value if whole else BEGINNING)
        moved = (least > before) & bool(self._open)
        if not moved.any():
            return []
        table.put(PROMISED, places[moved], least[moved])
        marks = table.keys(places[moved]).with_columns(pl.Series(MARK, least[moved]))
        table.remove(table.keys(places[ended]))
        return [GroupPunctuation(kind[0], marks, int(before[moved].min()))]

    def _promise_all_groups(self, attributes: tuple[str, ...]) -> list[Element]:
        promises: list[Element] = []
        for kind, table in self._groups.items():
            if kind[:1] == attributes:
                table.load()
                every, fading = np.arange(len(table)), self._fading(kind, table)
                whole = self._marks.get(attributes)
                caught_up = table.column(PROMISED) <= (whole[0].value if whole else BEGINNING)
                passed = fading & caught_up
                gone = table.keys(every[passed])
                promises += self._promise_groups(kind, every[~fading])
                table.remove(gone)
        return promises

    def _fading(self, kind: Kind, table: GroupTable) -> NDArray[np.bool_]:
        """Return which groups have ended in an input, and are known in the others no better than
        the whole input: nothing more is promised of them, and they are dropped when the promises on
        the whole have caught up."""
        whole = self._marks.get(kind[:1])
        fading, ended = np.zeros(len(table), bool), np.ones(len(table), bool)
        if whole is None:
            return fading
        plain = ended.copy()
        for port in self._open:
            held = table.column(str(port))
            fading |= held == END_OF_TIME
            ended &= np.maximum(held, whole[0].of(port)) == END_OF_TIME
            plain &= (held == END_OF_TIME) | (held <= whole[0].of(port))
        return fading & plain & ~ended

    def _promise(self, attributes: tuple[str, ...]) -> list[Element]:
        values = tuple(mark.value for mark in self._marks[attributes])
        return [Punctuation(tuple(zip(attributes, values, strict=True)))]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the promises that an input held back until it ended."""
        promises: list[Element] = []
        for attributes, marks in self._marks.items():
            advanced = [mark.close(port) for mark in marks]
            if any(advanced) and self._open:
                promises += self._promise(attributes)
        for attribute in dict.fromkeys(attribute for attribute, _ in self._groups):
            promises += self._promise_all_groups((attribute,))
        if not self._open:
            for table in self._groups.values():
                table.clear()
        return promises

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark of every input that is below it."""
        marks = self._marks.get((attribute,))
        behind = [port for port in sorted(self._open) if marks is None or marks[0].of(port) < mark]
        return [Request(port, attribute, mark) for port in behind]

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the bounds of every open input."""
        return [Request.any_of(port, bounds) for port in sorted(self._open)]

    def floors(self) -> Sequence[Floor]:
        """Return the floor of the output for every input."""
        return [self.floor] * self.ports

    def marks(self) -> dict[str, int]:
        """Return the mark of each input."""
        return {
            f"{attributes[0]}[{port}]": mark
            for attributes, marks in self._marks.items()
            if len(attributes) == 1
            for port, mark in marks[0].marks().items()
        }

    def settle(self) -> None:
        """Write the marks of groups that moved to the store."""
        for table in self._groups.values():
            table.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the marks of all inputs."""
        tables = {
            attributes: [(mark.marks(), mark.value) for mark in marks]
            for attributes, marks in self._marks.items()
        }
        groups = {kind: table.snapshot() for kind, table in self._groups.items()}
        return super().snapshot() | {"marks": tables, "groups": groups}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._marks = {
            attributes: [_restored(*state) for state in states]
            for attributes, states in saved["marks"].items()
        }
        self._groups = {kind: self._table(at) for at, kind in enumerate(saved["groups"])}
        for kind, table in self._groups.items():
            table.restore(saved["groups"][kind])


def _restored(marks: dict[Any, int], value: int) -> LowWaterMark:
    mark = LowWaterMark()
    mark.restore(marks, value)
    return mark
