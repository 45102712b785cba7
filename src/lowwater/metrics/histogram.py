"""A histogram counts durations in logarithmic buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SUB = 8


class Histogram:
    """Durations in logarithmic buckets, eight to a doubling: a quantile is at most an eighth too
    great."""

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0
        self.longest = 0

    def add(self, nanoseconds: int, count: int = 1) -> None:
        """Count ``count`` durations of ``nanoseconds`` each."""
        length = max(0, nanoseconds)
        bucket = length if length < _SUB else _bucket(length)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + count
        self.count += count
        self.total += length * count
        self.longest = max(self.longest, length)

    def add_all(self, nanoseconds: NDArray[np.int64]) -> None:
        """Count many durations at once; equal ones are counted together."""
        if len(nanoseconds) == 1:
            self.add(int(nanoseconds[0]))
            return
        lengths, counts = np.unique(np.maximum(nanoseconds, 0), return_counts=True)
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            self.add(length, count)

    @property
    def mean(self) -> float:
        """The mean in nanoseconds, exact; 0 if nothing was counted."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """The nanoseconds that ``share`` of all durations do not exceed."""
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= share * self.count:
                return min(self.longest, _upper(bucket))
        return self.longest


def _bucket(length: int) -> int:
    power = length.bit_length() - 4
    return _SUB * (power + 1) + (length >> power) - _SUB


def _upper(bucket: int) -> int:
    if bucket < _SUB:
        return bucket
    power, rest = divmod(bucket - _SUB, _SUB)
    return ((rest + _SUB + 1) << power) - 1
