"""Group-wise progress: answers are the same, and a lagging group delays nobody else."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from tests.properties.test_kernels import SHAPES, WINDOWED
from tests.support.checked_run import CheckedRun
from tests.support.oracle import answer, table_rows
from tests.support.streams import Sample, samples


@given(samples("a", groups=True), samples("b", groups=True), st.integers(1, 12), st.data())
def test_windows_answered_group_by_group_equal_batch(
    a: Sample, b: Sample, size: int, data: Any
) -> None:
    query = a.stream.union(b.stream).where("v IS NOT NULL").window(size).group_by("s", "k")
    run = CheckedRun(query.agg(n="count(*)"), data.draw, data.draw(SHAPES))
    sql = WINDOWED.format(
        range=size,
        slide=size,
        keys="s, k, ",
        groups=", s, k",
        aggregates="count(*)",
        source="(SELECT * FROM a UNION ALL SELECT * FROM b) WHERE v IS NOT NULL",
    )
    assert table_rows(run.results()) == answer(sql, {"a": a.kept, "b": b.kept})


def test_a_lagging_group_delays_its_own_windows_and_nobody_elses() -> None:
    # time      0        10        20        30
    # prompt    x         x         x         x
    # lagging   x    (nothing more until the others are at 30)
    rows = [(0, "prompt"), (0, "lagging"), (10, "prompt"), (20, "prompt"), (30, "prompt")]
    table = pl.DataFrame([*rows, (5, "lagging")], schema=["ts", "g"], orient="row")
    out: list[tuple[int, str, int]] = []
    stream = lw.stream(table, name="s", time="ts", groups="g", jump=None)
    query = stream.window(10).group_by("g").agg(n="count(*)")
    query.run(
        sink=lambda t: out.extend(
            zip(*(t[c].to_pylist() for c in ("window_start", "g", "n")), strict=True)
        ),
        chunk_rows=1,
    ).await_termination()
    assert out[:3] == [(0, "prompt", 1), (10, "prompt", 1), (20, "prompt", 1)]
    assert sorted(out[3:]) == [(0, "lagging", 2), (30, "prompt", 1)]
