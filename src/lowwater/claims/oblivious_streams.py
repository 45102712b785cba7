"""The streams of the WO-Join experiments (§5) are Poisson, scrambled, and slower or faster.

The keys of a stream count up, each ``multiplicity`` times, and its rows are then moved: every row
is held back by a random number of places up to a bound, and the bound is found at which the
scrambling factor is exactly the given one (``scrambling_factor``). While a stream is slowed, its
keys go on from where they were, so it falls behind the others and stays behind.

Equal rows count as out of order (Def. 2.2), so a stream of multiplicity 2 in order has a scrambling
factor of 1, not 0: there the least the paper's range can mean is 1.

All results of a join, and the rows it has to keep for them, follow from the logs of the streams.
Every result is made when the last of its rows comes. A buffer of the newest rows of an input serves
the result if it reaches back to the result's row of that input: the rows that came from that row on
are the least buffer for this result (the paper's backtracking, §5.1). The greatest of these over
the results of a second is the optimal buffer of that second, and no smaller fixed buffer finds them
all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims.oblivious_definitions import (
    Keys,
    Places,
    lags,
    multiplicity,
    scrambling_factor,
)
from lowwater.joins.oblivious.memory_model import InputTraits

Seconds = NDArray[np.float64]
RateChange = tuple[float, float, float]
"""A change of a stream's rate: its start and its end in seconds, and the factor on the rate."""
RATE = 50.0
"""Rows a second: a mean of 20 ms between two."""
MULTIPLICITY = 2
MOST_SCRAMBLED = 500
KEY = "epoch"
SLOWED = 1 / 8
FASTER = 8.0


@dataclass(frozen=True)
class ScrambledStream:
    """One stream of an experiment."""

    name: str
    disorder: int
    """Its scrambling factor, exactly."""
    seconds: float
    seed: int
    phases: tuple[RateChange, ...] = ()
    rate: float = RATE
    multiplicity: int = MULTIPLICITY

    def table(self) -> pl.DataFrame:
        """Return rows in order of arrival: when each came, its key, its place; 24 bytes a row."""
        random = np.random.default_rng(self.seed)
        arrived = self._arrivals(random)
        ordered = np.arange(len(arrived), dtype=np.int64) // self.multiplicity
        keys = scrambled(ordered, self.disorder, random)
        place = np.arange(1, len(keys) + 1, dtype=np.int64)
        return pl.DataFrame({f"{self.name}_at": arrived, KEY: keys, self.name: place})

    def _arrivals(self, random: np.random.Generator) -> NDArray[np.float64]:
        """Return the moments, in seconds, of a Poisson process whose rate changes."""
        edges = {0.0, self.seconds}
        for start, end, _ in self.phases:
            edges |= {start, end}
        times = np.array(sorted(edge for edge in edges if edge <= self.seconds))
        middles = (times[1:] + times[:-1]) / 2
        expected = np.concatenate(([0.0], (np.diff(times) * self.rates(middles)).cumsum()))
        most = round(expected[-1] + 10 * np.sqrt(expected[-1]) + 10)
        came = random.exponential(size=most).cumsum()
        moments: NDArray[np.float64] = np.interp(came[came < expected[-1]], expected, times)
        return moments

    def rates(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rates, in rows a second, at these times."""
        found = np.full(len(seconds), self.rate)
        for start, end, factor in self.phases:
            found[(seconds >= start) & (seconds < end)] *= factor
        return found

    def traits(self, table: pl.DataFrame) -> InputTraits:
        """Return the traits of the stream that the model takes, measured on its rows."""
        keys = table[KEY].to_numpy()
        return InputTraits(self.rate, scrambling_factor(keys), multiplicity(keys))


def scrambled(ordered: Keys, disorder: int, random: np.random.Generator) -> Keys:
    """Return rows moved about until their scrambling factor is exactly ``disorder``.

    Rows trade places with a neighbour one pair after the other as the bound grows, so the factor
    takes every value on its way up, and bisection finds each.
    """
    least = scrambling_factor(ordered)
    if disorder <= least:
        return ordered
    if disorder >= len(ordered):
        raise ValueError(f"{len(ordered)} rows cannot be scrambled by {disorder} places")
    held_back = random.random(len(ordered))
    place = np.arange(len(ordered))

    def moved(bound: float) -> Keys:
        return ordered[np.argsort(place + bound * held_back, kind="stable")]

    low, high = 0.0, float(disorder)
    while scrambling_factor(moved(high)) < disorder:
        low, high = high, 2 * high
    keys = moved(high)
    while scrambling_factor(keys) != disorder:
        middle = (low + high) / 2
        if not low < middle < high:
            raise AssertionError("two pairs traded places at once: take another seed")
        keys = moved(middle)
        low, high = (middle, high) if scrambling_factor(keys) < disorder else (low, middle)
    return keys


@dataclass(frozen=True)
class Setting:
    """The streams of an experiment; time can run faster, so that a run is short."""

    seed: int
    faster: float = 1.0
    """The factor by which seconds and scrambling factors are smaller."""
    warm: float = 0.0
    """Seconds before the paper's stream begins: enough rows to measure if time runs faster."""
    most_scrambled: int = MOST_SCRAMBLED

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.warm + 120.0 / self.faster

    def phase(self, start: float, end: float, factor: float) -> RateChange:
        """Return a phase of the paper's at the time it has here."""
        return self.warm + start / self.faster, self.warm + end / self.faster, factor

    def streams(self, number: int, phases: Mapping[int, RateChange]) -> list[ScrambledStream]:
        """Return streams with scrambling factors drawn from the paper's range, and their phases."""
        drawn = np.random.default_rng(self.seed).integers(0, self.most_scrambled + 1, number)
        return [
            ScrambledStream(
                name=f"S{at + 1}",
                disorder=max(MULTIPLICITY - 1, round(disorder / self.faster)),
                seconds=self.seconds,
                seed=self.seed * 100 + at,
                phases=(phases[at],) if at in phases else (),
            )
            for at, disorder in enumerate(drawn.tolist())
        ]

    def query_1(self) -> list[ScrambledStream]:
        """Return S1 to S3: S2 is slowed from 10 to 40 s, S3 is 8 times as fast from 80 to 90 s."""
        return self.streams(3, {1: self.phase(10, 40, SLOWED), 2: self.phase(80, 90, FASTER)})

    def query_2(self) -> list[ScrambledStream]:
        """Return S1 to S6: S2, of the first join, is slowed from 10 to 40 s."""
        return self.streams(6, {1: self.phase(10, 40, SLOWED)})


# ---- the results there are ----------------------------------------------------------------


@dataclass(frozen=True)
class ArrivalLog:
    """The rows of one stream in the order of arrival: the arrival of each, its key and its place.

    The column of the place is named after the stream. The results of a join are such a log again,
    so joins of joins need nothing else.
    """

    name: str
    table: pl.DataFrame

    @cached_property
    def at(self) -> Seconds:
        """The arrival of each row, in seconds."""
        return self.table[f"{self.name}_at"].to_numpy()

    @cached_property
    def keys(self) -> Keys:
        """The keys in order of arrival."""
        return self.table[KEY].to_numpy()

    def continued(self, other: ArrivalLog) -> Keys:
        """Return the keys and, in order, those that come until the stream has reached another.

        A log ends and its stream does not: rows that a slower stream has yet to send are added.
        """
        further = np.arange(self.keys.max() + 1, other.keys.max() + 1)
        return np.concatenate((self.keys, further.repeat(multiplicity(self.keys))))

    def came(self, times: Seconds) -> Places:
        """Return the number of rows that had come by these times."""
        return np.searchsorted(self.at, times, side="right")

    def came_before(self, times: Seconds) -> Places:
        """Return the number of rows that had come before these times."""
        return np.searchsorted(self.at, times, side="left")


@dataclass(frozen=True)
class Truth:
    """All results of a join of some logs."""

    logs: tuple[ArrivalLog, ...]

    @cached_property
    def results(self) -> pl.DataFrame:
        """The results in the order of ``at``, the arrival of the last of a result's rows; each with
        the place of its row in each input."""
        found = self.logs[0].table
        for log in self.logs[1:]:
            found = found.join(log.table, on=KEY)
        last = pl.max_horizontal(f"{log.name}_at" for log in self.logs).alias("at")
        names = [log.name for log in self.logs]
        return found.select(last, KEY, *names).sort("at", *names)

    @cached_property
    def at(self) -> Seconds:
        """The time at which each result can first be known, in seconds."""
        return self.results["at"].to_numpy()

    @cached_property
    def needs(self) -> Places:
        """The number of an input's newest rows that reach back to a result, by result and input.

        The row that comes last meets the others as it comes, so a buffer of one row serves its
        input.
        """
        found = []
        for log in self.logs:
            place = self.results[log.name].to_numpy()
            back = log.came(self.at) - place + 1
            found.append(np.where(log.at[place - 1] == self.at, 1, back))
        return np.stack(found, axis=1)

    def log(self, name: str, sizes: Sequence[float] | None = None) -> ArrivalLog:
        """Return the results as a log for the next join: all, or those that fixed buffers find."""
        found = self.results if sizes is None else self.results.filter(self.reached(sizes))
        place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias(name)
        return ArrivalLog(name, found.select(pl.col("at").alias(f"{name}_at"), KEY, place))

    # ---- buffers ---------------------------------------------------------------------------

    def by_second(self, values: Places, seconds: int, least: int = 0) -> Places:
        """Return the greatest of the results' values in each second, at least ``least``, by input.

        ``values``: a value for each result and input. Later results count for the last second.
        """
        greatest = np.full((seconds, values.shape[1]), least)
        within = np.minimum(self.at.astype(np.int64), seconds - 1)
        np.maximum.at(greatest, within, values)
        return greatest

    def optimal(self, seconds: int) -> Places:
        """Return by second and input the least buffer that finds all results of the second."""
        return self.by_second(self.needs, seconds)

    def reached(self, sizes: Sequence[float]) -> NDArray[np.bool_]:
        """Return true for each result that buffers of the newest rows find.

        ``sizes``: the rows of the buffer of each input.
        """
        return np.logical_and.reduce(self.needs <= np.array(sizes), axis=1)  # type: ignore[no-any-return]

    def sizes(self, share: float) -> list[int]:
        """Return for each input the least buffer that reaches back far enough for a share."""
        at = max(0, int(np.ceil(share * len(self.needs))) - 1)
        return [int(each) for each in np.sort(self.needs, axis=0)[at]]

    def predicted(self, disorder: Sequence[int]) -> Places:
        """Return Equation 8 with all parameters known, for each result before its last row came.

        The lag is that of an earlier moment: when the row of the other input came that is now as
        many places back as the other's scrambling factor. Rows since then are counted.
        """
        found = np.ones_like(self.needs)
        for one, own in enumerate(self.logs):
            came = own.came(self.at)
            for other, mate in enumerate(self.logs):
                if other != one:
                    back = np.maximum(0, mate.came_before(self.at) - disorder[other])
                    needed = disorder[one] + lags(own.continued(mate), mate.keys, came, back)
                    found[:, one] = np.maximum(found[:, one], needed)
        return found
