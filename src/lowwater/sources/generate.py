"""Generated streams: arrivals, bursts and lulls, skew, disorder and keys, all from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import OptionError
from lowwater.sources.replay import Replay

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """A factor on the rate from ``start`` to ``end``, in seconds; a factor of 0 makes a lull."""

    start: float
    end: float
    factor: float


@dataclass(frozen=True)
class Workload:
    """A stream to generate. The same values always give the same rows.

    >>> log = lw.Workload(rate=10, seconds=6, process="regular", unit="s")
    >>> log.table().columns
    ['arrived', 'ts', 'key', 'value']
    >>> lw.stream(log.replay(), name="s", time="ts").collect().num_rows
    59

    ``rate``
        Rows a second, above zero.
    ``seconds``
        Length of the stream in seconds, above zero.
    ``seed``
        Seed of all that is random. Default: 0.
    ``process``
        How rows follow each other: at random ("poisson") or evenly ("regular"). Default:
        "poisson".
    ``phases``
        Bursts and lulls: tuples of a start and an end, in seconds, and a factor on the rate.
        Default: none, ``()``.
    ``skew``
        Seconds from the time of a row to its arrival. Default: 0.0.
    ``late_share``
        Share of rows that arrive later still, from 0 to 1. Default: 0.0.
    ``late_by``
        Most seconds by which these arrive later. Default: 0.0.
    ``scramble``
        Most rows by which a row comes after a newer one. Default: 0.
    ``multiplicity``
        Number of rows with each time. Default: 1.
    ``keys``
        Number of keys that rows have. Default: 1.
    ``zipf``
        Exponent of the Zipf law by which keys are drawn. Default: 0.0, all are as frequent.
    ``unit``
        Unit of the time column: "s" makes integers, "ms" and "us" a Datetime. Default: "us".
    """

    rate: float
    seconds: float
    seed: int = 0
    process: str = "poisson"
    phases: Sequence[Phase | tuple[float, float, float]] = ()
    skew: float = 0.0
    late_share: float = 0.0
    late_by: float = 0.0
    scramble: int = 0
    multiplicity: int = 1
    keys: int = 1
    zipf: float = 0.0
    unit: str = "us"

    def __post_init__(self) -> None:
        if self.process not in ("poisson", "regular"):
            raise OptionError(f"process is 'poisson' or 'regular', not {self.process!r}")
        if self.rate <= 0 or self.seconds <= 0:
            raise OptionError("a workload needs a rate and a length above zero")
        if self.unit not in ("s", "ms", "us"):
            raise OptionError(f"unit is 's', 'ms' or 'us', not {self.unit!r}")
        if self.multiplicity < 1 or self.keys < 1 or self.scramble < 0:
            raise OptionError("multiplicity and keys are at least 1, scramble at least 0")

    def table(self) -> pl.DataFrame:
        """Return the arrival log in order: ``arrived`` (seconds), ``ts``, ``key``, ``value``."""
        rng = np.random.default_rng(self.seed)
        times = self._times(rng)
        delays = np.full(len(times), self.skew)
        if self.late_share:
            late = rng.random(len(times)) < self.late_share
            delays[late] += rng.uniform(0, self.late_by, int(late.sum()))
        order = np.argsort(times + delays, kind="stable")
        arrived = (times + delays)[order]
        order = order[_scrambled(len(order), self.scramble, rng)]
        scale = {"s": 1, "ms": 1_000, "us": 1_000_000}[self.unit]
        ticks = np.floor(times * scale).astype(np.int64)[order]
        stamps = pl.Series("ts", ticks)
        if self.unit != "s":
            stamps = stamps.cast(pl.Datetime("us" if self.unit == "us" else "ms"))
        return pl.DataFrame(
            {
                "arrived": arrived,
                "ts": stamps,
                "key": _keys(len(times), self.keys, self.zipf, rng),
                "value": rng.integers(0, 1_000, len(times)),
            }
        )

    def replay(self) -> Replay:
        """Return the arrival log as a source."""
        return Replay(self.table(), "arrived")

    def _times(self, rng: np.random.Generator) -> Floats:
        base = self.rate / self.multiplicity
        factors = [Phase(*p) if isinstance(p, tuple) else p for p in self.phases]
        peak = base * max([1.0, *(phase.factor for phase in factors)])
        count = int(peak * self.seconds * 1.2 + 10 * np.sqrt(peak * self.seconds) + 20)
        if self.process == "poisson":
            times = np.cumsum(rng.exponential(1 / peak, count))
        else:
            times = (np.arange(count) + 1) / peak
        times = times[times < self.seconds]
        rate = np.full(len(times), base)
        for phase in factors:
            rate[(times >= phase.start) & (times < phase.end)] = base * phase.factor
        if factors:
            chosen = rng.random(len(times)) < rate / peak
            if self.process == "regular":
                chosen = np.diff(np.floor(np.cumsum(rate / peak)), prepend=0) > 0
            times = times[chosen]
        return np.repeat(times, self.multiplicity)


def _scrambled(rows: int, places: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return an order in which a row comes at most ``places`` rows after one that was behind it.

    Rows change places within blocks of ``places + 1`` rows.
    """
    position = np.arange(rows)
    block = (position + rng.integers(0, places + 1)) // (places + 1)
    return np.lexsort((rng.random(rows), block)) if places else position


def _keys(rows: int, keys: int, exponent: float, rng: np.random.Generator) -> NDArray[np.int64]:
    if exponent == 0:
        return rng.integers(0, keys, rows)
    weights = 1 / np.arange(1, keys + 1) ** exponent
    return rng.choice(keys, rows, p=weights / weights.sum())
