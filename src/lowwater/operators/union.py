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
from lowwater.stream.element import Element, GroupPunctuation, Punctuation
from lowwater.stream.low_water_mark import LowWaterMark


class Union(Kernel):
    """Passes the rows of all inputs on as they come."""

    rule: ClassVar[str] = "the least mark over the inputs"

    def __init__(self, store: ChunkStore, ports: int):
        super().__init__(store, ports)
        self._marks: dict[tuple[str, ...], list[LowWaterMark]] = {}
        self._groups: dict[Any, LowWaterMark] = {}

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
        moved = []
        for *key, mark in promise.marks.iter_rows():
            group = (promise.attribute, promise.keys, *key)
            known = self._groups.get(group)
            if known is None:
                known = self._groups[group] = LowWaterMark(range(self.ports))
                for ended in set(range(self.ports)) - self._open:
                    known.close(ended)
            if known.advance(port, mark):
                moved.append((*key, known.value))
        if not moved:
            return []
        schema = promise.marks.schema
        return [GroupPunctuation(promise.attribute, pl.DataFrame(moved, schema, orient="row"))]

    def _told(self, attributes: tuple[str, ...]) -> list[Element]:
        values = tuple(mark.value for mark in self._marks[attributes])
        return [Punctuation(tuple(zip(attributes, values, strict=True)))]

    def closing(self, port: int) -> Sequence[Element]:
        """An input that ended holds nobody back."""
        told: list[Element] = []
        for known in self._groups.values():
            known.close(port)
        for attributes, marks in self._marks.items():
            moved = [mark.close(port) for mark in marks]
            if any(moved) and len(self._open) > 0:
                told += self._told(attributes)
        return told

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """Every input that is behind must move."""
        marks = self._marks.get((attribute,))
        behind = [port for port in sorted(self._open) if marks is None or marks[0].of(port) < mark]
        return [Ask(port, attribute, mark) for port in behind]

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
        return super().snapshot() | {"marks": tables, "groups": groups}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._marks = {
            attributes: [_restored(*state) for state in states]
            for attributes, states in saved["marks"].items()
        }
        self._groups = {key: _restored(*state) for key, state in saved["groups"].items()}


def _restored(marks: dict[Any, int], value: int) -> LowWaterMark:
    mark = LowWaterMark()
    mark.restore(marks, value)
    return mark
