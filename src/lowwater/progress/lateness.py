"""How late rows are, remembered: a histogram that forgets, and the slack it recommends.

Lateness is counted in bins as fine as a hundredth of themselves; small ones are exact. Old rows
weigh less and less, so that the histogram follows a stream whose disorder changes.

A slack costs delay, and it spares late rows. The one recommended makes ``slack + price * share of
rows later than it`` least: it covers what many rows need and does not reach for the few that are
hopeless. The price of a late row is what balances the two at the wanted share when the histogram is
smooth, times a *pressure*: more while more rows were late than allowed, less while fewer were.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.progress.leaps import Ticks

FINE = 7
"""A bin is as wide as a 128th of the least lateness in it, or less."""
PRIOR = 200.0
"""Punctual rows a channel is thought to have sent before: a bad start is not all there is."""
TYPICAL = 10.0
"""The lateness that this many times the allowed share of rows exceed is the scale of a price."""
SOME = 0.75
"""But it is one that no more than this share of the disordered rows exceed."""
BALANCE = 0.4
"""The price without pressure, in that scale."""

Weights = NDArray[np.float64]


def bit_lengths(values: Ticks) -> Ticks:
    """How many binary digits whole numbers of zero or more have, exactly."""
    high = values >> 32
    top = np.where(high > 0, high, values)
    lengths = np.frexp(top.astype(np.float64))[1].astype(np.int64)
    return np.where(high > 0, lengths + 32, lengths)


def bins_of(lateness: Ticks) -> Ticks:
    """The bin of each lateness: exact below ``2 ** (FINE + 1)``, then ``2 ** FINE`` a doubling."""
    if not lateness.any():
        return lateness
    shift = np.maximum(bit_lengths(lateness) - FINE - 1, 0)
    found: Ticks = (shift << FINE) + (lateness >> shift)
    return found


def longest_in(bins: Ticks) -> Ticks:
    """The longest lateness that each bin holds."""
    shift = np.maximum((bins >> FINE) - 1, 0)
    longest: Ticks = ((bins - (shift << FINE) + 1) << shift) - 1
    return longest


class Lateness:
    """The lateness of recent rows; ``missing`` is the share of rows that may be late."""

    __slots__ = ("_edges", "_memory", "_missing", "_prior", "_weights")

    def __init__(self, missing: float, memory: float):
        self._missing, self._memory = missing, memory
        self._weights: Weights = np.zeros(1)
        self._edges: Ticks = np.zeros(1, dtype=np.int64)
        self._prior = PRIOR

    def add(self, bins: Ticks, counts: Ticks | None, rows: int) -> None:
        """Count so many rows, and let those before them fade."""
        fading = float(np.exp(-rows / self._memory))
        self._prior *= fading
        self._grow(int(bins.max(initial=0)) + 1)
        self._weights *= fading
        self._weights += np.bincount(bins, counts, minlength=len(self._weights))

    def _grow(self, size: int) -> None:
        if size > len(self._weights):
            size = max(size, len(self._weights) * 5 // 4)
            grown = np.zeros(size)
            grown[: len(self._weights)] = self._weights
            self._weights = grown
            self._edges = longest_in(np.arange(size, dtype=np.int64))

    def slack(self, pressure: float) -> int:
        """The slack to allow."""
        later = np.zeros(len(self._weights))  # the weight of the rows later than each bin holds
        np.cumsum(self._weights[:0:-1], out=later[-2::-1])
        disordered = float(later[0])
        if not disordered:
            return 0
        total = disordered + float(self._weights[0]) + self._prior
        level = min(TYPICAL * self._missing * total, disordered * SOME)
        typical = max(1, int(self._edges[np.count_nonzero(later > level)]))
        price = BALANCE * typical / self._missing * pressure
        later *= price / total
        later += self._edges
        return int(self._edges[later.argmin()])

    def is_far(self, bins: Ticks, times: int) -> bool:
        """Whether rows of these bins are so many times as late as any that is remembered."""
        return int(longest_in(bins.max(initial=0, keepdims=True))[0]) > times * self.longest

    def share_within(self, slack: int) -> float:
        """The share of recent rows that are no later than this."""
        total = float(self._weights.sum())
        return float(self._weights[self._edges <= slack].sum()) / total if total else 1.0

    def covering(self, missing: float) -> int:
        """The least that all but a share of recent rows are no later than."""
        above = np.cumsum(self._weights[::-1])  # the weight at or above each bin, from the last
        fine = int(np.count_nonzero(above <= missing * above[-1]))
        return int(self._edges[len(self._edges) - 1 - fine]) if above[-1] else 0

    @property
    def longest(self) -> int:
        """The longest lateness remembered."""
        used = np.flatnonzero(self._weights)
        return int(self._edges[used[-1]]) if len(used) else 0

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        used = np.flatnonzero(self._weights)
        return {
            "size": len(self._weights),
            "bins": used.tolist(),
            "weights": self._weights[used].tolist(),
            "prior": self._prior,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._weights = np.zeros(saved["size"])
        self._weights[saved["bins"]] = saved["weights"]
        self._edges = longest_in(np.arange(saved["size"], dtype=np.int64))
        self._prior = saved["prior"]
