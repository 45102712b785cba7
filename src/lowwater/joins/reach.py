"""Reaches: the times of the other side that a row can match; joins drop rows by them (OOP §5.3).

For a time on one side, a reach has the earliest and the latest time on the other side that can
match it. Both rise with the time, so the reach of a time slice follows from its ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING, END_OF_TIME

Ticks = NDArray[np.int64]


class Reach(Protocol):
    """A condition on the times of two inputs that bounds the distance of matching rows."""

    def earliest(self, side: int, time: int) -> int:
        """Return the least time on the other side that a row of ``side`` at ``time`` can match."""

    def latest(self, side: int, time: int) -> int:
        """Return the greatest time on the other side that a row of ``side`` at ``time`` matches."""

    def behind(self, side: int) -> int:
        """Return the most ticks by which a row of ``side`` is below a row that it matches."""

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """Return :meth:`earliest` for each of many times."""

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """Return an expression that is equal for matching rows; None if there is none."""

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """Return the condition on rows of equal :meth:`key`; None if all such rows match."""

    @property
    def span(self) -> int:
        """The most ticks that matching times are apart."""

    def comparisons(self, rows: int, others: int, spread: int) -> int:
        """Return the approximate number of pairs compared when ``rows`` rows meet ``others`` rows.

        The rows are spread over ``spread`` ticks; each is compared with the others in its reach.
        """

    def describe(self) -> str:
        """Return the reach in words, in ticks."""


@dataclass(frozen=True, slots=True)
class Band:
    """``left - before <= right <= left + after``; equality is the band (0, 0)."""

    before: int
    after: int

    def earliest(self, side: int, time: int) -> int:
        """Return the time at the near end of the band."""
        return _clamp(time - (self.before if side == 0 else self.after), time)

    def latest(self, side: int, time: int) -> int:
        """Return the time at the far end of the band."""
        return _clamp(time + (self.after if side == 0 else self.before), time)

    def behind(self, side: int) -> int:
        """Return the length of the band ahead of a row, in ticks."""
        return self.after if side == 0 else self.before

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """Return the times at the near ends of the bands."""
        return _clamp_all(times - (self.before if side == 0 else self.after), times)

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """Return the time itself if the band is an equality, else None."""
        return ticks if self.before == self.after == 0 else None

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """Return the condition that the right time is in the band of the left one."""
        if self.before == self.after == 0:
            return None
        return (right >= left - self.before) & (right <= left + self.after)

    @property
    def span(self) -> int:
        """The wider side of the band."""
        return max(abs(self.before), abs(self.after), 1)

    def comparisons(self, rows: int, others: int, spread: int) -> int:
        """Return the pairs in the bands; the others fill the band and the spread of the rows."""
        return compared_pairs(rows * others, self.before + self.after + 1, spread)

    def describe(self) -> str:
        """Return the band in words, in ticks."""
        return f"-{self.before} .. +{self.after}"


@dataclass(frozen=True, slots=True)
class SameBucket:
    """Both times lie in one bucket of ``width`` ticks: a tumbling-window join."""

    width: int

    def earliest(self, side: int, time: int) -> int:
        """Return the first tick of the bucket."""
        return _clamp(time // self.width * self.width, time)

    def latest(self, side: int, time: int) -> int:
        """Return the last tick of the bucket."""
        return _clamp(time // self.width * self.width + self.width - 1, time)

    def behind(self, side: int) -> int:
        """Return the distance between the first and the last tick of a bucket."""
        return self.width - 1

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """Return the first ticks of the buckets."""
        return _clamp_all(times // self.width * self.width, times)

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """Return the number of the bucket."""
        return ticks // self.width

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """Return None: times of one bucket always match."""
        return None

    @property
    def span(self) -> int:
        """The bucket's width."""
        return self.width

    def comparisons(self, rows: int, others: int, spread: int) -> int:
        """Return the pairs in one bucket; the others fill a bucket and the spread of the rows."""
        return compared_pairs(rows * others, self.width, spread)

    def describe(self) -> str:
        """Return the bucket in words, in ticks."""
        return f"same bucket of {self.width}"


def compared_pairs(pairs: int, length: int, spread: int) -> int:
    """Return the number of pairs that are compared, out of all ``pairs``; at least 1.

    Each row is compared with others in a stretch of ``length`` ticks, 0 or less if the band is
    empty; the others are spread over ``spread`` ticks more.
    """
    return max(1, pairs * length // (length + spread)) if length > 0 else 1


def _clamp(partner: int, time: int) -> int:
    """Return a partner's time; BEGINNING and END_OF_TIME are their own partners."""
    return time if time in (BEGINNING, END_OF_TIME) else partner


def _clamp_all(partners: Ticks, times: Ticks) -> Ticks:
    return np.where((times == BEGINNING) | (times == END_OF_TIME), times, partners)
