"""The arithmetic of windows that move with every row: sums, extremes and exact sums of floats.

Nothing here keeps state. *Instants* are the moments at which something happens to a group, sorted
by group and time; a *level* is a number as it stands after an instant.

A sum of floats is kept as whole numbers: a float is a whole number times a power of two, cut into
digits of 32 bits at fixed powers. Digits are added and taken away as integers, and what they say is
rounded to a float when it is shown. So it does not drift, whatever comes and goes, and does not
depend on the order in which it came: it is the exact sum, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.stream.element import Chunk

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NUMBER = "__number"
ALL = "__all"
"""The key of the one group there is if rows are not grouped."""
DIGIT = 32
"""Bits of a digit."""
_MASK = (1 << DIGIT) - 1
_MANTISSA = 53


def numbered(frames: Sequence[Chunk], keys: Sequence[str]) -> tuple[Chunk, list[Ints]]:
    """The different keys in some frames, and for each row of each frame the number of its key."""
    groups = pl.concat([each.select(keys) for each in frames]).unique(maintain_order=True)
    return groups, [numbers(each, groups) for each in frames]


def numbers(rows: Chunk, groups: Chunk) -> Ints:
    """The number of each row's key among groups; -1 for those that are not among them."""
    keys = groups.columns
    if keys == [ALL]:
        return np.zeros(rows.height, np.int64)
    joined = rows.select(keys).join(
        groups.with_row_index(NUMBER), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined[NUMBER].cast(pl.Int64).fill_null(-1).to_numpy()


@dataclass(frozen=True)
class Instants:
    """Moments of groups, sorted by the number of the group and by time."""

    groups: Chunk
    """The keys of the groups, by number."""
    group: Ints
    times: Ints
    firsts: Ints
    """Where each group begins."""

    @classmethod
    def of(
        cls, events: Sequence[Chunk], keys: Sequence[str], time: str
    ) -> tuple[Instants, list[Ints]]:
        """The moments of some events, and for each row of each frame the place of its moment."""
        groups, found = numbered(events, keys)
        group = np.concatenate(found)
        times = np.concatenate([each[time].to_numpy() for each in events])
        order = np.lexsort((times, group))
        group, times = group[order], times[order]
        new = np.ones(len(order), bool)
        new[1:] = (group[1:] != group[:-1]) | (times[1:] != times[:-1])
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(new) - 1
        group, times = group[new], times[new]
        firsts = np.searchsorted(group, np.arange(groups.height))
        cuts = np.cumsum([each.height for each in events])[:-1]
        return cls(groups, group, times, firsts), np.split(places, cuts)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def lasts(self) -> Ints:
        """The last instant of each group."""
        return np.append(self.firsts[1:], len(self)) - 1

    def running(self, deltas: Ints, base: Ints) -> Ints:
        """Running sums within groups, from a base for each."""
        total = np.cumsum(deltas, axis=0)
        before = total[self.firsts] - deltas[self.firsts]
        running: Ints = total - before[self.group] + base[self.group]
        return running


# ---- extremes --------------------------------------------------------------------------------


class Ranked:
    """Values of any type as whole numbers: the better one is the higher one; null is 0."""

    def __init__(self, values: pl.Series, greatest: bool):
        self._values = values
        ranks = values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        self.most = int(ranks.max(initial=0))
        self.codes: Ints = ranks if greatest else np.where(ranks > 0, self.most + 1 - ranks, 0)
        self._where = np.zeros(self.most + 1, np.int64)
        self._where[self.codes] = np.arange(len(values))

    def values(self, codes: Ints) -> pl.Series:
        """The values some numbers stand for."""
        if not len(self._values):
            return self._values.clear(len(codes))
        found = self._values.gather(self._where[codes])
        return found.to_frame().select(pl.when(pl.Series(codes > 0)).then(pl.first())).to_series()


def best_between(codes: Ints, first: Ints, last: Ints) -> Ints:
    """The highest code in each stretch ``first <= place < last``; 0 if it is empty.

    Stretches are covered by two overlapping ones whose length is a power of two.
    """
    best = np.zeros(len(first), np.int64)
    lengths = last - first
    level = np.frexp(np.maximum(lengths, 1).astype(np.float64))[1] - 1
    table, width = codes, 1
    for power in range(int(level.max(initial=-1)) + 1):
        at = np.flatnonzero((level == power) & (lengths > 0))
        best[at] = np.maximum(table[first[at]], table[last[at] - width])
        if len(table) > width:
            table = np.maximum(table[:-width], table[width:])
        width *= 2
    return best


def stretches(group: Ints, times: Ints, instants: Instants, range_: int) -> tuple[Ints, Ints]:
    """Which of the rows, sorted by group and time, are in the window at each instant."""
    moments = np.concatenate([times, instants.times, instants.times - range_])
    known, ranks = np.unique(moments, return_inverse=True)
    rows, ends, starts = np.split(ranks, [len(times), len(times) + len(instants)])
    scale = len(known)
    keys = group * scale + rows
    above = instants.group * scale
    first = np.searchsorted(keys, above + starts, side="right")
    return first, np.searchsorted(keys, above + ends, side="right")


def best_after(codes: Ints, group: Ints, most: int) -> tuple[Ints, Ints]:
    """Of rows sorted by group and time, the best code of a group from each on, and after each."""
    back = np.arange(len(codes))[::-1]
    lift = (int(group.max(initial=0)) - group) * (most + 1)
    highest: Ints = np.maximum.accumulate((codes + lift)[back])[back] - lift
    later = np.zeros(len(codes), np.int64)
    later[:-1] = np.where(group[1:] == group[:-1], highest[1:], 0)
    return highest, later


# ---- exact sums of floats ----------------------------------------------------------------------


def digits(values: Floats) -> tuple[Ints, int]:
    """Finite floats as rows of signed digits, and the place of the first digit.

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
    """The same without columns of zeros at either end; one column at least."""
    used = np.flatnonzero(table.any(axis=0))
    if not len(used):
        return table[:, :1], 0
    return table[:, used[0] : used[-1] + 1], low + int(used[0])


def aligned(table: Ints, low: int, first: int, width: int) -> Ints:
    """Digits in so many columns from a place on."""
    wide = np.zeros((len(table), width), np.int64)
    wide[:, low - first : low - first + table.shape[1]] = table
    return wide


def rounded(table: Ints, low: int) -> Floats:
    """The nearest float of each row of digits, of two the even one."""
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
    """Digits from 0 up, and what is left above the highest; it is below 0 if the number is."""
    whole = np.empty_like(table)
    carry = np.zeros(len(table), np.int64)
    for at in range(table.shape[1]):
        total = table[:, at] + carry
        whole[:, at] = total & _MASK
        carry = total >> DIGIT
    return whole, carry
