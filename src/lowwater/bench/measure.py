"""Several ways to do the same work are timed in turn, and their results are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import polars as pl

from lowwater.api import Stream

ROUNDS = 3
"""Number of rounds in which every side takes its turn, unless the time is up before."""
PATIENCE = 20.0
"""Seconds after which no new round is begun."""


@dataclass(frozen=True)
class Fingerprint:
    """Two numbers that are equal for equal bags of rows: their number and the sum of hashes."""

    rows: int
    checksum: int

    @classmethod
    def of(cls, *frames: pl.DataFrame) -> Fingerprint:
        """Return the fingerprint of all rows of some frames, in any order."""
        total = sum(_hash(frame) for frame in frames)
        return cls(sum(frame.height for frame in frames), total % 2**64)


@dataclass
class Timing:
    """The seconds of each repetition of one side."""

    seconds: list[float] = field(default_factory=list)

    @property
    def middle(self) -> float:
        """The median, in seconds."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The shortest, in seconds."""
        return min(self.seconds)


def alternate(
    sides: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, patience: float = PATIENCE
) -> dict[str, Timing]:
    """Time the sides in turn, so that other load on the machine slows all of them."""
    timings = {name: Timing() for name in sides}
    begun = time.perf_counter()
    for _ in range(rounds):
        for name, work in sides.items():
            start = time.perf_counter()
            work()
            timings[name].seconds.append(time.perf_counter() - start)
        if time.perf_counter() - begun > patience:
            break
    return timings


def stream_through(query: Stream, chunk_rows: int) -> None:
    """Run a query to its end and drop the results."""
    query.run(sink=_drop, chunk_rows=chunk_rows).await_termination()


def stream_results(query: Stream, chunk_rows: int) -> Fingerprint:
    """Run a query to its end and return the fingerprint of its results."""
    held: list[pl.DataFrame] = []

    def keep(table: Any) -> None:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        held.append(frame)

    query.run(sink=keep, chunk_rows=chunk_rows).await_termination()
    return Fingerprint.of(*held)


def _drop(_: object) -> None:
    """Drop results."""


def _hash(frame: pl.DataFrame) -> int:
    """Return the sum of the row hashes, added by halves, so that nothing overflows."""
    hashes = frame.hash_rows(7)
    return int((hashes & 0xFFFFFFFF).sum()) + (int((hashes // 2**32).sum()) << 32)
