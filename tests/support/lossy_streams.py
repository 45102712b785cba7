"""Families of streams by which a join's account of what it lost is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from lowwater.claims.oblivious_definitions import scrambling_factor
from tests.support.driven_join import Driven

Keys = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Family:
    """Inputs over the same values, each scrambled and behind by itself."""

    name: str
    rows: int = 6_000
    inputs: int = 2
    disorder: tuple[float, float] = (20, 20)
    """By how many places rows are held back at most, in the first half and in the second."""
    stragglers: tuple[float, float] = (0.0, 0.0)
    """The share of rows that are held back further, and by how many places at most."""
    multiplicity: tuple[int, ...] = (1,)
    lag: tuple[int, ...] = (0,)
    """By how many rows the inputs come later, in turn; also from the last to the first."""
    sensors: int = 1
    """Rows of each value that have another key each."""
    present: float = 1.0
    """The share of values that an input has."""
    chunk: int = 40
    batch: int = 400
    """Rows of an input that are one batch, in runs that go by batches."""
    accuracy: float = 0.999
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def frames(self, seed: int) -> list[pl.DataFrame]:
        """The rows of all inputs, in order of arrival."""
        return [self._frame(at, np.random.default_rng((seed, at))) for at in range(self.inputs)]

    def _frame(self, at: int, chance: np.random.Generator) -> pl.DataFrame:
        many = self.multiplicity[at % len(self.multiplicity)] * self.sensors
        keys = np.arange(self.rows) // many
        keep = chance.uniform(size=self.rows // many + 1) < self.present
        keys = keys[keep[keys]]
        first, second = self.disorder
        half = np.arange(len(keys)) >= len(keys) // 2
        moved = chance.uniform(size=len(keys)) * np.where(half, second, first)
        share, far = self.stragglers
        moved += np.where(chance.uniform(size=len(keys)) < share, chance.uniform(0, far), 0)
        order = np.argsort(np.arange(len(keys)) + moved, kind="stable")
        sensor = np.arange(len(keys)) % self.sensors
        return pl.DataFrame({"epoch": keys[order], "k": sensor[order]})

    def run(
        self, seed: int, backwards: bool, batches: bool, known: bool = False, **options: Any
    ) -> Driven:
        """The join of a family, run to its end; its disorder is measured unless it is known."""
        frames = self.frames(seed)
        on = ("epoch", "k") if self.sensors > 1 else ("epoch",)
        given = {"accuracy": self.accuracy} | self.options | options
        most = [scrambling_factor(each["epoch"].to_numpy()) for each in frames] if known else []
        run = Driven(frames, on, most, batches, options=given)
        size = self.batch if batches else self.chunk
        lags = [self.lag[at % len(self.lag)] for at in range(self.inputs)]
        lags = lags[::-1] if backwards else lags
        steps = [
            (start + lags[at], at, start)
            for at, frame in enumerate(frames)
            for start in range(0, frame.height, size)
        ]
        for _, at, start in sorted(steps):
            run.push(at, frames[at][start : start + size])
            if batches and at == self.inputs - 1:
                run.settle()
        run.end()
        return run


def capped(name: str, strategies: Sequence[str], memory: str, **traits: Any) -> list[Family]:
    """A family under a cap, with each of some strategies."""
    return [
        Family(f"{name} {each}", options={"memory": memory, "strategy": each}, **traits)
        for each in strategies
    ]


ALL = ("auto", "plain", "msf", "dbf", "hybrid")
FAMILIES = [
    Family("calm"),
    Family("repeated", multiplicity=(2, 3), disorder=(60, 60)),
    Family("step", disorder=(20, 1_500)),
    Family("step, repeated", disorder=(20, 1_500), multiplicity=(2,), inputs=3),
    Family("step, lag", disorder=(20, 1_500), lag=(0, 2_000)),
    Family("stragglers", stragglers=(0.02, 3_000), accuracy=0.95),
    Family("far stragglers", rows=20_000, stragglers=(0.1, 12_000), accuracy=0.9, chunk=200),
    Family("sparse", present=0.6, stragglers=(0.05, 1_000), accuracy=0.95),
    Family("sensors", sensors=20, disorder=(20, 1_500)),
    Family("many sensors", rows=20_000, sensors=2_500, disorder=(20, 9_000), chunk=200),
    *capped("scrambled, lag", ALL, "16 kB", disorder=(300, 300), lag=(0, 1_000)),
    *capped("far behind", ALL, "16 kB", rows=10_000, lag=(0, 5_000), chunk=100),
    *capped("three, repeated", ALL, "8 kB", inputs=3, multiplicity=(1, 2, 2), lag=(0, 0, 600)),
]
