"""Exact sums of 64-bit integers, in columns of 64 bits.

A sum has two columns: its low 64 bits, and the number of times it *wrapped*. It is
``low + wraps * 2**64``. If the least and the greatest of some numbers show that no sum of them can
leave 64 bits, a plain sum is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_HALF, _WHOLE = 1 << 32, 1 << 64
_MOST = (1 << 63) - 1


@dataclass(frozen=True)
class SmallSums:
    """A test of partials: true if no sum of them can leave 64 bits.

    ``low`` and ``wraps`` are the names of the two columns of the sum.
    """

    low: str
    wraps: str

    def __call__(self, partials: pl.DataFrame) -> bool:
        """Test partials by the least and the greatest of them."""
        if not partials.height:
            return True
        lows, wraps = partials[self.low], partials[self.wraps]
        if wraps.min() != 0 or wraps.max() != 0:
            return False
        return is_small(lows)


def is_small(numbers: pl.Series) -> bool:
    """True if no sum of any of these numbers can leave 64 bits."""
    least, most = numbers.min(), numbers.max()
    if least is None or most is None:
        return True
    assert isinstance(least, int)
    assert isinstance(most, int)
    return max(-least, most) * len(numbers) <= _MOST


def merged_sum(low: str, wraps: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the two columns of the sum of fewer than 2**31 sums."""
    value = pl.col(low)
    upper = (value // _HALF).sum() + (value % _HALF).sum() // _HALF
    times = (upper - value.sum() // _HALF) // _HALF
    more = pl.col(wraps).cast(pl.Int64).sum() + times
    return value.sum(), more.cast(pl.Int32).alias(wraps)


def as_double(low: str, wraps: str) -> pl.Expr:
    """Return a sum of any size as a DOUBLE."""
    return pl.col(low).cast(pl.Float64) + pl.col(wraps).cast(pl.Float64) * float(_WHOLE)


# ---- sums that numbers are taken from ------------------------------------------------------------


def above(value: pl.Expr) -> pl.Expr:
    """Return the upper half of a number: it divided by 2**32, rounded down."""
    return value // _HALF


def outside(low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Return where a sum leaves 64 bits, by its low bits and the sum of the upper halves."""
    carried = low // _HALF - high
    return (carried < 0) | (carried >= _HALF)
