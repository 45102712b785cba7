"""The times on the other side that a row can match, by which a join drops rows (OOP §5.3).

For a time on one side, a reach has the earliest and the latest time on the other side that can
match it. Both rise with the time, so a time slice is judged by its ends.
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
    """A condition on the times of two inputs that bounds how far matching rows are apart."""

    def earliest(self, side: int, time: int) -> int:
        """Return the least time on the other side that a row of ``side`` at ``time`` can match."""

    def latest(self, side: int, time: int) -> int:
        """Return the greatest time on the other side that a row of ``side`` at ``time`` matches."""

    def behind(self, side: int) -> int:
        """Return the most ticks that a row of ``side`` is below a partner."""

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """Return :meth:`earliest` of many times."""

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """Return an expression that is equal for matching rows; None if there is none."""

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """Return the condition on rows of equal :meth:`key`; None if they always match."""

    @property
    def span(self) -> int:
        """The most ticks that matching times are apart."""

    def seen_by(self, rows: int, others: int, spread: int) -> int:
        """Return about how many pairs are compared when rows are matched with others.

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
        """The least partner time."""
        return _clamp(time - (self.before if side == 0 else self.after), time)

    def latest(self, side: int, time: int) -> int:
        """The greatest partner time."""
        return _clamp(time + (self.after if side == 0 else self.before), time)

    def behind(self, side: int) -> int:
        """The end of the band that is ahead of a row."""
        return self.after if side == 0 else self.before

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """The least partner times."""
        return _clamp_all(times - (self.before if side == 0 else self.after), times)

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """The time itself, if the band is an equality."""
        return ticks if self.before == self.after == 0 else None

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """The band."""
        if self.before == self.after == 0:
            return None
        return (right >= left - self.before) & (right <= left + self.after)

    @property
    def span(self) -> int:
        """The wider side of the band."""
        return max(abs(self.before), abs(self.after), 1)

    def seen_by(self, rows: int, others: int, spread: int) -> int:
        """The others are spread over the band and as far as the rows are."""
        return share(rows * others, self.before + self.after + 1, spread)

    def describe(self) -> str:
        """The band in words."""
        return f"-{self.before} .. +{self.after}"


@dataclass(frozen=True, slots=True)
class SameBucket:
    """Both times lie in the same stretch of ``width`` ticks: a tumbling-window join."""

    width: int

    def earliest(self, side: int, time: int) -> int:
        """The start of the bucket."""
        return _clamp(time // self.width * self.width, time)

    def latest(self, side: int, time: int) -> int:
        """The last tick of the bucket."""
        return _clamp(time // self.width * self.width + self.width - 1, time)

    def behind(self, side: int) -> int:
        """From one end of the bucket to the other."""
        return self.width - 1

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """The starts of the buckets."""
        return _clamp_all(times // self.width * self.width, times)

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """The bucket's number."""
        return ticks // self.width

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """Nothing: equal buckets are a match."""
        return None

    @property
    def span(self) -> int:
        """The bucket's width."""
        return self.width

    def seen_by(self, rows: int, others: int, spread: int) -> int:
        """The others are spread over a bucket and as far as the rows are."""
        return share(rows * others, self.width, spread)

    def describe(self) -> str:
        """The bucket in words."""
        return f"same bucket of {self.width}"


def share(pairs: int, length: int, spread: int) -> int:
    """Return the number of pairs that are compared, out of all ``pairs``.

    Each row is compared with others in a stretch of ``length`` ticks; the others are spread over
    ``spread`` ticks more.
    """
    return max(1, pairs * length // (length + spread))


def _clamp(partner: int, time: int) -> int:
    """Return a partner's time; BEGINNING and END_OF_TIME are their own partners."""
    return time if time in (BEGINNING, END_OF_TIME) else partner


def _clamp_all(partners: Ticks, times: Ticks) -> Ticks:
    return np.where((times == BEGINNING) | (times == END_OF_TIME), times, partners)
