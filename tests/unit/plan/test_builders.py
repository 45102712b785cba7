"""Queries that cannot be run say why and what would be right."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.unit.running import column


def stream(**options: Any) -> lw.Stream:
    frame = pl.DataFrame({"ts": [1, 2], "k": [1, 1], "v": [0.5, 1.5], "s": ["a", "b"]})
    return lw.stream(frame, **{"time": "ts"} | options)


def clocked() -> lw.Stream:
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    return lw.stream(pl.DataFrame({"ts": moments, "k": [1, 2]}), time="ts")


# ---- windows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, "0 s", "-1 minute", -5])
def test_a_window_without_length_is_refused(length: Any) -> None:
    with pytest.raises(lw.OptionError, match="a window must be longer than zero"):
        stream().window(length)


@pytest.mark.parametrize("slide", [0, "-1 s"])
def test_a_window_without_slide_is_refused(slide: Any) -> None:
    with pytest.raises(lw.OptionError, match="a window's slide must be longer than zero"):
        stream().window("1 minute", slide)


@pytest.mark.parametrize("rows", [0, -3, 2.5, True, "10"])
def test_a_window_of_rows_needs_a_whole_number(rows: Any) -> None:
    with pytest.raises(lw.OptionError, match="a whole number above zero"):
        stream().window(rows=rows)


def test_a_window_finer_than_the_time_column_is_refused() -> None:
    with pytest.raises(lw.OptionError, match="a window of 10 ms is finer than the time column"):
        stream().window("10 ms")
    with pytest.raises(lw.OptionError, match="a window's slide of 10 ms is finer"):
        stream().window("1 s", "10 ms")


def test_a_window_needs_a_length() -> None:
    with pytest.raises(lw.OptionError, match="a window needs a length"):
        stream().window()


def test_a_window_has_a_length_or_a_number_of_rows() -> None:
    with pytest.raises(lw.OptionError, match="not both"):
        stream().window("1 s", rows=5)


def test_a_window_on_a_column_that_does_not_progress_is_refused() -> None:
    with pytest.raises(lw.QueryError, match=r"'k' is not one here \(progressing: ts\)"):
        stream().window("1 s", on="k")


def test_a_window_on_an_unknown_column_is_refused() -> None:
    with pytest.raises(lw.QueryError, match=r"unknown column 'tss'. Did you mean 'ts'"):
        stream().window("1 s", on="tss")


def test_a_window_over_rows_that_lost_their_time_is_refused() -> None:
    with pytest.raises(
        lw.QueryError, match="needs a progressing attribute, and this stream has none"
    ):
        stream().select("k").window("1 s")


def test_a_window_of_rows_over_a_union_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="a window of rows counts the rows of one source"):
        stream().union(stream()).window(rows=5)


def test_a_window_of_rows_over_a_filtered_source_counts_the_rows_of_the_source() -> None:
    frame = pl.DataFrame({"ts": range(6), "v": range(6)})
    query = lw.stream(frame, time="ts").where("v % 2 = 1").window(rows=3).agg(s="sum(v)")
    assert column(query, "s") == [1, 3 + 5]


@pytest.mark.parametrize("name", ["window_start", "window_end"])
def test_the_columns_of_a_window_cannot_be_taken(name: str) -> None:
    with pytest.raises(lw.QueryError, match="choose another name"):
        stream().window("1 s").agg(**{name: "count(*)"})


# ---- aggregates --------------------------------------------------------------------------------


def test_an_aggregate_needs_something_to_compute() -> None:
    with pytest.raises(lw.OptionError, match="agg needs at least one aggregate"):
        stream().window("1 s").agg()


def test_groups_must_be_columns() -> None:
    with pytest.raises(lw.QueryError, match="unknown group column 'kk'"):
        stream().window("1 s").group_by("kk").agg(n="count(*)")


def test_a_group_and_an_aggregate_cannot_share_a_name() -> None:
    with pytest.raises(lw.QueryError, match="'k' is both a group column and an aggregate"):
        stream().window("1 s").group_by("k").agg(k="count(*)")


def test_sums_need_numbers() -> None:
    with pytest.raises(lw.QueryError, match="sum needs numbers, and this is String"):
        stream().window("1 s").agg(x="sum(s)")


def test_distinct_is_for_counting() -> None:
    with pytest.raises(lw.QueryError, match=r"sum\(DISTINCT ...\) is not supported"):
        stream().window("1 s").agg(x="sum(DISTINCT k)")


def test_groups_that_never_end_are_refused() -> None:
    with pytest.raises(lw.QueryError, match="this aggregate could never answer"):
        stream().group_by("k").agg(n="count(*)")


def test_distinct_without_progress_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="would have to remember every row for ever"):
        stream().distinct("k")


# ---- rows --------------------------------------------------------------------------------------


def test_select_needs_a_column() -> None:
    with pytest.raises(lw.OptionError, match="select needs at least one column"):
        stream().select()


def test_select_of_an_unknown_column_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="unknown column 'vv'"):
        stream().select("vv")


def test_names_with_two_underscores_are_reserved() -> None:
    with pytest.raises(lw.OptionError, match="start with two underscores are reserved"):
        stream().map(__x="k")


def test_apply_takes_a_function() -> None:
    with pytest.raises(lw.OptionError, match="apply takes a function, not str"):
        stream().apply("f")  # type: ignore[arg-type]


def test_order_by_needs_progress() -> None:
    with pytest.raises(lw.QueryError, match="order_by needs a progressing attribute"):
        stream().order_by("k")
    with pytest.raises(lw.QueryError, match="order_by needs a progressing attribute"):
        stream().select("k").order_by()


# ---- unions and joins --------------------------------------------------------------------------


def test_a_union_of_different_columns_shows_both() -> None:
    with pytest.raises(
        lw.QueryError, match=r"union needs streams with the same columns: \(ts Int64"
    ):
        stream().union(stream().select("ts", "k"))


def test_a_union_of_different_types_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="the same columns"):
        stream().union(clocked())


def test_a_union_of_different_units_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="count time in different units"):
        stream().union(stream(unit="ms"))


def test_a_union_needs_two_streams() -> None:
    with pytest.raises(lw.OptionError, match="union needs at least two streams"):
        stream().union()
    with pytest.raises(lw.OptionError, match="union takes streams, not list"):
        stream().union([stream()])  # type: ignore[arg-type]


def test_a_join_without_bound_is_refused_with_the_ways_to_bound_it() -> None:
    with pytest.raises(lw.QueryError, match=r"could never forget a row.*within=\('2 minutes'"):
        stream().join(stream(), on="k")


def test_a_join_on_the_time_itself_is_bounded() -> None:
    assert stream().join(stream(), on=["ts", "k"]).collect().num_rows == 2


def test_an_unknown_kind_of_join_is_refused_with_the_known_ones() -> None:
    with pytest.raises(lw.OptionError, match=r"how= is one of 'inner', .*'anti'.*, not 'outer'"):
        stream().join(stream(), on="k", within="1 s", how="outer")  # type: ignore[arg-type]


@pytest.mark.parametrize("within", [("1 s", "-2 s"), "-1 s"])
def test_an_empty_band_is_refused(within: Any) -> None:
    with pytest.raises(lw.OptionError, match="is empty: it ends before it begins"):
        stream().join(stream(), on="k", within=within)


@pytest.mark.parametrize("width", [0, "-1 s"])
def test_same_needs_a_length(width: Any) -> None:
    with pytest.raises(lw.OptionError, match=r"same\(...\) takes a length of time above zero"):
        stream().join(stream(), on="k", within=lw.same(width))


def test_join_columns_must_be_known_and_of_one_type() -> None:
    with pytest.raises(lw.QueryError, match="unknown join column 'kk'"):
        stream().join(stream(), on="kk", within="1 s")
    with pytest.raises(
        lw.QueryError, match="join columns must have one type: 'k' is Int64 and 's'"
    ):
        stream().join(stream(), on={"k": "s"}, within="1 s")


def test_times_of_different_kinds_cannot_be_joined() -> None:
    with pytest.raises(lw.QueryError, match="a join compares times of one kind"):
        stream().join(clocked(), on="k", within="1 s")


def test_a_join_that_would_name_a_column_twice_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="would come twice"):
        stream().map(v_right="v").join(stream(), on="k", within="1 s")


def test_a_nullable_time_of_an_outer_join_cannot_be_windowed() -> None:
    other = stream().select(later="ts", k="k")
    joined = stream().join(other, on="k", within="1 s", how="left")
    with pytest.raises(lw.QueryError, match="an outer join can leave it null"):
        joined.window("1 s", on="later")


# ---- options of a run --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"plan": "sorted"}, "plan= is 'out-of-order' or 'in-order', not 'sorted'"),
        ({"engine": "flink"}, "unknown engine 'flink'; this version has: embedded"),
        ({"chunk_rows": 0}, "chunk_rows is a whole number above zero, not 0"),
        ({"tick": "-1 s"}, "tick= is a length of time of zero or more"),
        ({"chunk_rows": True}, "chunk_rows is a whole number above zero"),
        ({"chunk_rows": 1.5}, "chunk_rows is a whole number above zero"),
        ({"clock": "sundial"}, "clock= is 'virtual' or 'wall', not 'sundial'"),
        ({"tick": "often"}, "tick 'often' is not a length of time"),
    ],
)
def test_bad_options_of_a_run_say_what_is_right(options: Any, says: str) -> None:
    with pytest.raises(lw.OptionError, match=says):
        stream().collect(**options)
    with pytest.raises(lw.OptionError, match=says):
        stream().run(**options)


def test_a_bad_sink_says_what_is_right() -> None:
    with pytest.raises(lw.OptionError, match="sink= is a folder, a function of a pyarrow table"):
        stream().run(sink=5)


def test_explain_checks_the_shape_too() -> None:
    with pytest.raises(lw.OptionError, match="plan= is"):
        stream().explain("sideways")  # type: ignore[arg-type]


def test_results_that_went_to_a_sink_are_not_kept() -> None:
    run = stream().run(sink=lambda table: None)
    assert run.await_termination(60)
    with pytest.raises(lw.OptionError, match="results went to the sink"):
        run.results()


def test_streams_know_their_columns_types_and_time() -> None:
    got = stream().map(twice="k * 2")
    assert got.columns == ["ts", "k", "v", "s", "twice"]
    assert got.schema["twice"] == pl.Int64
    assert got.time == "ts"
    assert got.select(when="ts").time == "when"
    assert got.select("k").time is None


def test_a_slide_of_rows_must_be_above_zero_and_goes_with_rows() -> None:
    with pytest.raises(lw.OptionError, match="a whole number above zero, not 0"):
        stream().window(rows=10, slide_rows=0)
    with pytest.raises(lw.OptionError, match="slide_rows= goes with rows="):
        stream().window(slide_rows=3)
    assert stream().window("1 s", slide_rows=3).agg(n="count(*)").columns[-1] == "n"


def test_an_unknown_charge_is_refused_with_the_known_ones() -> None:
    with pytest.raises(lw.OptionError, match="charge= is 'nothing', 'measured', nano"):
        stream().run(charge="a lot")  # type: ignore[arg-type]


def test_two_streams_of_one_name_are_refused() -> None:
    with pytest.raises(lw.QueryError, match="two streams are named 'twin'"):
        stream(name="twin").union(stream(name="twin")).collect()


def test_an_interval_without_fixed_length_computes_but_does_not_progress() -> None:
    query = clocked().map(later="ts + INTERVAL '1 month'")
    assert column(query, "later") == [datetime(2024, 2, 1), datetime(2024, 2, 2)]
    with pytest.raises(lw.QueryError, match="'later' is not one here"):
        query.window("1 day", on="later")


@pytest.mark.parametrize("call", ["count(*)", "count(1)", "sum(1)"])
def test_an_ungrouped_window_counts_rows_not_chunks(call: str) -> None:
    frame = pl.DataFrame({"ts": [1, 1, 2, 3, 12]})
    query = lw.stream(frame, time="ts").window("10 s").agg(n=call)
    for chunk_rows in (1, 2, 100):
        assert column(query, "n", chunk_rows=chunk_rows) == [4, 1]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("text", ["greatest(ts, tb)", "least(ts, tb)", "coalesce(tb, ts)"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_window_over_the_times_of_a_join_loses_no_row(how: Any, text: str, first: int) -> None:
    # One side is far ahead of the other, so its mark is too.
    times = [[1, 4, 9, 15, 22, 40], [2, 3, 11, 21, 30, 55]]
    arrivals = [[n / 10 + (100 if side != first else 0) for n in range(6)] for side in (0, 1)]
    a, b = (
        lw.replay(pl.DataFrame({"at": at, "t": t, "k": 1}), "at")
        for at, t in zip(arrivals, times, strict=True)
    )
    left = lw.stream(a, time="t").select(ts="t", k="k")
    right = lw.stream(b, time="t").select(tb="t", k="k")
    joined = left.join(right, on="k", within="2 s", how=how)
    counted = joined.map(x=text).window("10 s", on="x").agg(n="count(*)")
    assert sum(column(counted, "n", tick=0)) == joined.collect().num_rows


# ---- lines of the user -------------------------------------------------------------------------


def test_code_in_a_folder_beside_the_package_is_the_users() -> None:
    beside = f"{Path(lw.__file__).parent}_reports/daily.py"
    names: dict[str, Any] = {"stream": stream}
    exec(compile('rows = stream().where("k = 1")', beside, "exec"), names)
    assert names["rows"].node.origin == "daily.py:1"
