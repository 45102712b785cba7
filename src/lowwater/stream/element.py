"""Elements, which flow from operator to operator: chunks, punctuation and the end (OOP §3.2, §7).

A punctuation states a promise: *every row still to come satisfies at least one of its bounds*. With
one bound it is linear (``ts >= t``), with several it is joint (``S0.ts >= a or S1.ts >= b``). Its
attribute may be the row number. A group punctuation holds a linear promise for each of many groups,
in columns. All bounds are ticks of the attribute's time domain.
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
"""The attribute with the number of each row from a source; windows of rows progress on it."""

MARK = "__mark"
"""The column of a group punctuation with the mark of each group, in ticks."""

ENDED = "__ended"
"""The attribute of a group punctuation that reports keys of an update stream which were deleted or
have expired; no column has this name. Rows of a key that are older than its mark end there at the
latest. Results of it that left before are no longer current; results that leave later are of new
rows."""

BEGINNING = -(2**62)
"""The mark of an input that has promised nothing."""

END_OF_TIME = 2**62
"""The mark of an input that has ended."""


def kept_end(marks: pl.Expr) -> pl.Expr:
    """Return marks computed from those in the column ``MARK``; groups that have ended keep
    ``END_OF_TIME``."""
    ended = pl.col(MARK) == END_OF_TIME
    return pl.when(ended).then(pl.col(MARK)).otherwise(marks).alias(MARK)


def moved(mark: int, by: int) -> int:
    """Return a mark moved by ``by`` ticks; ``BEGINNING`` and ``END_OF_TIME`` do not move."""
    return mark if mark in (BEGINNING, END_OF_TIME) else mark + by


@dataclass(frozen=True, slots=True)
class Punctuation:
    """A promise: every row to come satisfies ``attribute >= ticks`` for at least one bound."""

    bounds: tuple[tuple[str, int], ...]

    @classmethod
    def linear(cls, attribute: str, ticks: int) -> Punctuation:
        """Return the promise ``attribute >= ticks``."""
        return cls(((attribute, ticks),))

    @classmethod
    def jointly(cls, bounds: Mapping[str, int]) -> Punctuation:
        """Return the promise of at least one of ``bounds``, ordered by attribute."""
        return cls(tuple(sorted(bounds.items())))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of the bounds, in order."""
        return tuple(name for name, _ in self.bounds)

    @property
    def values(self) -> tuple[int, ...]:
        """The bounds in ticks, in the order of the attributes."""
        return tuple(ticks for _, ticks in self.bounds)

    @property
    def is_linear(self) -> bool:
        """True if there is one bound."""
        return len(self.bounds) == 1

    def goes_beyond(self, before: tuple[int, ...] | None) -> bool:
        """Return true if no bound is below that of an earlier promise, and one is above.

        ``before`` is the bounds of the earlier promise on the same attributes, or None.
        """
        if before is None:
            return True
        return self.values != before and all(map(ge, self.values, before))

    def renamed(self, names: dict[str, str]) -> Punctuation | None:
        """Return the same promise with its attributes renamed; None if ``names`` lacks one."""
        if not all(name in names for name, _ in self.bounds):
            return None
        return Punctuation(tuple((names[name], ticks) for name, ticks in self.bounds))


@dataclass(frozen=True, slots=True, eq=False)
class GroupPunctuation:
    """A promise for single groups: no row to come of a group has ``attribute`` below its mark.

    ``marks`` has a row for each group: the key columns, and the column ``MARK``. A group at
    ``END_OF_TIME`` has ended: no row of it comes, and nothing of it need be kept.
    """

    attribute: str
    marks: pl.DataFrame
    before: int = BEGINNING
    """A lower bound on the marks these groups had before, in ticks. A consumer that has acted on
    those marks holds no rows of these groups below it."""

    @property
    def over(self) -> pl.DataFrame:
        """The key columns of the groups that have ended."""
        return self.marks.filter(pl.col(MARK) == END_OF_TIME).drop(MARK)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(name for name in self.marks.columns if name != MARK)


@dataclass(frozen=True, slots=True)
class End:
    """The end of a stream: no more elements come."""


Element: TypeAlias = Chunk | Punctuation | GroupPunctuation | End
