"""A join without a window, driven by hand: rows in any interleaving, strategies that change."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.joins.oblivious.options import ReliefMode
from lowwater.operators.kernel import Host, Kernel
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Chunk

STEP = 20_000_000
"""Nanoseconds between two chunks."""


@dataclass
class Driven:
    """The kernel of a join of some inputs on ``on``, the first of which progresses.

    With ``batches`` it works as in a bucket on Spark: rows are measured when a batch ends. With
    ``portions`` it leaves work for after each step, as in the embedded engine. ``budget`` is the
    memory, in bytes, that it shares with others.
    """

    inputs: Sequence[pl.DataFrame]
    on: Sequence[str] = ("epoch",)
    disorder: Sequence[int | None] = ()
    batches: bool = False
    portions: bool = False
    budget: int | None = None
    copies: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    results: int = 0
    time: int = 0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        self.kernel = self._built()

    def _built(self, **options: Any) -> ObliviousJoin:
        known = self.disorder or [None] * len(self.inputs)
        streams = [
            lw.stream(rows.clear(), name=f"s{at}", time=self.on[0], progress=lw.unpromised(most))
            for at, (rows, most) in enumerate(zip(self.inputs, known, strict=True))
        ]
        query = lw.join(streams, on=list(self.on), **(self.options | options))
        build = compile_plan(query._node).result.build
        assert build is not None
        kernel: Kernel = build(
            self.store,
            Host(
                lambda: self.time,
                self.copies,
                in_batches=self.batches,
                in_portions=self.portions,
                memory=self.budget,
                budget=self.budget,
            ),
        )
        assert isinstance(kernel, ObliviousJoin)
        return kernel

    def take(self, elements: Any) -> None:
        self.notes += self.kernel.notes()
        self.results += sum(each.height for each in elements if isinstance(each, pl.DataFrame))

    def push(self, port: int, rows: Chunk) -> None:
        self.time += STEP
        self.take(self.kernel.on_chunk(port, rows))
        if self.portions:
            self.settle()

    def settle(self) -> None:
        """The end of a batch."""
        while self.kernel.has_work:
            self.take(self.kernel.work_on())

    def restart(self, **options: Any) -> None:
        """Go on from a snapshot, perhaps with other options."""
        saved = pickle.loads(pickle.dumps(copy.deepcopy(self.kernel.snapshot())))
        self.kernel = self._built(**options)
        self.kernel.restore(saved)

    def switch(self, mode: ReliefMode) -> None:
        """Have another strategy in force from now on, as the manager would."""
        self.kernel._chooser.mode = mode

    def end(self) -> None:
        self.settle()
        for port in range(len(self.inputs)):
            self.take(self.kernel.on_end(port))
        assert (self.store.rows, self.store.bytes) == (0, 0)

    @property
    def about(self) -> dict[str, Any]:
        return self.kernel.about()

    @property
    def accounted(self) -> float:
        """Results found, and those counted as lost."""
        return self.results + float(self.about["results lost"])

    @property
    def all_results(self) -> int:
        """How many results there are."""
        on, counts = list(self.on), None
        for at, rows in enumerate(self.inputs):
            own = rows.group_by(on).agg(pl.len().cast(pl.Int64).alias(f"n{at}"))
            counts = own if counts is None else counts.join(own, on=on)
        assert counts is not None
        return int(counts.select(pl.col("^n.*$")).to_numpy().prod(axis=1).sum())


def scrambled(rows: int, most: float | np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Numbers from 0, each held back by up to so many places."""
    moved = np.arange(rows) + chance.uniform(0, 1, rows) * most
    return np.argsort(moved, kind="stable")
