"""The example of the Ordered paper (Figures 1, 3 and 4): which result leaves when.

Stream S is delayed: a8 comes at 11, a12 at 12. Stream T is not. The window is 6 long, and joining a
row takes TP.
"""

from __future__ import annotations

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.clock import VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, ReadPace
from lowwater.plan.physical.planner import compile_plan
from lowwater.stream.duration import SECOND

TP = 0.125
"""Seconds to join a row."""

S = [("d", 2, 2), ("c", 4, 4), ("b", 6, 6), ("a", 8, 11), ("a", 12, 12)]
T = [("a", 1, 1), ("a", 5, 5), ("b", 9, 9), ("c", 10, 10)]
"""Rows: letter, timestamp, and when it comes."""


class RowByRow(VirtualClock):
    """Every joined row takes TP, and nothing else takes any time."""

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        took = round(TP * SECOND) if comparisons else 0
        self._now += took
        return took


class Noted:
    """A sink that notes results and when they come."""

    def __init__(self, clock: VirtualClock):
        self._clock = clock
        self.notes: list[tuple[str, str, float]] = []

    def write(self, rows: pl.DataFrame) -> None:
        now = self._clock.now() / SECOND
        self.notes += [
            (f"{row['k']}{row['ts']}", f"{row['k']}{row['ts_right']}", now)
            for row in rows.to_dicts()
        ]

    def close(self) -> None:
        pass


def stream(name: str, rows: list[tuple[str, int, int]]) -> lw.Stream:
    table = pl.DataFrame(
        rows, schema={"k": pl.String, "ts": pl.Int64, "came": pl.Int64}, orient="row"
    )
    source = lw.replay(table.with_columns(pl.col("came").cast(pl.Float64)), arrival="came")
    return lw.stream(source, name=name, time="ts").select("k", "ts")


def played(order: str | None) -> list[tuple[str, str, float]]:
    query = stream("S", S).join(stream("T", T), on="k", within=6, order=order)  # type: ignore[arg-type]
    clock = RowByRow()
    sink = Noted(clock)
    EmbeddedEngine(compile_plan(query.node), sink, clock, ReadPace(1, 0), None).run()
    return sink.notes


def test_sync_filter_joins_what_waited_when_the_slow_stream_moves() -> None:
    """Figure 3: b9 and c10 are joined when a12 comes, one after the other."""
    assert played("sync-filter") == [
        ("a8", "a5", 11 + TP),
        ("b6", "b9", 12 + TP),
        ("c4", "c10", 12 + 2 * TP),
    ]


def test_filter_order_has_joined_them_by_then() -> None:
    """Figure 4: b9 and c10 are held as results, and leave as a12 comes: 3 TP less in all."""
    assert played("filter-order") == [
        ("a8", "a5", 11 + TP),
        ("b6", "b9", 12),
        ("c4", "c10", 12),
    ]


def test_adaptive_begins_as_sync_filter() -> None:
    assert played("adaptive") == played("sync-filter")


def test_without_order_results_go_back() -> None:
    """Figure 1(C)."""
    results = [(left, right) for left, right, _ in played(None)]
    assert results == [("b6", "b9"), ("c4", "c10"), ("a8", "a5")]


@pytest.mark.parametrize("order", ["sync-filter", "filter-order"])
def test_what_takes_how_long_in_all(order: str) -> None:
    """The delays of Figures 3 and 4 differ by three times TP."""
    late = {"a8": 11, "b9": 9, "c10": 10}
    total = sum(at - late[left if left in late else right] for left, right, at in played(order))
    assert total == 5 + (4 if order == "sync-filter" else 1) * TP
