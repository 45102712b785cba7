"""Rows that are stamped as they come in get the time at which they arrived.

Whatever the tick, the size of chunks and the cut into batches, windows over such streams are those
of a batch query over the column of arrival times.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

ARRIVALS = st.lists(st.integers(0, 300), max_size=25).map(sorted)
STARTS = st.sampled_from([0, -100, -7, 3, 1_700_000_000])
WINDOW = "SELECT a - ((a % 60) + 60) % 60 AS ws, k, count(*), sum(v) FROM {log} GROUP BY ALL"
IDLE: dict[str, Any] = {"none": None, "on demand": lw.on_demand(), "beats": lw.heartbeat("9 s")}


def log_of(arrivals: list[int], start: int) -> pl.DataFrame:
    shifted = [start + each for each in arrivals]
    columns = {"a": shifted, "v": range(len(shifted)), "k": [each % 2 for each in shifted]}
    return pl.DataFrame(columns, schema=dict.fromkeys("avk", pl.Int64))


def stamped(name: str, log: pl.DataFrame, **options: Any) -> lw.Stream:
    return lw.stream(lw.replay(log, "a"), name=name, time="ts", stamp="internal", **options)


def windows(stream: lw.Stream) -> lw.Stream:
    return stream.window("1 minute").group_by("k").agg(n="count(*)", total="sum(v)")


def found(table: Any) -> Any:
    start = pl.col("window_start").dt.epoch("s")
    return table_rows(pl.DataFrame(table).select(start, "k", "n", "total"))


@pytest.mark.parametrize("idle", IDLE)
@given(
    logs=st.lists(ARRIVALS, min_size=1, max_size=3),
    start=STARTS,
    tick=st.sampled_from([None, 0, "1 s", "37 s", "10 minutes"]),
    chunk_rows=st.sampled_from([1, 2, 7, None]),
    plan=st.sampled_from(["out-of-order", "in-order"]),
)
def test_windows_are_those_of_the_arrivals(
    idle: str, logs: list[list[int]], start: int, tick: Any, chunk_rows: int | None, plan: Any
) -> None:
    tables = [log_of(each, start) for each in logs]
    inputs = [stamped(f"s{at}", each, idle=IDLE[idle]) for at, each in enumerate(tables)]
    stream = inputs[0].union(*inputs[1:]) if len(inputs) > 1 else inputs[0]
    got = windows(stream).collect(tick=tick, chunk_rows=chunk_rows, plan=plan)
    assert found(got) == answer(WINDOW.format(log="log"), {"log": pl.concat(tables)})


@given(
    one=ARRIVALS, two=ARRIVALS, start=STARTS, seed=st.integers(0, 999), buckets=st.integers(1, 3)
)
def test_windows_in_batches_are_those_of_the_arrivals(
    one: list[int], two: list[int], start: int, seed: int, buckets: int
) -> None:
    tables = [log_of(one, start), log_of(two, start)]
    stream = stamped("a", tables[0]).union(stamped("b", tables[1]))
    got = LocalSpark(windows(stream), seed, buckets).results()
    assert found(got) == answer(WINDOW.format(log="log"), {"log": pl.concat(tables)})
