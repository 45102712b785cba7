"""A union promises what is true of all its rows, for any mix of attributes, units and types."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.stream.time_domain import UNITS
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

ROWS = st.lists(st.tuples(st.integers(-30, 90), st.integers(-30, 90)), max_size=12)
TYPES = st.sampled_from(["s", "ms", "us", pl.Datetime("ms"), pl.Datetime("us")])
COLUMNS = st.sampled_from([("ts",), ("sent",), ("ts", "sent")])


@st.composite
def inputs(draw: Any, name: str) -> tuple[lw.Stream, pl.DataFrame]:
    """A stream that promises one of two times or both, in some unit, and its rows in seconds."""
    table = pl.DataFrame(draw(ROWS), schema={"ts": pl.Int64, "sent": pl.Int64}, orient="row")
    promised, dtype = draw(COLUMNS), draw(TYPES)
    unit = dtype if isinstance(dtype, str) else dtype.time_unit
    shown = table.select(pl.all() * UNITS[unit])
    if not isinstance(dtype, str):
        shown = shown.cast(dtype)
    stream = lw.stream(
        lw.replay(shown),
        name=name,
        time=promised[0],
        progress=dict.fromkeys(promised, lw.within("1000 s")),
        unit=unit,
    )
    return stream, table


@given(inputs("a"), inputs("b"), inputs("c"), st.data())
def test_common_times_are_promised_in_the_finest_unit(a: Any, b: Any, c: Any, data: Any) -> None:
    streams, tables = zip(a, b, c, strict=True)
    columns = [data.draw(st.sampled_from(list(each._node.progress))) for each in streams]
    # only the common time has one type in all streams
    cut = [each.select(column, t=column) for each, column in zip(streams, columns, strict=True)]
    same = [each.select(t="t") for each in cut]
    union = same[0].union(*same[1:], time={"t": "t"})
    assert union.time == "t"
    query = union.window("20 s").agg(n="count(*)")
    bound = data.draw(st.none() | st.integers(-2, 4))
    domain = query._node.inputs[0].progress["t"].domain
    if bound is not None:
        at = bound * 20 * domain.ticks_per_second
        query = query.forget_before(
            at if domain.dtype.is_integer() else pl.Series([at]).cast(domain.dtype)[0]
        )
    starts = " UNION ALL ".join(
        f"SELECT floor({column} / 20.0) AS s FROM {name}"
        for column, name in zip(columns, "abc", strict=True)
    )
    sql = f"SELECT CAST(s AS BIGINT) * 20, count(*) FROM ({starts}) GROUP BY s"
    sql += "" if bound is None else f" HAVING s >= {bound}"
    expected = answer(sql, dict(zip("abc", tables, strict=True)))
    for found in (
        CheckedRun(query, data.draw).results(),
        LocalSpark(query, data.draw(st.integers(0, 99))).results(),
    ):
        seconds = pl.col("window_start").to_physical() // domain.ticks_per_second
        assert table_rows(found.select(seconds, "n")) == expected


@given(inputs("a"), inputs("b"), st.data())
def test_a_union_progresses_on_what_all_streams_promise(a: Any, b: Any, data: Any) -> None:
    streams = [a[0], b[0]]
    if dict(streams[0]._node.schema) != dict(streams[1]._node.schema):
        return
    progress = [each._node.progress for each in streams]
    common = {
        name
        for name, each in progress[0].items()
        if name in progress[1] and progress[1][name].domain == each.domain
    }
    if not common:
        with pytest.raises(lw.QueryError, match=r"nothing could be .*union\(\.\.\., time={"):
            streams[0].union(streams[1])
        return
    union = streams[0].union(streams[1])
    assert set(union._node.progress) == common
    explained = union.explain()
    for name in {*progress[0], *progress[1]} - common:
        assert f"does not progress beyond the union: {name}" in explained
    run = CheckedRun(union, data.draw)  # it fails if a promise is broken
    assert run.results().height == a[1].height + b[1].height
