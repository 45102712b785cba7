"""State that a user's aggregate has made is gone on with by the same aggregate only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.spark.driver.plan_program import make_program
from lowwater.engines.spark.worker.bucket import Bucket
from lowwater.plan.physical.planner import compile_plan
from tests.support.local_spark import MemoryShelf, Unordered

TABLE = pl.DataFrame({"ts": [1, 2], "k": [0, 1], "v": [3, 4]})


def total(factor: int = 1, version: Any = None, merge: Callable[..., Any] = max) -> lw.aggregate:
    return lw.aggregate(
        init=int,
        add=lambda state, rows: state + factor * rows["v"].sum(),
        merge=merge,
        finish=float,
        columns=("v",),
        version=version,
    )


def windowed(rows: lw.Stream, own: lw.aggregate) -> lw.Stream:
    return rows.window("1 minute").group_by("k").agg(n="count(*)", total=own)


def in_sessions(rows: lw.Stream, own: lw.aggregate) -> lw.Stream:
    return rows.session("1 minute").group_by("k").agg(total=own)


def bucket(query: lw.Stream) -> Bucket:
    program = make_program(compile_plan(query._node, "out-of-order"), 1, False)
    [stage] = program.stages
    return Bucket(stage, program.end, stage.ids[0], MemoryShelf())


def gone_on(shape: Callable[..., lw.Stream], first: lw.aggregate, then: lw.aggregate) -> None:
    """Open the state that a query left by one that has the other aggregate."""
    rows = lw.stream(Unordered(TABLE, [2]), name="s", time="ts")
    one = bucket(shape(rows, first))
    one.open(None)
    bucket(shape(rows, then)).open(one.saved()[1])


@pytest.mark.parametrize("shape", [windowed, in_sessions])
def test_another_aggregate_is_refused_and_the_same_goes_on(shape: Callable[..., lw.Stream]) -> None:
    gone_on(shape, total(), total())
    gone_on(shape, total(1, version="a"), total(2, version="a"))
    with pytest.raises(lw.CheckpointError) as caught:
        gone_on(shape, total(), total(2))
    told = str(caught.value)
    for words in ("'total'", "add changed", "cannot be mixed", "start from a new checkpoint"):
        assert words in told
    assert "version=" in told
    with pytest.raises(lw.CheckpointError, match="merge changed"):
        gone_on(shape, total(), total(merge=min))
    with pytest.raises(lw.CheckpointError, match="it was version 1 and is version 2"):
        gone_on(shape, total(version=1), total(version=2))


def test_functions_that_keep_no_state_may_change() -> None:
    rows = lw.stream(Unordered(TABLE, [2]), name="s", time="ts")
    one = bucket(windowed(rows.apply(lambda chunk: chunk), total()))
    one.open(None)
    changed = rows.apply(lambda chunk: chunk.filter(pl.col("v") > 1))
    bucket(windowed(changed, total())).open(one.saved()[1])
