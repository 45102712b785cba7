"""Values of which every input had its one row: those met, and need not be kept.

Where no input has a value twice, rows that met have nothing more to wait for. Their values are
remembered until all inputs have passed them: a second row of such a value shows that it is not so.

Invariant: a value is here from when its rows met until it is below all that may still come.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowwater.joins.oblivious.records import Ticks


class Met:
    """A set of values, in order."""

    __slots__ = ("_fresh", "_values")

    def __init__(self) -> None:
        self._values: Ticks = np.empty(0, dtype=np.int64)
        self._fresh: list[Ticks] = []

    def __len__(self) -> int:
        return len(self._values) + sum(map(len, self._fresh))

    @property
    def bytes(self) -> int:
        """Bytes of all values."""
        return len(self) * self._values.itemsize

    def add(self, values: Ticks) -> None:
        """Rows of these values have met."""
        self._fresh.append(values)

    def among(self, ticks: Ticks) -> int:
        """How many of some rows have a value whose rows have met."""
        parts = (self._values, *self._fresh)
        return sum(int(np.isin(ticks, each).sum()) for each in parts if len(each))

    def settle(self, below: int) -> Ticks:
        """Forget values below one; those that came since this was done before."""
        fresh = np.concatenate(self._fresh) if self._fresh else self._values[:0]
        self._fresh = []
        kept = self._values[np.searchsorted(self._values, below) :]
        self._values = np.sort(np.concatenate([kept, fresh[fresh >= below]]))
        return fresh

    def snapshot(self) -> Any:
        """All values, and those that are new."""
        return self._values.tolist(), [each.tolist() for each in self._fresh]

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        self._values = np.array(saved[0], dtype=np.int64)
        self._fresh = [np.array(each, dtype=np.int64) for each in saved[1]]
