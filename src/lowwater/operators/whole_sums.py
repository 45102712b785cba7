"""Sums of 64-bit numbers that are known exactly, though they are kept in 64 bits.

A sum is kept as its low 64 bits and as how often it *wrapped*: it is ``low + wraps * 2**64``. Where
no sum of the numbers at hand can leave 64 bits, as their least and greatest tell, sums are plain.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_HALF, _WHOLE = 1 << 32, 1 << 64
_MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Small:
    """Whether no sum of some partials can leave 64 bits."""

    low: str
    wraps: str

    def __call__(self, partials: pl.DataFrame) -> bool:
        """Look at the least and the greatest of them."""
        if not partials.height:
            return True
        lows, wraps = partials[self.low], partials[self.wraps]
        if wraps.min() != 0 or wraps.max() != 0:
            return False
        return is_small(lows)


def is_small(numbers: pl.Series) -> bool:
    """Whether no sum of some of these numbers can leave 64 bits."""
    least, most = numbers.min(), numbers.max()
    if least is None or most is None:
        return True
    assert isinstance(least, int)
    assert isinstance(most, int)
    return max(-least, most) * len(numbers) <= _MOST


def merged(low: str, wraps: str) -> tuple[pl.Expr, pl.Expr]:
    """The sum of many sums: fewer than 2**31 of them."""
    value = pl.col(low)
    upper = (value // _HALF).sum() + (value % _HALF).sum() // _HALF
    times = (upper - value.sum() // _HALF) // _HALF
    more = pl.col(wraps).cast(pl.Int64).sum() + times
    return value.sum(), more.cast(pl.Int32).alias(wraps)


def as_double(low: str, wraps: str) -> pl.Expr:
    """A sum, however large it is."""
    return pl.col(low).cast(pl.Float64) + pl.col(wraps).cast(pl.Float64) * float(_WHOLE)


# ---- sums that numbers leave again ---------------------------------------------------------------


def above(value: pl.Expr) -> pl.Expr:
    """The upper half of a number: without its low 32 bits, divided by 2**32."""
    return value // _HALF


def outside(low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Whether a sum does not fit, by its low bits and the sum of the upper halves."""
    carried = low // _HALF - high
    return (carried < 0) | (carried >= _HALF)
