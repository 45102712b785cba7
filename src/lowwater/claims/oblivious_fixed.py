"""The join the window-oblivious one is measured against: a buffer of fixed size for each input.

Of every input the newest rows are kept, always as many, whatever comes (the W-Join of WO-Join §5).
Rows are found and kept as in our other joins of many inputs, so the two differ in what they drop.
Rows that are taken in together are matched before any is dropped for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl

from lowwater.joins.multi_join import MultiJoin, rows_of
from lowwater.joins.multi_shape import MultiShape
from lowwater.operators.kernel import Host
from lowwater.plan.physical.operator import KernelOperator, Operator, PhysicalPlan
from lowwater.state.store import ChunkStore, take
from lowwater.stream.element import Chunk, Element

OBLIVIOUS = "obliviousjoin"


class FixedJoin(MultiJoin):
    """Joins the newest rows of many inputs, first in, first out."""

    rule: ClassVar[str] = "none before the end"

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        slice_ticks: Sequence[int],
        sizes: Sequence[int],
    ):
        super().__init__(store, shape, slice_ticks)
        self._sizes = sizes
        self._came: list[deque[int]] = [deque() for _ in shape.ports]

    @classmethod
    def instead_of(cls, join: MultiJoin, sizes: Sequence[int]) -> FixedJoin:
        """One that matches the same rows."""
        ticks = [each.width for each in join._slicing]
        return cls(join.store, join._shape, ticks, sizes)

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Match rows; as many of the oldest go as there are too many."""
        results = super().on_chunk(port, chunk)
        came = self._came[port]
        came.extend(self._shape.domain.array_of(chunk[self._shape.times[port]]).tolist())
        while len(came) > self._sizes[port]:
            self._push_out(port, came.popleft())
        return results

    def _push_out(self, port: int, ticks: int) -> None:
        """Drop the oldest row of a time; rows of a slice are in the order in which they came."""
        slice_ = ticks // self._slicing[port].width
        held = take(self.store, rows_of(port), slice_, slice_ + 1)
        if held is None:
            return
        same = held.select(self._shape.inside_time(port)).to_series().to_numpy() == ticks
        if same.any():
            at = int(np.argmax(same))
            held = pl.concat([held[:at], held[at + 1 :]], rechunk=True)
        if held.height:
            self.store.put(rows_of(port), slice_, held)


def fixed(plan: PhysicalPlan, sizes: Sequence[Sequence[int]]) -> PhysicalPlan:
    """The plan with fixed buffers in its window-oblivious joins, sizes in the order of the plan."""
    left = iter(sizes)

    def replaced(operator: Operator) -> Operator:
        if operator.name != OBLIVIOUS or not isinstance(operator, KernelOperator):
            return operator
        build = operator.build
        own = next(left)

        def instead(store: ChunkStore, host: Host) -> FixedJoin:
            join = build(store, host)
            assert isinstance(join, MultiJoin)
            return FixedJoin.instead_of(join, own)

        return replace(operator, build=instead)

    return plan.with_operators([replaced(each) for each in plan.operators])
