"""Counts of rows by lateness and by time: exact where these are small, coarse where large.

The *lateness* of a row is how far its time is below the newest time before it in its channel, in
ticks. The histogram counts it in bins whose width is at most a 128th of the lateness in them. Old
rows weigh less and less, so that the histogram follows a stream whose disorder changes.

A longer slack costs delay and makes fewer rows late. :meth:`Lateness.slack` returns the slack for
which ``slack + price * share of rows later than it`` is least: it covers the lateness of many rows,
and not that of a few extreme ones. With the price used here this leaves about the allowed share of
rows late, if the histogram is smooth. A *pressure* multiplies the price: it is above 1 while more
rows were late than allowed, and below 1 while fewer were.

Batches without order are counted by time (:func:`count_times`). A time is rounded down to a power
of two that fits its distance from the newest time. If a rounded time is rounded again because a
newer time has come, the result is that of rounding it once. So the merged counts of parts equal the
counts of the whole. If leaps are looked for, times are cut into stretches as long as a leap, each
with a newest time of its own, so that a stray row does not change the counts of others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import Ticks
from lowwater.stream.element import BEGINNING

FINE = 7
"""A bin is at most a ``2 ** FINE``-th as wide as the least lateness in it."""
PRIOR = 200.0
"""Number of punctual rows that are counted before the first row of a channel, so that the first
rows do not decide the slack alone."""
TYPICAL = 10.0
"""The unit of the price is the lateness that ``TYPICAL`` times the allowed share of rows exceed."""
MOST_ABOVE = 0.75
"""The lateness that is the unit of the price is exceeded by at most this share of disordered
rows."""
BALANCE = 0.4
"""The price at a pressure of 1 is this many units, divided by the allowed share."""
NEAR = 8
"""Times nearer than ``2 ** NEAR`` ticks to the newest are counted exactly."""

Weights = NDArray[np.float64]


# ---- the lateness of rows -----------------------------------------------------------------------


def bit_lengths(values: Ticks) -> Ticks:
    """Return the number of binary digits of whole numbers of zero or more, exactly."""
    high = values >> 32
    top = np.where(high > 0, high, values)
    lengths = np.frexp(top.astype(np.float64))[1].astype(np.int64)
    return np.where(high > 0, lengths + 32, lengths)


def bins_of(lateness: Ticks) -> Ticks:
    """Return the bin of each lateness: exact below ``2 ** (FINE + 1)`` ticks, then ``2 ** FINE``
    bins for each doubling."""
    if not lateness.any():
        return lateness
    shift = np.maximum(bit_lengths(lateness) - FINE - 1, 0)
    found: Ticks = (shift << FINE) + (lateness >> shift)
    return found


def longest_in(bins: Ticks) -> Ticks:
    """Return the longest lateness that each bin holds, in ticks."""
    shift = np.maximum((bins >> FINE) - 1, 0)
    longest: Ticks = ((bins - (shift << FINE) + 1) << shift) - 1
    return longest


class Lateness:
    """A histogram of the lateness of recent rows.

    ``missing`` is the share of rows that may be late. ``memory`` is the number of rows after which
    a row weighs ``1/e`` of a new one.
    """

    __slots__ = ("_edges", "_memory", "_missing", "_prior", "_weights")

    def __init__(self, missing: float, memory: float):
        self._missing, self._memory = missing, memory
        self._weights: Weights = np.zeros(1)
        self._edges: Ticks = np.zeros(1, dtype=np.int64)
        self._prior = PRIOR

    def add(self, bins: Ticks, counts: Ticks | None, rows: int) -> None:
        """Count ``rows`` rows by bin and reduce the weight of those before them.

        ``counts`` is how many rows are in each entry of ``bins``; None for one each.
        """
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
        """Return the slack that costs least, in ticks; ``pressure`` multiplies the price."""
        later = np.zeros(len(self._weights))  # the weight of the rows later than each bin holds
        np.cumsum(self._weights[:0:-1], out=later[-2::-1])
        disordered = float(later[0])
        if not disordered:
            return 0
        total = disordered + float(self._weights[0]) + self._prior
        level = min(TYPICAL * self._missing * total, disordered * MOST_ABOVE)
        typical = max(1, int(self._edges[np.count_nonzero(later > level)]))
        price = BALANCE * typical / self._missing * pressure
        later *= price / total
        later += self._edges
        return int(self._edges[later.argmin()])

    def is_far(self, bins: Ticks, times: int) -> bool:
        """Return true if a bin is later than ``times`` times the longest lateness so far."""
        return int(longest_in(bins.max(initial=0, keepdims=True))[0]) > times * self.longest

    def share_within(self, slack: int) -> float:
        """Return the share of recent rows that are at most ``slack`` ticks late."""
        total = float(self._weights.sum())
        return float(self._weights[self._edges <= slack].sum()) / total if total else 1.0

    def covering(self, missing: float) -> int:
        """Return the least slack, in ticks, that at most ``missing`` of the recent rows exceed."""
        above = np.cumsum(self._weights[::-1])  # the weight at or above each bin, from the last
        fine = int(np.count_nonzero(above <= missing * above[-1]))
        return int(self._edges[len(self._edges) - 1 - fine]) if above[-1] else 0

    @property
    def longest(self) -> int:
        """The longest lateness with any weight left, in ticks."""
        used = np.flatnonzero(self._weights)
        return int(self._edges[used[-1]]) if len(used) else 0

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        used = np.flatnonzero(self._weights)
        return {
            "size": len(self._weights),
            "bins": used.tolist(),
            "weights": self._weights[used].tolist(),
            "prior": self._prior,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._weights = np.zeros(saved["size"])
        self._weights[saved["bins"]] = saved["weights"]
        self._edges = longest_in(np.arange(saved["size"], dtype=np.int64))
        self._prior = saved["prior"]


# ---- times of a batch --------------------------------------------------------------------------


def round_times(times: Ticks, newest: Ticks, first: Ticks | int) -> Ticks:
    """Round times down, more coarsely the further they are below ``newest``.

    No time becomes less than ``first``.
    """
    shift = np.maximum(bit_lengths(newest - times) - NEAR, 0)
    shift += (newest >> shift) - (times >> shift) >= 1 << NEAR
    found: Ticks = np.maximum((times >> shift) << shift, first)
    return found


def count_times(
    times: pl.DataFrame, keys: list[str], time: str, count: str, jump: int | None
) -> pl.DataFrame:
    """Count the rows of each rounded time of each channel.

    ``keys`` are the columns that name a channel, ``time`` the column of ticks, ``count`` the name
    of the column to add. ``jump`` is the least distance of a leap in ticks; None for no leaps.
    """
    apart = [*keys, *([] if jump is None else [pl.col(time) // jump])]
    newest = times.select(pl.col(time).max().over(apart) if apart else pl.col(time).max())[time]
    ticks = times[time].to_numpy()
    tops = newest.to_numpy() if apart else np.full(len(ticks), newest[0], dtype=np.int64)
    coarse = round_times(ticks, tops, BEGINNING if jump is None else ticks // jump * jump)
    return (
        times.with_columns(pl.Series(time, coarse, dtype=pl.Int64))
        .group_by([*keys, time])
        .agg(pl.len().cast(pl.Int64).alias(count))
    )


def merge_counts(times: Ticks, counts: Ticks, jump: int | None) -> tuple[Ticks, Ticks]:
    """Merge the counted times of parts of one channel's batch.

    Invariant: the result equals that of counting all rows of the parts together.
    """
    if not len(times):
        return times, counts
    order = np.argsort(times, kind="stable")
    times, counts = times[order], counts[order]
    first: Ticks | int = BEGINNING
    if jump is None:
        newest = np.full(len(times), times[-1])
    else:
        stretch = times // jump
        newest, first = times[np.searchsorted(stretch, stretch, "right") - 1], stretch * jump
    coarse, at = np.unique(round_times(times, newest, first), return_inverse=True)
    return coarse, np.bincount(at, counts, len(coarse)).astype(np.int64)
