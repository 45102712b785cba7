"""Exact sums of 64-bit integers and of floats, in columns of 64 bits.

A sum of integers has two columns: its low 64 bits, and the number of times it *wrapped*. It is
``low + wraps * 2**64``. If the least and the greatest of some numbers show that no sum of them can
leave 64 bits, a plain sum is taken.

A float is an integer times a power of two, so it is written as a row of signed digits of 32 bits.
Digits are added and subtracted exactly; only the sum is rounded to a float.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_HALF, _WHOLE = 1 << 32, 1 << 64
_MOST = (1 << 63) - 1
DIGIT = 32
"""Bits of a digit."""
_MASK = (1 << DIGIT) - 1
_MANTISSA = 53


@dataclass(frozen=True)
class SmallSums:
    """A test of partials: true if no sum of them can leave 64 bits.

    ``low`` and ``wraps`` are the names of the two columns of the sum.
    """

    low: str
    wraps: str

    def __call__(self, partials: pl.DataFrame) -> bool:
        """Return True if no sum of the partials can leave 64 bits."""
        if not partials.height:
            return True
        lows, wraps = partials[self.low], partials[self.wraps]
        if wraps.min() != 0 or wraps.max() != 0:
            return False
        return is_small(lows)


def is_small(numbers: pl.Series) -> bool:
    """Return true if no sum of any of these numbers can leave 64 bits."""
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


# ---- sums that numbers are subtracted from -----------------------------------------------------


def upper_half(value: pl.Expr) -> pl.Expr:
    """Return the upper half of a number: the number divided by 2**32, rounded down."""
    return value // _HALF


def overflows(low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Return the condition that a sum leaves 64 bits.

    ``low`` is the low 64 bits of the sum, ``high`` the sum of the upper halves of the numbers.
    """
    carried = low // _HALF - high
    return (carried < 0) | (carried >= _HALF)


# ---- digits of floats --------------------------------------------------------------------------


def digits(values: Floats) -> tuple[Ints, int]:
    """Return finite floats as rows of signed digits, and the place of the first digit.

    A value is the sum of ``digit * 2 ** (32 * place)``.
    """
    fraction, exponent = np.frexp(values)
    whole = (fraction * 2.0**_MANTISSA).astype(np.int64)
    shift = np.where(whole == 0, 0, exponent.astype(np.int64) - _MANTISSA)
    sign, size = np.sign(whole), np.abs(whole).astype(np.uint64)
    place = shift // DIGIT
    up = (shift - place * DIGIT).astype(np.uint64)
    mask, width = np.uint64(_MASK), np.uint64(DIGIT)
    high = size >> (width - up)
    parts = ((size << up) & mask, high & mask, high >> width)
    low = int(place.min(initial=0))
    table = np.zeros((len(values), int(place.max(initial=0)) - low + len(parts)), np.int64)
    rows = np.arange(len(values))
    for at, part in enumerate(parts):
        table[rows, place - low + at] = part.astype(np.int64) * sign
    return _trimmed(table, low)


def _trimmed(table: Ints, low: int) -> tuple[Ints, int]:
    """Return digits without the columns of zeros at either end; at least one column is left."""
    used = np.flatnonzero(table.any(axis=0))
    if not len(used):
        return table[:, :1], 0
    return table[:, used[0] : used[-1] + 1], low + int(used[0])


def aligned(table: Ints, low: int, first: int, width: int) -> Ints:
    """Return digits in ``width`` columns, of which the first has the place ``first``."""
    wide = np.zeros((len(table), width), np.int64)
    wide[:, low - first : low - first + table.shape[1]] = table
    return wide


def rounded(table: Ints, low: int) -> Floats:
    """Return the nearest float of each row of digits; of two equally near, the even one."""
    whole, carry = _carried(table)
    sign = np.where(carry < 0, -1, 1)
    if (sign < 0).any():
        whole, carry = _carried(table * sign[:, None])
    # Two zeros below and the carry above: every row has three digits from its highest on.
    zeros = np.zeros((len(table), 2), np.int64)
    tops = np.stack([carry & _MASK, carry >> DIGIT], axis=1)
    wide = np.concatenate([zeros, whole, tops], axis=1).astype(np.uint64)
    used = wide != 0
    top = np.maximum(wide.shape[1] - 1 - used[:, ::-1].argmax(axis=1), 2)
    rows, width = np.arange(len(wide)), np.uint64(DIGIT)
    one, two, three = wide[rows, top], wide[rows, top - 1], wide[rows, top - 2]
    up = DIGIT - np.frexp(one.astype(np.float64))[1].astype(np.int64)
    left, right = up.astype(np.uint64), width - up.astype(np.uint64)
    word = (one << (width + left)) | (two << left) | (three >> right)
    rest = (three & ((np.uint64(1) << right) - np.uint64(1))) != 0
    rest |= np.cumsum(used, axis=1)[rows, top - 2] > used[rows, top - 2]
    word |= rest.astype(np.uint64)
    scale = DIGIT * (top - 2 - 1 + low) - up
    with np.errstate(over="ignore", under="ignore"):
        return np.where(one == 0, 0.0, np.ldexp(word.astype(np.float64), scale) * sign)


def _carried(table: Ints) -> tuple[Ints, Ints]:
    """Return the digits without sign, and the carry beyond the highest digit.

    The carry is below 0 exactly if the number is.
    """
    whole = np.empty_like(table)
    carry = np.zeros(len(table), np.int64)
    for at in range(table.shape[1]):
        total = table[:, at] + carry
        whole[:, at] = total & _MASK
        carry = total >> DIGIT
    return whole, carry
