"""Every kernel against the oracle: any rows, order, cuts, interleaving and restarts."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from tests.support.checked_run import CheckedRun
from tests.support.oracle import answer, multiset, table_rows
from tests.support.streams import Sample, samples

SHAPES = st.sampled_from(["out-of-order", "in-order"])


def check(query: Stream, sql: str, data: Any, *streams: Sample) -> CheckedRun:
    """A query gives DuckDB's answer over the kept rows."""
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    got = table_rows(run.results())
    expected = answer(sql, {each.stream._node.spec.name: each.kept for each in streams})
    assert got == expected
    for each in streams:
        refused = run.refused.get(each.stream._node.spec.name, [])
        rows = pl.concat(refused).select(each.late.columns) if refused else each.late.clear()
        assert multiset(rows.rows()) == multiset(each.late.rows())
    return run


@given(samples("a"), st.data())
def test_select_equals_batch(a: Sample, data: Any) -> None:
    check(a.stream.where("v > 0 OR k = 1"), "SELECT * FROM a WHERE v > 0 OR k = 1", data, a)


@given(samples("a"), st.data())
def test_project_equals_batch(a: Sample, data: Any) -> None:
    query = a.stream.select("ts", later="ts + 5", twice="v * 2", half="v / 2")
    check(query, "SELECT ts, ts + 5, v * 2, v / 2 FROM a", data, a)


@given(samples("a"), st.data())
def test_apply_equals_batch(a: Sample, data: Any) -> None:
    query = a.stream.apply(lambda chunk: chunk.with_columns(pl.col("v") + 1))
    check(query, "SELECT ts, k, s, v + 1 FROM a", data, a)


@given(samples("a"), samples("b"), samples("c"), st.data())
def test_union_equals_batch(a: Sample, b: Sample, c: Sample, data: Any) -> None:
    sql = "SELECT * FROM a UNION ALL SELECT * FROM b UNION ALL SELECT * FROM c"
    check(a.stream.union(b.stream, c.stream), sql, data, a, b, c)


@given(samples("a"), st.data())
def test_distinct_equals_batch(a: Sample, data: Any) -> None:
    check(a.stream.distinct("ts", "k"), "SELECT DISTINCT ts, k FROM a", data, a)


@given(samples("a"), samples("b"), st.data())
def test_order_by_gives_every_row_in_order(a: Sample, b: Sample, data: Any) -> None:
    query = a.stream.union(b.stream).order_by()
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    times = run.results()["ts"].to_list()
    assert times == sorted(times)
    check(query, "SELECT * FROM a UNION ALL SELECT * FROM b", data, a, b)


WINDOWED = """
    SELECT w.start, w.start + {range} AS "end", {keys} {aggregates}
    FROM (SELECT unnest(generate_series(
            CAST(floor((ts - {range}) / {slide}.0) AS BIGINT) + 1,
            CAST(floor(ts / {slide}.0) AS BIGINT))) * {slide} AS start, * FROM {source}) w
    GROUP BY w.start {groups}
"""
AGGREGATES = {
    "n": ("count(*)", "count(*)"),
    "nv": ("count(v)", "count(v)"),
    "total": ("sum(v)", "CAST(sum(v) AS BIGINT)"),
    "mean": ("avg(v)", "avg(v)"),
    "least": ("min(v)", "min(v)"),
    "most": ("max(v + k)", "max(v + k)"),
    "spread": ("stddev(v)", "stddev(v)"),
    "kinds": ("count(DISTINCT v)", "count(DISTINCT v)"),
    "first": ("first(v)", "first(v ORDER BY ts, v) FILTER (v IS NOT NULL)"),
    "last": ("last(v)", "last(v ORDER BY ts, v) FILTER (v IS NOT NULL)"),
}


@st.composite
def closings(draw: Any, grouped: bool) -> dict[str, Any]:
    """How rows wait for a window to close and how its answers leave; no answer depends on it."""
    windows = st.integers(1, 3)
    flush = draw(
        st.one_of(
            st.none(),
            st.builds(lw.slow, st.integers(1, 5), windows),
            st.builds(lw.lazy, windows),
        )
    )
    keep = draw(st.sampled_from([None, "panes", "windows", "rows"]))
    table = draw(st.none() | st.integers(1, 8)) if grouped and keep != "rows" else None
    return {"flush": flush, "keep": keep, "table": table}


SLOWLY = st.none() | st.builds(lw.slow, st.integers(1, 5), within=st.integers(1, 12))
"""How answers that wait for no window's end leave; no answer depends on it."""


def unmatched(draw: Any, how: str) -> Any:
    """How rows without a partner leave; None for joins that have none."""
    return None if how in ("inner", "semi") else draw(SLOWLY)


@given(samples("a"), samples("b"), st.integers(1, 12), st.integers(1, 12), st.data())
def test_window_aggregate_equals_batch(
    a: Sample, b: Sample, size: int, slide: int, data: Any
) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, unique=True))
    keys = data.draw(st.sampled_from([(), ("k",), ("k", "s")]))
    query = (
        a.stream.union(b.stream)
        .window(size, slide=slide, **data.draw(closings(bool(keys))))
        .group_by(*keys)
        .agg(**{name: AGGREGATES[name][0] for name in names})
    )
    sql = WINDOWED.format(
        range=size,
        slide=slide,
        keys="".join(f"{key}, " for key in keys),
        groups="".join(f", {key}" for key in keys),
        aggregates=", ".join(AGGREGATES[name][1] for name in names),
        source="(SELECT * FROM a UNION ALL SELECT * FROM b)",
    )
    check(query, sql, data, a, b)


@given(samples("a", channels=False), st.integers(1, 6), st.integers(1, 6), st.data())
def test_row_window_counts_rows_as_they_came_in(
    a: Sample, size: int, slide: int, data: Any
) -> None:
    query = (
        a.stream.where("k IS NOT NULL")
        .window(rows=size, slide_rows=slide)
        .agg(n="count(*)", total="sum(v)")
    )
    sql = WINDOWED.replace("ts", "seq").format(
        range=size,
        slide=slide,
        keys="",
        groups="",
        aggregates="count(*), CAST(sum(v) AS BIGINT)",
        source="numbered WHERE k IS NOT NULL",
    )
    assert a.numbers is not None  # a late row has a number, too
    numbered = a.kept.with_columns(a.numbers.cast(pl.Int64).alias("seq"))
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    assert table_rows(run.results()) == answer(sql, {"numbered": numbered})


@given(samples("a"), st.data())
def test_group_by_progressing_attribute_equals_batch(a: Sample, data: Any) -> None:
    query = a.stream.group_by("ts", "k").agg(n="count(*)", most="max(v)")
    check(query, "SELECT ts, k, count(*), max(v) FROM a GROUP BY ts, k", data, a)


def _span(values: tuple[int, int]) -> tuple[int, int]:
    return min(values), max(values)


BANDS = st.one_of(
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
    st.tuples(st.integers(-3, 0), st.integers(3, 6)),
)


@given(samples("a", most=14), samples("b", most=14), BANDS, st.data())
def test_band_join_equals_batch(a: Sample, b: Sample, band: tuple[int, int], data: Any) -> None:
    how = data.draw(st.sampled_from(["inner", "left", "right", "full"]))
    on = data.draw(st.sampled_from([["k"], ["k", "s"], []]))
    where = data.draw(st.sampled_from([None, "v < v_right"]))
    flush = unmatched(data.draw, how)
    query = a.stream.join(b.stream, on=on, within=band, where=where, how=how, flush=flush)
    match = f"b.ts >= a.ts - {band[0]} AND b.ts <= a.ts + {band[1]}"
    match += "".join(f" AND a.{key} = b.{key}" for key in on)
    match += " AND a.v < b.v" if where else ""
    keys = {key: f"coalesce(a.{key}, b.{key})" for key in on}
    left = ", ".join(keys.get(name, f"a.{name}") for name in ("ts", "k", "s", "v"))
    right = ", ".join(f"b.{name}" for name in ("ts", "k", "s", "v") if name not in on)
    check(query, f"SELECT {left}, {right} FROM a {how} JOIN b ON {match}", data, a, b)


@given(samples("a", most=14), samples("b", most=14), st.integers(1, 12), st.data())
def test_tumbling_window_join_equals_batch(a: Sample, b: Sample, width: int, data: Any) -> None:
    how = data.draw(st.sampled_from(["inner", "left", "right", "full"]))
    flush = unmatched(data.draw, how)
    if flush is not None and data.draw(st.booleans()):
        flush = lw.slow(2, within_windows=data.draw(st.integers(1, 2)))
    on = [("k", "v")]
    query = a.stream.join(b.stream, on=on, within=lw.same(width), how=how, flush=flush)
    match = f"floor(a.ts / {width}.0) = floor(b.ts / {width}.0) AND a.k = b.v"
    sql = f"SELECT a.*, b.* FROM a {how} JOIN b ON {match}"
    check(query, sql, data, a, b)


@given(samples("a", most=14), samples("b", most=14), st.data())
def test_equality_join_on_time_equals_batch(a: Sample, b: Sample, data: Any) -> None:
    how = data.draw(st.sampled_from(["inner", "left", "right", "full"]))
    flush = unmatched(data.draw, how)
    query = a.stream.join(b.stream, on=["ts", "k"], how=how, flush=flush)
    sql = f"""SELECT coalesce(a.ts, b.ts), coalesce(a.k, b.k), a.s, a.v, b.s, b.v
              FROM a {how} JOIN b ON a.ts = b.ts AND a.k = b.k"""
    check(query, sql, data, a, b)


@given(samples("a", most=14), samples("b", most=14), st.data())
def test_half_join_on_time_progresses_on_it(a: Sample, b: Sample, data: Any) -> None:
    how = data.draw(st.sampled_from(["semi", "anti"]))
    flush = unmatched(data.draw, how)
    joined = a.stream.join(b.stream, on=["ts", "k"], how=how, flush=flush)
    query = joined.group_by("ts").agg(n="count(*)")
    exists = "NOT EXISTS" if how == "anti" else "EXISTS"
    sql = f"""SELECT ts, count(*) FROM a WHERE {exists} (
                  SELECT * FROM b WHERE a.ts = b.ts AND a.k = b.k) GROUP BY ts"""
    check(query, sql, data, a, b)


@given(samples("a", most=12), samples("b", most=12), st.integers(0, 6), st.data())
def test_join_then_group_by_both_times_equals_batch(
    a: Sample, b: Sample, band: int, data: Any
) -> None:
    query = (
        a.stream.join(b.stream, on="k", within=band).group_by("ts", "ts_right").agg(n="count(*)")
    )
    sql = f"""SELECT a.ts, b.ts, count(*) FROM a JOIN b
              ON a.k = b.k AND b.ts BETWEEN a.ts - {band} AND a.ts + {band} GROUP BY a.ts, b.ts"""
    check(query, sql, data, a, b)


@given(samples("a", most=12), samples("b", most=12), st.integers(0, 6), st.data())
def test_join_then_window_on_either_time_equals_batch(
    a: Sample, b: Sample, band: int, data: Any
) -> None:
    out, column = data.draw(st.sampled_from([("ts", "a.ts"), ("ts_right", "b.ts")]))
    query = a.stream.join(b.stream, on="k", within=band).window(10, on=out).agg(n="count(*)")
    sql = f"""SELECT CAST(floor({column} / 10.0) AS BIGINT) * 10,
                     CAST(floor({column} / 10.0) AS BIGINT) * 10 + 10, count(*)
              FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - {band} AND a.ts + {band}
              GROUP BY ALL"""
    check(query, sql, data, a, b)


@pytest.mark.parametrize("function", ["greatest", "least", "coalesce"])
@given(a=samples("a", most=12), b=samples("b", most=12), band=st.integers(0, 6), data=st.data())
def test_full_join_windowed_on_a_function_of_both_times(
    function: str, a: Sample, b: Sample, band: int, data: Any
) -> None:
    flush = data.draw(SLOWLY)
    query = (
        a.stream.join(b.stream, on="k", within=band, how="full", flush=flush)
        .map(t=f"{function}(ts, ts_right)")
        .window(10, on="t")
        .agg(n="count(*)")
    )
    sql = f"""SELECT CAST(floor(t / 10.0) AS BIGINT) * 10,
                     CAST(floor(t / 10.0) AS BIGINT) * 10 + 10, count(*)
              FROM (SELECT {function}(a.ts, b.ts) AS t FROM a FULL JOIN b
                    ON a.k = b.k AND b.ts BETWEEN a.ts - {band} AND a.ts + {band}) GROUP BY ALL"""
    check(query, sql, data, a, b)


@given(samples("a"), st.data())
def test_user_aggregate_equals_batch(a: Sample, data: Any) -> None:
    longest = lw.aggregate(
        init=lambda: 0,
        add=lambda state, chunk: state + int(chunk["v"].fill_null(0).abs().sum()),
        merge=lambda one, two: one + two,
        finish=lambda state: state,
        columns=("v",),
        returns=pl.Int64,
    )
    query = a.stream.window(10).group_by("k").agg(size=longest, n="count(*)")
    sql = WINDOWED.format(
        range=10,
        slide=10,
        keys="k, ",
        groups=", k",
        source="a",
        aggregates="CAST(coalesce(sum(abs(v)), 0) AS BIGINT), count(*)",
    )
    check(query, sql, data, a)
