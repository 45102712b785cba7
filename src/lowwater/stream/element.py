"""What flows along an arc: a chunk of rows, a promise about future rows, or the end.

A punctuation (OOP §3.2, §7, A.1.1) is a promise: *every row still to come satisfies at least one
of its bounds*. One bound makes it linear (``ts >= t``), several make it joint (``S0.ts >= a or
S1.ts >= b``), the sequence-number attribute makes it a promise on row numbers, and a group
punctuation holds one linear promise per group key, kept in columns because groups may be many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import ge
from typing import TypeAlias

import polars as pl

Chunk: TypeAlias = pl.DataFrame
"""Rows, in arrival order. A chunk may hold one row."""

SEQUENCE = "__seq"
"""The attribute that numbers the rows a source let in; row-count windows progress on it."""

MARK = "__mark"
"""The column of a group punctuation that holds each group's promised bound, in ticks."""

GONE = "__gone"
"""The attribute, of no column, of a group punctuation by which keys of an update stream are
deleted: each has ended at its mark, and no more rows below that come."""

BEGINNING = -(2**62)
"""The mark of an input that has promised nothing."""

END_OF_TIME = 2**62
"""The mark of an input that has ended."""


def moved(mark: int, by: int) -> int:
    """A mark so many ticks further; 'nothing yet' and 'ended' stay what they are."""
    return mark if mark in (BEGINNING, END_OF_TIME) else mark + by


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Every future row satisfies ``attribute >= ticks`` for at least one of the bounds."""

    bounds: tuple[tuple[str, int], ...]

    @classmethod
    def linear(cls, attribute: str, ticks: int) -> Punctuation:
        """Promise ``attribute >= ticks`` for all future rows."""
        return cls(((attribute, ticks),))

    @classmethod
    def jointly(cls, bounds: Mapping[str, int]) -> Punctuation:
        """Promise at least one of the bounds; what speaks of the same attributes looks the same."""
        return cls(tuple(sorted(bounds.items())))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes this promise speaks of, in order."""
        return tuple(name for name, _ in self.bounds)

    @property
    def values(self) -> tuple[int, ...]:
        """The bounds in ticks, in the order of the attributes."""
        return tuple(ticks for _, ticks in self.bounds)

    @property
    def is_linear(self) -> bool:
        """Whether this is a promise on one attribute."""
        return len(self.bounds) == 1

    def goes_beyond(self, before: tuple[int, ...] | None) -> bool:
        """Whether this says more than an earlier promise on the same attributes, and no less."""
        if before is None:
            return True
        return self.values != before and all(map(ge, self.values, before))

    def renamed(self, names: dict[str, str]) -> Punctuation | None:
        """The same promise under new attribute names; None if an attribute is gone."""
        if not all(name in names for name, _ in self.bounds):
            return None
        return Punctuation(tuple((names[name], ticks) for name, ticks in self.bounds))


@dataclass(frozen=True, slots=True, eq=False)
class GroupPunctuation:
    """For each row of ``marks``: future rows with these key values have ``attribute >= mark``."""

    attribute: str
    marks: pl.DataFrame
    before: int = BEGINNING
    """No mark of these groups was below this before: who acted on those has nothing below left."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns that name a group."""
        return tuple(name for name in self.marks.columns if name != MARK)


@dataclass(frozen=True, slots=True)
class End:
    """Nothing more will come."""


Element: TypeAlias = Chunk | Punctuation | GroupPunctuation | End
