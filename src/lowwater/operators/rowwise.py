"""Select, project/map and apply: one row in, at most one row out, promises translated.

Progress rule: a filter keeps every promise, since dropping rows breaks none. A projection keeps
the promises on attributes it passes on, under their new names, and makes promises for columns it
computes monotonically from progressing ones (OOP §5.3: ``max`` or ``min`` of two timestamps). Of a
joint promise every bound is told of what is computed from its attribute: shifted, rounded, or the
greatest of it and others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import polars as pl

from lowwater.operators.kernel import Kernel, Request
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    GONE,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
    moved,
)


class Select(Kernel):
    """Keeps the rows that satisfy a predicate."""

    rule: ClassVar[str] = "promises pass through: dropping rows breaks none"

    def __init__(self, store: ChunkStore, predicate: pl.Expr):
        super().__init__(store)
        self._predicate = predicate

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Pass on the rows that satisfy the predicate."""
        kept = chunk.filter(self._predicate)
        return [kept] if kept.height else []

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """A promise per group survives a filter."""
        return [promise]

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """The same of the input."""
        return [Request.any_of(0, bounds)]


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a projected column progresses: from which inputs, shifted by how many ticks.

    ``all``: every source bounds it (a copy; greatest). ``least``: the least source does
    (least, coalesce). With a ``bucket`` the value is rounded down to a multiple of so many ticks,
    and is the number of the bucket rather than its start if ``numbered``.
    """

    sources: tuple[tuple[str, int], ...]
    how: Literal["all", "least"] = "all"
    bucket: int = 1
    numbered: bool = False

    @property
    def only(self) -> str | None:
        """The one input the column follows; None if there are several."""
        return self.sources[0][0] if len(self.sources) == 1 else None

    def is_greatest(self, columns: Sequence[str]) -> bool:
        """Whether the column is the greatest of exactly these, unchanged."""
        plain = self.how == "all" and self.bucket == 1 and not self.numbered
        return plain and set(self.sources) == {(name, 0) for name in columns}

    def rounded(self, mark: int) -> int:
        """What a mark of the value before rounding says about the value."""
        if mark in (BEGINNING, END_OF_TIME):
            return mark
        return mark // self.bucket * (1 if self.numbered else self.bucket)

    def unrounded(self, mark: int) -> int:
        """The least mark before rounding that lets the value promise ``mark``."""
        return mark * self.bucket if self.numbered else -(-mark // self.bucket) * self.bucket


class Project(Kernel):
    """Computes columns from columns."""

    rule: ClassVar[str] = "promises are renamed; monotone columns get promises of their own"

    def __init__(
        self,
        store: ChunkStore,
        expressions: Sequence[pl.Expr],
        derived: Mapping[str, Derivation],
        copied: Mapping[str, str],
    ):
        super().__init__(store)
        self._expressions = list(expressions)
        self._copied = dict(copied)
        self._constant = not any(each.meta.root_names() for each in self._expressions)
        self._derived = dict(derived)
        self._held: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._joint: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._above: dict[str, list[tuple[str, int]]] = {}  # what is at least an attribute
        for name, derivation in self._derived.items():
            if derivation.how == "all" or len(derivation.sources) == 1:
                for source, shift in derivation.sources:
                    self._above.setdefault(source, []).append((name, shift))

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Compute the columns."""
        if self._constant:  # nothing but constants: one a row, not one in all
            names = [each.meta.output_name() for each in self._expressions]
            return [chunk.with_columns(self._expressions).select(names)]
        return [chunk.select(self._expressions)]

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Tell what the promise means for the output columns."""
        if not promise.is_linear:
            return self._told_jointly(promise)
        ((attribute, mark),) = promise.bounds
        self._held[attribute] = max(mark, self._held.get(attribute, BEGINNING))
        told: list[Element] = []
        for name, derivation in self._derived.items():
            if any(source == attribute for source, _ in derivation.sources):
                told += self._tell(name, self._bound(derivation))
        return told

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """A promise per group survives if its key columns are passed on as they are."""
        if not set(promise.keys) <= set(self._copied):
            return []
        marks = promise.marks.rename({key: self._copied[key] for key in promise.keys})
        if promise.attribute == GONE:
            return [GroupPunctuation(GONE, marks)]
        told: list[Element] = []
        for name, derivation in self._derived.items():
            if derivation.only == promise.attribute:
                ((_, shift),) = derivation.sources
                scale = 1 if derivation.numbered else derivation.bucket
                moved = (pl.col(MARK) + shift) // derivation.bucket * scale
                before = promise.before
                if before > BEGINNING:
                    before = derivation.rounded(before + shift)
                told.append(GroupPunctuation(name, marks.with_columns(moved), before))
        return told

    def _bound(self, derivation: Derivation) -> int:
        marks = [moved(self._held.get(name, BEGINNING), by) for name, by in derivation.sources]
        return derivation.rounded(max(marks) if derivation.how == "all" else min(marks))

    def _tell(self, name: str, mark: int) -> list[Element]:
        if mark <= self._told.get(name, BEGINNING):
            return []
        self._told[name] = mark
        return [Punctuation.linear(name, mark)]

    def _told_jointly(self, promise: Punctuation) -> list[Element]:
        """What ``a >= x or b >= y`` says of the columns computed from a and b.

        Of ``greatest(a, b)`` it says that it is at least the lesser of x and y.
        """
        if any(attribute not in self._above for attribute in promise.attributes):
            return []
        told: list[Element] = []
        for images in product(*(self._above[attribute] for attribute in promise.attributes)):
            bounds: dict[str, int] = {}
            for (name, shift), mark in zip(images, promise.values, strict=True):
                bound = self._derived[name].rounded(moved(mark, shift))
                bounds[name] = min(bound, bounds.get(name, END_OF_TIME))
            if len(bounds) == 1:
                ((name, bound),) = bounds.items()
                told += self._tell(name, bound)
            else:
                told += self._tell_jointly(Punctuation.jointly(bounds))
        return told

    def _tell_jointly(self, promise: Punctuation) -> list[Element]:
        if not promise.goes_beyond(self._joint.get(promise.attributes)):
            return []
        self._joint[promise.attributes] = promise.values
        return [promise]

    def input_keys(self, port: int, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """The columns that were copied under these names."""
        before = {out: name for name, out in self._copied.items()}
        return tuple(before[name] for name in names) if set(names) <= set(before) else None

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Ask for the sources of a derived column."""
        derivation = self._derived.get(attribute)
        if derivation is None:
            return []
        mark = derivation.unrounded(mark)
        if derivation.how == "all" and len(derivation.sources) > 1:
            return [
                Request.any_of(0, [(source, mark - shift) for source, shift in derivation.sources])
            ]
        return [
            Request(0, source, mark - shift)
            for source, shift in derivation.sources
            if self._held.get(source, BEGINNING) < mark - shift
        ]

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Ask for the sources together."""
        wanted: dict[str, int] = {}
        for attribute, mark in bounds:
            if derivation := self._derived.get(attribute):
                for source, shift in derivation.sources:
                    further = derivation.unrounded(mark) - shift
                    wanted[source] = max(further, wanted.get(source, further))
        return [Request.any_of(0, list(wanted.items()))] if wanted else []

    def snapshot(self) -> dict[str, Any]:
        """The marks held and told."""
        return super().snapshot() | {
            "held": dict(self._held),
            "told": dict(self._told),
            "joint": dict(self._joint),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._held, self._told = dict(saved["held"]), dict(saved["told"])
        self._joint = dict(saved["joint"])
