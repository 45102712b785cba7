"""The streams of the WO-Join experiments (WO-Join §5): Poisson, scrambled, slower and faster.

A stream's keys count up, each key so many times, and its rows are then moved about: every row is
held back by a random number of places up to a bound, and the bound is found at which the scrambling
factor is exactly the one asked for (``scrambling_factor``). While a stream is slowed,
its keys go on from where they were, so it falls behind the others and stays behind.

Equal rows count as out of order (Def. 2.2), so a stream of multiplicity 2 in order has a scrambling
factor of 1, not 0: there the least the paper's range can mean is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims.oblivious_definitions import Keys, multiplicity, scrambling_factor
from lowwater.joins.oblivious.memory_model import InputTraits

RATE = 50.0
"""Rows a second: a mean of 20 ms between two."""
MULTIPLICITY = 2
MOST_SCRAMBLED = 500
ROW_BYTES = 24
KEY = "epoch"
SLOWED = 1 / 8
FASTER = 8.0


@dataclass(frozen=True)
class Phase:
    """From when to when a stream comes at so many times its rate; seconds."""

    start: float
    end: float
    times: float


@dataclass(frozen=True)
class Stream:
    """One stream of an experiment."""

    name: str
    disorder: int
    """Its scrambling factor, exactly."""
    seconds: float
    seed: int
    phases: tuple[Phase, ...] = ()
    rate: float = RATE
    multiplicity: int = MULTIPLICITY

    def table(self) -> pl.DataFrame:
        """Rows in order of arrival: when each came, its key, its place; 24 bytes."""
        random = np.random.default_rng(self.seed)
        arrived = self._arrivals(random)
        ordered = np.arange(len(arrived), dtype=np.int64) // self.multiplicity
        keys = scrambled(ordered, self.disorder, random)
        place = np.arange(1, len(keys) + 1, dtype=np.int64)
        return pl.DataFrame({f"{self.name}_at": arrived, KEY: keys, self.name: place})

    def _arrivals(self, random: np.random.Generator) -> NDArray[np.float64]:
        """Moments of a Poisson process whose rate changes."""
        edges = {0.0, self.seconds}
        for phase in self.phases:
            edges |= {phase.start, phase.end}
        times = np.array(sorted(edge for edge in edges if edge <= self.seconds))
        middles = (times[1:] + times[:-1]) / 2
        expected = np.concatenate(([0.0], (np.diff(times) * self.rates(middles)).cumsum()))
        most = round(expected[-1] + 10 * np.sqrt(expected[-1]) + 10)
        came = random.exponential(size=most).cumsum()
        moments: NDArray[np.float64] = np.interp(came[came < expected[-1]], expected, times)
        return moments

    def rates(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows a second at these times."""
        found = np.full(len(seconds), self.rate)
        for phase in self.phases:
            found[(seconds >= phase.start) & (seconds < phase.end)] *= phase.times
        return found

    def traits(self, table: pl.DataFrame) -> InputTraits:
        """What the model has to know of it, from the rows themselves."""
        keys = table[KEY].to_numpy()
        return InputTraits(self.rate, scrambling_factor(keys), multiplicity(keys))


def scrambled(ordered: Keys, disorder: int, random: np.random.Generator) -> Keys:
    """Rows moved about until their scrambling factor is exactly this.

    Rows trade places with a neighbour one pair after the other as the bound grows, so the factor
    passes through every number on its way up: bisection finds each.
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
    """By how much everything is shorter: seconds and scrambling factors."""
    warm: float = 0.0
    """Seconds before all this begins: enough rows to measure, where time runs faster."""
    most_scrambled: int = MOST_SCRAMBLED

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.warm + 120.0 / self.faster

    def phase(self, start: float, end: float, times: float) -> Phase:
        """A phase of the paper's, at its own time."""
        return Phase(self.warm + start / self.faster, self.warm + end / self.faster, times)

    def streams(self, number: int, phases: Mapping[int, Phase]) -> list[Stream]:
        """Streams with scrambling factors drawn from the paper's range, and their phases."""
        drawn = np.random.default_rng(self.seed).integers(0, self.most_scrambled + 1, number)
        return [
            Stream(
                name=f"S{at + 1}",
                disorder=max(MULTIPLICITY - 1, round(disorder / self.faster)),
                seconds=self.seconds,
                seed=self.seed * 100 + at,
                phases=(phases[at],) if at in phases else (),
            )
            for at, disorder in enumerate(drawn.tolist())
        ]

    def query_1(self) -> list[Stream]:
        """S1 to S3: S2 is slowed from 10 to 40 s, S3 comes 8 times as fast from 80 to 90 s."""
        return self.streams(3, {1: self.phase(10, 40, SLOWED), 2: self.phase(80, 90, FASTER)})

    def query_2(self) -> list[Stream]:
        """S1 to S6: S2, of the first join, is slowed from 10 to 40 s."""
        return self.streams(6, {1: self.phase(10, 40, SLOWED)})


def tables(streams: Sequence[Stream]) -> list[pl.DataFrame]:
    """The rows of all streams."""
    return [stream.table() for stream in streams]
