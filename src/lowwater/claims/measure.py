"""Runs a query in one plan shape on the replayed arrival times and says what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

import lowwater as lw
from lowwater.engines.embedded.clock import VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, Pace
from lowwater.metrics import RunMetrics
from lowwater.plan.physical.compile import compile_plan
from lowwater.plan.physical.operator import PhysicalPlan, PlanShape
from lowwater.sinks import Sink
from lowwater.stream.duration import SECOND

IOP: PlanShape = "in-order"
OOP: PlanShape = "out-of-order"
SHAPES: dict[str, PlanShape] = {"IOP": IOP, "OOP": OOP}


@dataclass(frozen=True)
class Cost:
    """What a run cost."""

    memory: int
    """Peak bytes of the query: what all operators held together, and rows waiting in queues."""
    state_bytes: int
    """Peak bytes that all operators held together, rows waiting in merges and sorts included."""
    state_rows: int
    seconds: float
    metrics: RunMetrics


class Nowhere:
    """A sink that drops the results."""

    def write(self, rows: pl.DataFrame) -> None:
        """Drop rows."""

    def close(self) -> None:
        """Nothing to close."""


class Collected:
    """A sink that keeps the results with the time at which each came out."""

    def __init__(self, clock: VirtualClock):
        self._clock = clock
        self._chunks: list[pl.DataFrame] = []

    def write(self, rows: pl.DataFrame) -> None:
        """Keep rows; ``_out_at`` is the clock's time in seconds."""
        at = pl.lit(self._clock.now() / SECOND).alias("_out_at")
        self._chunks.append(rows.with_columns(at))

    def close(self) -> None:
        """Nothing to close."""

    def table(self) -> pl.DataFrame:
        """All results."""
        return pl.concat(self._chunks)


class SamplingClock(VirtualClock):
    """A virtual clock that calls a function each time everything that arrived has been done."""

    def __init__(self, sample: Callable[[int], None]):
        super().__init__()
        self._sample = sample

    def wait(self, until: int | None) -> None:
        """Sample, then jump."""
        self._sample(self.now())
        super().wait(until)


def cost(query: lw.Stream, shape: PlanShape, tick: float = 1.0) -> Cost:
    """Run a query to its end, rows handed over in ticks of arrival time (seconds)."""
    plan = compile_plan(query._node, shape)
    engine = engine_of(plan, VirtualClock(), tick=tick)
    begun = time.perf_counter()
    engine.run()
    seconds = time.perf_counter() - begun
    metrics = engine.metrics()
    if metrics.late_rows:
        raise AssertionError(f"{metrics.late_rows} rows were late; the set-up is wrong")
    return Cost(
        metrics.memory_peak or 0,
        metrics.state_bytes_peak,
        metrics.state_rows_peak,
        seconds,
        metrics,
    )


def row_width(schema: Mapping[str, pl.DataType]) -> int:
    """Bytes of a row of fixed-size columns."""
    return sum(int(pl.Series([0]).cast(dtype).estimated_size()) for dtype in schema.values())


def engine_of(
    plan: PhysicalPlan,
    clock: VirtualClock,
    sink: Sink | None = None,
    tick: float = 1.0,
) -> EmbeddedEngine:
    """An engine for a plan, for looking into while it runs."""
    pace = Pace(10_000_000, round(tick * SECOND))
    return EmbeddedEngine(plan, sink or Nowhere(), clock, pace, None)


def sweep(
    name: str, points: Sequence[float], query: Callable[[float], lw.Stream], tick: float = 1.0
) -> pl.DataFrame:
    """Peak memory of both plans at every point of what is varied (column ``name``)."""
    rows = []
    for point in points:
        stream = query(point)
        iop, oop = cost(stream, IOP, tick), cost(stream, OOP, tick)
        if iop.metrics.rows_out != oop.metrics.rows_out:
            raise AssertionError(f"at {point}: the plans gave different numbers of results")
        rows.append(
            {
                name: point,
                "iop_bytes": iop.memory,
                "oop_bytes": oop.memory,
                "ratio": oop.memory / iop.memory,
                "iop_state_bytes": iop.state_bytes,
                "oop_state_bytes": oop.state_bytes,
                "iop_rows": iop.state_rows,
                "oop_rows": oop.state_rows,
                "iop_seconds": iop.seconds,
                "oop_seconds": oop.seconds,
            }
        )
    return pl.DataFrame(rows)
