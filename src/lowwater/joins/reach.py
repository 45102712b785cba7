"""Which times of the other input a row can meet: the bound that lets a join forget (OOP §5.3).

A reach answers, for a time on one side, the earliest and the latest time on the other side that
can match it. Both are monotone in the time, so whole time slices can be judged by their ends.
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
    """A bounded match between progressing attributes of two inputs."""

    def earliest(self, side: int, time: int) -> int:
        """The least time on the other side that a row of ``side`` at ``time`` can meet."""

    def latest(self, side: int, time: int) -> int:
        """The greatest time on the other side that a row of ``side`` at ``time`` can meet."""

    def behind(self, side: int) -> int:
        """By how many ticks at most a row of ``side`` is below its partner."""

    def earliest_all(self, side: int, times: Ticks) -> Ticks:
        """:meth:`earliest` of many times at once."""

    def key(self, ticks: pl.Expr) -> pl.Expr | None:
        """A value that matching rows share exactly; None if there is none."""

    def check(self, left: pl.Expr, right: pl.Expr) -> pl.Expr | None:
        """What is left to check once :meth:`key` is equal; None if nothing is."""

    @property
    def span(self) -> int:
        """How far apart matching times can be, in ticks."""

    def seen_by(self, rows: int, others: int, spread: int) -> int:
        """About how many pairs are compared when rows meet others in their reach together.

        Each of rows that are spread over so many ticks sees only the others in its own reach.
        """

    def describe(self) -> str:
        """The reach in words, in ticks."""


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
        return _share(rows * others, self.before + self.after + 1, spread)

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
        return _share(rows * others, self.width, spread)

    def describe(self) -> str:
        """The bucket in words."""
        return f"same bucket of {self.width}"


def _share(pairs: int, length: int, spread: int) -> int:
    return max(1, pairs * length // (length + spread))


def _clamp(partner: int, time: int) -> int:
    """Keep the marks that mean 'nothing yet' and 'ended' where they are."""
    return time if time in (BEGINNING, END_OF_TIME) else partner


def _clamp_all(partners: Ticks, times: Ticks) -> Ticks:
    return np.where((times == BEGINNING) | (times == END_OF_TIME), times, partners)
