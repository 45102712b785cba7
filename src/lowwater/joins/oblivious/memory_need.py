"""The memory that a window-oblivious join needs, and the accuracy to be expected with less.

The number of rows follows from the model (``memory_model``, WO-Join §3), their bytes from the size
of a row. It is an upper bound.

A join that gets less than it needs drops the rows below a value before all of their matches have
come. Let a row with value ``v`` come ``a`` seconds after the foremost row that could have this
value: by the delay of its input and its own displacement. If rows are dropped ``w`` seconds after
that row, the join holds ``rate * E[max(0, w - a)]`` rows of an input, and a result is found if the
last of its rows comes in time, ``a <= w``. So the memory gives ``w``, and ``w`` gives the share of
results that is found. (``E`` is the mean over all results.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from lowwater.joins.oblivious.memory_model import FITS, MemoryNeeds
from lowwater.joins.oblivious.options import SORTING_MODES, SPILLING_MODES, ReliefMode
from lowwater.stream.size import spell_bytes

POINTS = 512
"""Number of results that are looked at, spread evenly over all displacements of their rows."""
BISECTIONS = 30
QUANTILES = 33
"""Number of quantiles by which a measured distribution of displacements is described."""
Shape = tuple[float, ...]
"""Displacements at evenly spaced quantiles, as parts of the scrambling factor, ascending."""
UNIFORM: Shape = (0.0, 1.0)
"""Displacements that are spread evenly up to the scrambling factor."""
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


@dataclass(frozen=True, slots=True)
class JoinNeed:
    """The memory that a join needs, by its inputs' disorder, lag, multiplicity and rate."""

    model: MemoryNeeds
    row_bytes: tuple[float, ...]
    """Bytes of a row of each input."""
    modes: tuple[ReliefMode, ...]
    """The modes that the join may take."""
    asked: float
    """The share of results that should be found."""
    read_ahead: int = 0
    """Rows of an input that are read from disk before they are due."""
    shapes: tuple[Shape, ...] = ()
    """The distribution of displacements of each input; empty: :data:`UNIFORM`."""
    certain: bool = True
    """True if the disorder is declared, or measured from enough rows to judge a query by it."""
    unique: bool = False
    """True if rows leave when they have matched, because no value comes twice."""
    most: int | None = None
    """The most bytes that the join may take by its own option; None for no limit."""

    def of(self, mode: ReliefMode) -> int:
        """Return the bytes in a mode, with the room that the choice of the mode leaves free."""
        rows = (self.model.kept(port, mode, self.read_ahead) for port in range(len(self.row_bytes)))
        size = ceil(sum(n * width for n, width in zip(rows, self.row_bytes, strict=True)) / FITS)
        return size if self.most is None else min(size, self.most)

    @property
    def full(self) -> int:
        """Bytes to keep all rows in memory, or as many as the only mode allows."""
        return self.of(self.modes[0])

    @property
    def sparing(self) -> ReliefMode:
        """The mode that takes least."""
        return min(self.modes, key=self._least_of)

    @property
    def least(self) -> int:
        """Bytes with which the accuracy can be kept, in the mode that takes least.

        If the distribution of displacements is measured, these are the bytes that rows are expected
        to take; if only bounds are declared, those that they take at most.
        """
        return self._least_of(self.sparing)

    def _least_of(self, mode: ReliefMode) -> int:
        if not self.shapes:
            return self.of(mode)
        arrivals = self._arrivals(mode)
        return min(self.of(mode), ceil(arrivals.takes(arrivals.longest) / FITS))

    def expected(self, share: int) -> float:
        """Return the share of results to be expected with ``share`` bytes."""
        return self.asked * max(self._found(mode, share) for mode in self.modes)

    def _found(self, mode: ReliefMode, share: int) -> float:
        return 1.0 if share >= self.of(mode) else self._arrivals(mode).found(share)

    def _arrivals(self, mode: ReliefMode) -> Arrivals:
        rates = np.array([each.rate for each in self.model.inputs])[:, None]
        came = displacements(self.model, self.shapes or [UNIFORM] * len(rates)) / rates
        widths, ahead = np.array(self.row_bytes)[:, None], 0.0
        if mode in SPILLING_MODES:
            ahead = self.read_ahead * float(widths.sum())
        else:
            came -= np.array([each[0] for each in self.model.lags])[:, None] / rates
        return Arrivals(came, rates * widths, ahead, self.unique and mode not in SORTING_MODES)

    def describe(self) -> str:
        """Return the need in words."""
        least = f"{spell_bytes(self.least)} with strategy {self.sparing!r}"
        return f"{spell_bytes(self.full)}, at least {least}" if len(self.modes) > 1 else least


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The times at which the rows of some results come."""

    came: NDArray[np.float64]
    """Seconds after the foremost row that could have the value: by input, then by result."""
    flow: NDArray[np.float64]
    """Bytes of each input that come in a second."""
    fixed: float
    """Bytes that are held in any case."""
    unique: bool
    """True if rows leave when they have matched."""

    @property
    def longest(self) -> float:
        """Seconds until the last row of each result has come."""
        return float(self.came.max())

    def takes(self, wait: float) -> float:
        """Return the bytes held if rows are dropped after ``wait`` seconds."""
        leaves = np.minimum(wait, self.came.max(axis=0)) if self.unique else wait
        stays = np.maximum(0.0, leaves - self.came) * self.flow
        return float(stays.sum(axis=0).mean()) + self.fixed

    def found(self, share: int) -> float:
        """Return the share of results that are found with ``share`` bytes."""
        low, high = float(self.came.min()), self.longest
        if self.takes(high) <= share:
            return 1.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.takes(middle) <= share else (low, middle)
        return float(np.mean(self.came.max(axis=0) <= low))


def displacements(model: MemoryNeeds, shapes: Sequence[Shape]) -> NDArray[np.float64]:
    """Return the displacements, in rows, of the rows of some results: one row for each input.

    Together the results have all combinations of displacements about equally often.
    """
    places, found = np.arange(1, POINTS + 1), []
    for port, (own, shape) in enumerate(zip(model.inputs, shapes, strict=True)):
        quantiles = places * sqrt(_PRIMES[port % len(_PRIMES)]) % 1.0
        found.append(np.interp(quantiles, np.linspace(0, 1, len(shape)), shape) * own.disorder)
    return np.array(found)
