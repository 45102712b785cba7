"""Select and project: one row in, at most one row out, and promises translated.

Progress rule: a filter passes every promise, because dropping rows breaks none. A projection passes
the promises on attributes that it copies, under their new names, and makes promises on columns that
it computes monotonically from progressing ones (OOP §5.3: ``max`` or ``min`` of two timestamps). It
translates each bound of a joint promise to the columns computed from its attribute: shifted,
rounded, or the greatest of it and others.
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
    ENDED,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
    kept_end,
    moved,
)
from lowwater.stream.floor import Floor, raised


class Select(Kernel):
    """Keeps the rows that satisfy a predicate."""

    rule: ClassVar[str] = "promises pass through: dropping rows breaks none"

    def __init__(self, store: ChunkStore, predicate: pl.Expr):
        super().__init__(store)
        self._predicate = predicate

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Return the rows that satisfy the predicate."""
        kept = chunk.filter(self._predicate)
        return [kept] if kept.height else []

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Pass the promise on."""
        return [promise]

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the same promise of the input."""
        return [Request.any_of(0, bounds)]

    def floors(self) -> Sequence[Floor]:
        """Return the floor of the output: columns pass as they are."""
        return [self.floor]


@dataclass(frozen=True, slots=True)
class Derivation:
    """The derivation of a projected column's marks from those of input columns.

    ``sources`` are input columns, each with the ticks that are added to it. With ``how`` "all" the
    column is at least every source (a copy; greatest), with "least" at least the least one (least,
    coalesce). The value is rounded down to a multiple of ``bucket`` ticks; if ``numbered`` it is
    the number of the bucket, not its start. With ``scale`` the column has so many ticks for each of
    its source.
    """

    sources: tuple[tuple[str, int], ...]
    how: Literal["all", "least"] = "all"
    bucket: int = 1
    numbered: bool = False
    scale: int = 1

    @property
    def only(self) -> str | None:
        """The single source; None if there are several."""
        return self.sources[0][0] if len(self.sources) == 1 else None

    def is_greatest(self, columns: Sequence[str]) -> bool:
        """Return true if the column is the greatest of exactly these columns, unchanged."""
        plain = self.how == "all" and self.bucket == self.scale == 1 and not self.numbered
        return plain and set(self.sources) == {(name, 0) for name in columns}

    def rounded(self, mark: int) -> int:
        """Return the mark of the value that follows from one before rounding."""
        if mark in (BEGINNING, END_OF_TIME):
            return mark
        return mark * self.scale // self.bucket * (1 if self.numbered else self.bucket)

    def unrounded(self, mark: int) -> int:
        """Return the least mark before rounding from which ``mark`` follows."""
        scaled = mark * self.bucket if self.numbered else -(-mark // self.bucket) * self.bucket
        return -(-scaled // self.scale)


class Project(Kernel):
    """Computes columns from columns.

    ``derived`` has the derivation of each output column on which promises are made; ``copied`` the
    new name of each input column that is copied. Floors follow from the derivations ``origins``,
    by default those in ``derived``.
    """

    rule: ClassVar[str] = "promises are renamed; monotone columns get promises of their own"

    def __init__(
        self,
        store: ChunkStore,
        expressions: Sequence[pl.Expr],
        derived: Mapping[str, Derivation],
        copied: Mapping[str, str],
        origins: Mapping[str, Derivation] | None = None,
    ):
        super().__init__(store)
        self._expressions = list(expressions)
        self._copied = dict(copied)
        self._constant = not any(each.meta.root_names() for each in self._expressions)
        self._derived = dict(derived)
        self._origins = self._derived if origins is None else dict(origins)
        self._held: dict[str, int] = {}
        self._emitted: dict[str, int] = {}
        self._joint: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._above: dict[str, list[tuple[str, int]]] = {}  # columns that are at least an attribute
        for name, derivation in self._derived.items():
            if derivation.how == "all" or len(derivation.sources) == 1:
                for source, shift in derivation.sources:
                    self._above.setdefault(source, []).append((name, shift))

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Return the computed columns."""
        if self._constant:  # constants only: they need a value for each row
            names = [each.meta.output_name() for each in self._expressions]
            return [chunk.with_columns(self._expressions).select(names)]
        return [chunk.select(self._expressions)]

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the promises on output columns that follow."""
        if not promise.is_linear:
            return self._translate_joint(promise)
        ((attribute, mark),) = promise.bounds
        self._held[attribute] = max(mark, self._held.get(attribute, BEGINNING))
        promises: list[Element] = []
        for name, derivation in self._derived.items():
            if any(source == attribute for source, _ in derivation.sources):
                promises += self._emit(name, self._bound(derivation))
        return promises

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Return the promises on output columns that follow, if the key columns are copied."""
        if not set(promise.keys) <= set(self._copied):
            return []
        marks = promise.marks.rename({key: self._copied[key] for key in promise.keys})
        if promise.attribute == ENDED:
            return [GroupPunctuation(ENDED, marks)]
        promises: list[Element] = []
        for name, derivation in self._derived.items():
            if derivation.only == promise.attribute:
                ((_, shift),) = derivation.sources
                scale = 1 if derivation.numbered else derivation.bucket
                moved = (pl.col(MARK) + shift) * derivation.scale // derivation.bucket * scale
                before = promise.before
                if before > BEGINNING:
                    before = derivation.rounded(before + shift)
                promises.append(GroupPunctuation(name, marks.with_columns(kept_end(moved)), before))
        return promises

    def _bound(self, derivation: Derivation) -> int:
        marks = [moved(self._held.get(name, BEGINNING), by) for name, by in derivation.sources]
        return derivation.rounded(max(marks) if derivation.how == "all" else min(marks))

    def _emit(self, name: str, mark: int) -> list[Element]:
        if mark <= self._emitted.get(name, BEGINNING):
            return []
        self._emitted[name] = mark
        return [Punctuation.linear(name, mark)]

    def _translate_joint(self, promise: Punctuation) -> list[Element]:
        """Return the promises that follow from ``a >= x or b >= y`` for columns made of a and b.

        For example, ``greatest(a, b)`` is at least the lesser of x and y.
        """
        if any(attribute not in self._above for attribute in promise.attributes):
            return []
        promises: list[Element] = []
        for images in product(*(self._above[attribute] for attribute in promise.attributes)):
            bounds: dict[str, int] = {}
            for (name, shift), mark in zip(images, promise.values, strict=True):
                bound = self._derived[name].rounded(moved(mark, shift))
                bounds[name] = min(bound, bounds.get(name, END_OF_TIME))
            if len(bounds) == 1:
                ((name, bound),) = bounds.items()
                promises += self._emit(name, bound)
            else:
                promises += self._emit_joint(Punctuation.jointly(bounds))
        return promises

    def _emit_joint(self, promise: Punctuation) -> list[Element]:
        if not promise.goes_beyond(self._joint.get(promise.attributes)):
            return []
        self._joint[promise.attributes] = promise.values
        return [promise]

    def input_keys(self, port: int, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the columns that were copied under these names; None if one was not copied."""
        before = {out: name for name, out in self._copied.items()}
        return tuple(before[name] for name in names) if set(names) <= set(before) else None

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request marks of the sources of a derived column."""
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
        """Request a joint promise of the sources."""
        needed: dict[str, int] = {}
        for attribute, mark in bounds:
            if derivation := self._derived.get(attribute):
                for source, shift in derivation.sources:
                    further = derivation.unrounded(mark) - shift
                    needed[source] = max(further, needed.get(source, further))
        return [Request.any_of(0, list(needed.items()))] if needed else []

    def floors(self) -> Sequence[Floor]:
        """Return the floors of the single sources of output columns.

        Of ``greatest(a, b)`` a row is below a floor only if both sources are, which no floor can
        state; so columns of several sources have none.
        """
        found: Floor = {}
        for name, ticks in self.floor.items():
            derivation = self._origins.get(name)
            if derivation is not None and derivation.only is not None:
                ((source, shift),) = derivation.sources
                least = ticks if ticks >= END_OF_TIME else derivation.unrounded(ticks) - shift
                found = raised(found, {source: least})
        return [found]

    def snapshot(self) -> dict[str, Any]:
        """Return the marks received and emitted."""
        return super().snapshot() | {
            "held": dict(self._held),
            "emitted": dict(self._emitted),
            "joint": dict(self._joint),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._held, self._emitted = dict(saved["held"]), dict(saved["emitted"])
        self._joint = dict(saved["joint"])
