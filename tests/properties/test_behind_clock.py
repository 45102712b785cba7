"""Rows that are at most so far behind the clock: silent inputs are answered by the clock.

No row that keeps the bound is late, however inputs, channels and groups are silent, and every
window is answered when the clock has passed its end by the bound.
"""

from __future__ import annotations

import warnings
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.progress.idle import GRAIN
from tests.support.local_spark import BATCH_SECONDS, LocalSpark, Unordered
from tests.support.oracle import answer, table_rows
from tests.unit.engine.scenes import SECOND

BOUND = 20
SCHEMA = {"at": pl.Float64, "ts": pl.Int64, "c": pl.String}
SQL = (
    "SELECT w, w + 2, c, count(*) FROM (SELECT floor(ts / 2)::INT * 2 AS w, c FROM a) GROUP BY ALL"
)
behind = st.sampled_from([0, 7, BOUND - 1, BOUND])
rows = st.lists(st.tuples(st.integers(0, 60), behind, st.sampled_from("xy")), max_size=10)
KEYS: dict[str, dict[str, Any]] = {
    "one": {},
    "channels": {"channel": "c", "channels": ["x", "y", "never"]},
    "groups": {"groups": "c"},
}


def log_of(sent: list[tuple[int, int, str]]) -> pl.DataFrame:
    """Rows that arrive some seconds after their time."""
    found = [(float(at), at - behind, c) for at, behind, c in sorted(sent)]
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def answered(sources: list[Any], idle: Any, options: dict[str, Any]) -> Stream:
    """Windows by key over the union of sources."""
    streams = [
        lw.stream(
            each,
            name=f"s{at}",
            time="ts",
            progress=lw.within(BOUND),
            jump=None,
            idle=idle,
            **options,
        ).select("ts", "c")
        for at, each in enumerate(sources)
    ]
    union = streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]
    return union.window(2).group_by("c").agg(n="count(*)")


@given(
    keys=st.sampled_from(sorted(KEYS)),
    sent=st.lists(rows, min_size=1, max_size=3),
    tick=st.sampled_from([None, 0, "1 s", "7 s"]),
    chunk_rows=st.sampled_from([1, 2, None]),
    beats=st.booleans(),
)
def test_rows_that_keep_the_bound_are_counted_and_windows_wait_no_longer(
    keys: str, sent: list[list[tuple[int, int, str]]], tick: Any, chunk_rows: Any, beats: bool
) -> None:
    logs = [log_of(each) for each in sent]
    clock, found = lw.VirtualClock(), []

    def sink(table: Any) -> None:
        for row in table.rows() if isinstance(table, pl.DataFrame) else table.to_pylist():
            found.append(tuple(row.values()))
            prompt = clock.now() <= (row["window_end"] + BOUND) * SECOND + GRAIN
            assert prompt or beats or tick != 0  # a tick also delays the reading of rows

    idle = lw.heartbeat("3 s", 0, BOUND) if beats else lw.on_demand(behind_clock=BOUND)
    query = answered([lw.replay(each, "at") for each in logs], idle, KEYS[keys])
    run = query.run(clock=clock, tick=tick, chunk_rows=chunk_rows, sink=sink)
    run.await_termination()
    assert run.metrics().late_rows == 0
    names = ("window_start", "window_end", "c", "n")
    results = pl.DataFrame(found, schema=dict.fromkeys(names), orient="row", strict=False)
    assert table_rows(results) == answer(SQL, {"a": pl.concat(logs)})


@given(
    keys=st.sampled_from(sorted(KEYS)),
    steps=st.lists(st.lists(st.tuples(st.integers(0, 999), st.sampled_from("xy")), max_size=3)),
    batches=st.sampled_from([1, 3, 1_000]),
    seed=st.integers(0, 2**16),
    buckets=st.integers(1, 3),
    alone=st.booleans(),
)
def test_on_spark_rows_below_the_clock_less_the_bound_are_late_and_no_others(
    keys: str,
    steps: list[list[tuple[int, str]]],
    batches: int,
    seed: int,
    buckets: int,
    alone: bool,
) -> None:
    cells = [
        (0.0, (step + 1) * BATCH_SECONDS - ago, c)
        for step, each in enumerate(steps)
        for ago, c in each
    ]
    table = pl.DataFrame(cells, schema=SCHEMA, orient="row").drop("at")
    silent = table.clear()
    sources = [Unordered(table, [len(each) for each in steps]), Unordered(silent, [])]
    idle = lw.on_demand(behind_clock=batches * BATCH_SECONDS)
    streams = [
        lw.stream(each, name=name, time="ts", progress=lw.within("1 day"), idle=idle, **KEYS[keys])  # type: ignore[arg-type]
        for each, name in zip(sources, ("s0", "s1"), strict=True)
    ]
    both = streams[0] if alone else streams[0].union(streams[1])
    counted = both.window(2).group_by("c").agg(n="count(*)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local = LocalSpark(counted, seed, buckets)
        found = local.results()
    late = local.late("s0")
    kept = table
    if late is not None:
        assert set(late["_reason"]) == {"late"}
        assert (late["ts"] < late["_mark"]).all()
        last = len(local.answers) * BATCH_SECONDS
        assert late["_mark"].max() <= last - batches * BATCH_SECONDS  # type: ignore[operator]
        gone = (
            late.select("ts", "c")
            .with_row_index("n")
            .with_columns(pl.int_range(pl.len()).over("ts", "c").alias("n"))
        )
        kept = table.with_columns(pl.int_range(pl.len()).over("ts", "c").alias("n"))
        kept = kept.join(gone, on=["ts", "c", "n"], how="anti").drop("n")
    assert batches < 1_000 or late is None
    assert table_rows(found) == answer(SQL, {"a": kept})
