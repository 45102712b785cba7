"""Rows that a function moves below what was promised are late rows, however they were cut."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

ROWS = 100
CHUNKS = [1, 7, 33, 100, 1_000]


def moved(rows: pl.DataFrame) -> pl.DataFrame:
    """Every tenth row 30 seconds back."""
    back = pl.when(pl.col("v") % 10 == 9).then(30).otherwise(0)
    return rows.with_columns(ts=pl.col("ts") - back)


def log(seed: int = 0) -> pl.DataFrame:
    chance = random.Random(seed)
    times = [at - chance.randint(0, 5) for at in range(ROWS)]
    return pl.DataFrame({"ts": times, "v": range(ROWS)})


def stream(table: pl.DataFrame, **options: Any) -> lw.Stream:
    source = lw.replay(table)
    return lw.stream(source, **{"name": "s", "time": "ts", "progress": lw.within(5)} | options)


def on_time(table: pl.DataFrame, slack: int = 5) -> pl.Series:
    """Which rows are not below what the rows before them promised."""
    newest = table["ts"].shift(1).cum_max().fill_null(-(10**6))
    after = moved(table)["ts"]
    return (after >= table["ts"]) | (after >= newest - slack)


def late_of(run: lw.Run) -> list[int]:
    return sorted(run.late_rows("s")["v"].to_pylist())


@pytest.mark.parametrize("chunk_rows", CHUNKS)
def test_what_is_moved_back_is_late_whatever_the_chunk(chunk_rows: int) -> None:
    table = log()
    query = stream(table).apply(moved).window(10).agg(n="count(*)", total="sum(v)")
    run = query.run(chunk_rows=chunk_rows)
    run.await_termination()
    fine = on_time(table)
    late = table.filter(~fine)["v"].to_list()
    assert 0 < len(late) < ROWS // 5
    assert late_of(run) == late
    told = run.metrics().stream("s")
    assert told.refused_rows == len(late)
    assert {(each.reason, each.rows) for each in told.late} == {("late", len(late))}
    sql = """SELECT ts - (ts % 10 + 10) % 10, ts - (ts % 10 + 10) % 10 + 10, count(*), sum(v)
             FROM kept GROUP BY ALL"""
    assert table_rows(run.results()) == answer(sql, {"kept": moved(table).filter(fine)})


@pytest.mark.parametrize("chunk_rows", CHUNKS)
def test_late_rows_of_a_function_go_where_the_stream_says(chunk_rows: int) -> None:
    table = log()
    dropped = stream(table, late="drop").apply(moved).window(10).agg(n="count(*)")
    run = dropped.run(chunk_rows=chunk_rows)
    run.await_termination()
    assert run.late_rows("s").num_rows == 0
    assert run.metrics().late_rows == (~on_time(table)).sum()
    failing = stream(table, late="fail").apply(moved).window(10).agg(n="count(*)")
    with pytest.raises(lw.BrokenPromise, match="stream 's': a row has ts = "):
        failing.collect(chunk_rows=chunk_rows)


@pytest.mark.parametrize("chunk_rows", CHUNKS)
@pytest.mark.parametrize(
    "function",
    [
        lambda rows: rows,
        lambda rows: rows.reverse(),
        lambda rows: rows.filter(pl.col("v") % 2 == 0),
        lambda rows: pl.concat([rows, rows]),
        lambda rows: rows.with_columns(ts=pl.col("ts") + 7),
    ],
)
def test_a_function_that_moves_nothing_back_makes_no_row_late(
    function: Any, chunk_rows: int
) -> None:
    table = log()
    run = stream(table).apply(function).window(10).agg(n="count(*)").run(chunk_rows=chunk_rows)
    run.await_termination()
    assert run.metrics().late_rows == 0
    assert sum(row["n"] for row in run.results().to_pylist()) == function(table).height


def test_in_batches_rows_are_judged_by_what_was_promised_before() -> None:
    table = log()
    query = stream(table).apply(moved).window(10).group_by("v").agg(n="count(*)")
    for buckets in (1, 3):
        local = LocalSpark(query, 5, buckets)
        kept = sorted(local.results()["v"])
        late = local.late("s")
        assert late is not None
        assert late.height > 0
        assert sorted([*kept, *late["v"]]) == list(range(ROWS))
        assert set(late["v"]) <= set(table.filter(~on_time(table))["v"])


def test_rows_nobody_holds_to_a_promise_pass() -> None:
    found = stream(log()).apply(moved).collect()
    assert found.num_rows == ROWS
