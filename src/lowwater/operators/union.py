"""Bag union (OOP A.2.1): rows pass at once; promises hold once every input has made them.

Invariant: the output mark on an attribute is the minimum of the inputs' last marks on it. For a
joint promise the bounds are taken input by input, each the minimum over the inputs: a row that
keeps its own input's promise keeps the weaker one too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Ask, Kernel
from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME, Element, GroupPunctuation, Punctuation
from lowwater.stream.low_water_mark import LowWaterMark


class Union(Kernel):
    """Passes the rows of all inputs on as they come."""

    rule: ClassVar[str] = "the least mark over the inputs"

    def __init__(self, store: ChunkStore, ports: int):
        super().__init__(store, ports)
        self._marks: dict[tuple[str, ...], list[LowWaterMark]] = {}
        self._groups: dict[Any, LowWaterMark] = {}
        self._schemas: dict[tuple[str, tuple[str, ...]], pl.Schema] = {}

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Tell the least mark if it moved."""
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
        return self._told(promise.attributes) if any(moved) else []

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Tell the marks of the groups whose least mark moved."""
        kind = (promise.attribute, promise.keys)
        self._schemas[kind] = promise.marks.schema
        moved = []
        for *key, mark in promise.marks.iter_rows():
            known = self._groups.get((kind, *key))
            if known is None:
                known = self._groups[(kind, *key)] = LowWaterMark(range(self.ports))
                for ended in set(range(self.ports)) - self._open:
                    known.close(ended)
            if known.advance(port, mark):
                moved.append((*key, known.value))
        return self._told_groups(kind, moved)

    def _told_groups(
        self, kind: tuple[str, tuple[str, ...]], moved: list[tuple[Any, ...]]
    ) -> list[Element]:
        if not moved:
            return []
        marks = pl.DataFrame(moved, self._schemas[kind], orient="row")
        return [GroupPunctuation(kind[0], marks)]

    def _told(self, attributes: tuple[str, ...]) -> list[Element]:
        values = tuple(mark.value for mark in self._marks[attributes])
        return [Punctuation(tuple(zip(attributes, values, strict=True)))]

    def closing(self, port: int) -> Sequence[Element]:
        """An input that ended holds nobody back."""
        told: list[Element] = []
        for kind in self._schemas:
            moved = [
                (*key, known.value)
                for (each, *key), known in self._groups.items()
                if each == kind and known.close(port) and known.value < END_OF_TIME
            ]
            told += self._told_groups(kind, moved)
        for attributes, marks in self._marks.items():
            advanced = [mark.close(port) for mark in marks]
            if any(advanced) and self._open:
                told += self._told(attributes)
        return told

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """Every input that is behind must move."""
        marks = self._marks.get((attribute,))
        behind = [port for port in sorted(self._open) if marks is None or marks[0].of(port) < mark]
        return [Ask(port, attribute, mark) for port in behind]

    def jointly_needs(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Ask]:
        """Every input must move."""
        return [Ask.jointly(port, bounds) for port in sorted(self._open)]

    def marks(self) -> dict[str, int]:
        """The last mark of each input."""
        return {
            f"{attributes[0]}[{port}]": mark
            for attributes, marks in self._marks.items()
            if len(attributes) == 1
            for port, mark in marks[0].marks().items()
        }

    def snapshot(self) -> dict[str, Any]:
        """The last marks."""
        tables = {
            attributes: [(mark.marks(), mark.value) for mark in marks]
            for attributes, marks in self._marks.items()
        }
        groups = {key: (mark.marks(), mark.value) for key, mark in self._groups.items()}
        return super().snapshot() | {
            "marks": tables,
            "groups": groups,
            "schemas": dict(self._schemas),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._marks = {
            attributes: [_restored(*state) for state in states]
            for attributes, states in saved["marks"].items()
        }
        self._groups = {key: _restored(*state) for key, state in saved["groups"].items()}
        self._schemas = dict(saved["schemas"])


def _restored(marks: dict[Any, int], value: int) -> LowWaterMark:
    mark = LowWaterMark()
    mark.restore(marks, value)
    return mark
