"""All times of a batch, counted so coarsely that few are left, and alike whoever counts them.

A time is rounded down to a power of two that fits its distance from the newest time: exact near it,
within a hundredth of the distance far from it. Rounding what is rounded already, with a newer time
in sight, comes to the same as rounding it once. So times counted in parts and put together, and all
times themselves, come to the same counts. Where rows dated far ahead are told apart, the newest
time is that of the same stretch as long as a leap: one stray row spoils no other.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from lowwater.progress.lateness import bit_lengths
from lowwater.progress.leaps import Ticks
from lowwater.stream.element import BEGINNING

NEAR = 8
"""Times nearer than ``2 ** NEAR`` ticks are exact."""


def rounded(times: Ticks, newest: Ticks, first: Ticks | int) -> Ticks:
    """Times rounded down as their distance from a newest time allows, not below a first one."""
    shift = np.maximum(bit_lengths(newest - times) - NEAR, 0)
    shift += (newest >> shift) - (times >> shift) >= 1 << NEAR
    found: Ticks = np.maximum((times >> shift) << shift, first)
    return found


def counted(
    times: pl.DataFrame, keys: list[str], time: str, count: str, jump: int | None
) -> pl.DataFrame:
    """Times by channel, rounded and counted."""
    apart = [*keys, *([] if jump is None else [pl.col(time) // jump])]
    newest = times.select(pl.col(time).max().over(apart) if apart else pl.col(time).max())[time]
    ticks = times[time].to_numpy()
    tops = newest.to_numpy() if apart else np.full(len(ticks), newest[0], dtype=np.int64)
    coarse = rounded(ticks, tops, BEGINNING if jump is None else ticks // jump * jump)
    return (
        times.with_columns(pl.Series(time, coarse, dtype=pl.Int64))
        .group_by([*keys, time])
        .agg(pl.len().cast(pl.Int64).alias(count))
    )


def coarsened(times: Ticks, counts: Ticks, jump: int | None) -> tuple[Ticks, Ticks]:
    """The times of one channel, counted in parts, as if they had been counted together."""
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
    coarse, at = np.unique(rounded(times, newest, first), return_inverse=True)
    return coarse, np.bincount(at, counts, len(coarse)).astype(np.int64)
