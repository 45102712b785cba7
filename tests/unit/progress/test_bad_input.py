"""Rows that cannot be used, and streams that cannot be declared: a stated rule or a clear error."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.progress.intake import Intake
from tests.unit.progress.judging import ANY, spec_of
from tests.unit.running import column, finished


def reasons(run: lw.Run) -> list[str]:
    return run.late_rows()["_reason"].to_pylist()


# ---- times -----------------------------------------------------------------------------------


def test_a_null_time_is_refused_and_moves_no_mark() -> None:
    run = finished(lw.stream(pl.DataFrame({"ts": [1, None, 2]}), name="s", time="ts"))
    assert run.results()["ts"].to_pylist() == [1, 2]
    assert reasons(run) == ["no time"]
    assert run.metrics().stream("s").late[0].reason == "no time"
    assert run.metrics().late_rows == 0  # refused, but not for being late


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinite_times_are_refused_and_move_no_mark(value: float) -> None:
    run = finished(lw.stream(pl.DataFrame({"ts": [1.0, value, 2.0]}), time="ts"))
    assert column_of(run, "ts") == [datetime(1970, 1, 1, 0, 0, 1), datetime(1970, 1, 1, 0, 0, 2)]
    assert run.late_rows().num_rows == 1


@pytest.mark.parametrize("value", [1e300, -1e300, 1e15])
def test_float_times_out_of_range_are_refused_and_move_no_mark(value: float) -> None:
    run = finished(lw.stream(pl.DataFrame({"ts": [1.0, value, 2.0]}), time="ts"))
    assert run.results().num_rows == 2
    assert reasons(run) == ["time out of range"]


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("dtype", [pl.Int64(), pl.Datetime("us"), pl.Datetime("ms")])
def test_times_out_of_range_are_refused_and_move_no_mark(value: int, dtype: Any) -> None:
    frame = pl.DataFrame({"id": [0, 1, 2], "ts": [1, value, 2]}).with_columns(
        pl.col("ts").cast(dtype)
    )
    # Such a time is beyond what Python can show, so it is the other column that is looked at.
    judged = Intake(spec_of(frame), {"ts": ANY})
    taken = judged.take(frame, 0)
    assert taken.rows["id"].to_list() == [0, 2]
    assert taken.refused is not None
    assert taken.refused["_reason"].to_list() == ["time out of range"]
    assert judged.mark("ts") == 2


def test_with_fail_an_unusable_row_stops_the_query_and_is_shown() -> None:
    stream = lw.stream(
        pl.DataFrame({"ts": [1, None], "v": [7, 8]}), name="s", time="ts", late="fail"
    )
    with pytest.raises(
        lw.BadInput, match=r"stream 's': a row cannot be used: ts is null.*\(None, 8"
    ):
        stream.collect()


def test_a_null_channel_is_refused() -> None:
    frame = pl.DataFrame({"ts": [1, 2, 3], "c": ["a", None, "a"]})
    run = finished(lw.stream(frame, time="ts", channel="c"))
    assert run.results()["ts"].to_pylist() == [1, 3]
    assert reasons(run) == ["no channel"]


def test_dates_and_float_seconds_enter_as_datetimes() -> None:
    days = lw.stream(pl.DataFrame({"ts": [date(2024, 1, 1), date(2024, 1, 2)]}), time="ts")
    assert days.schema["ts"] == pl.Datetime("us")
    assert column(days, "ts") == [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    seconds = lw.stream(pl.DataFrame({"ts": [0.5, 1.25]}), time="ts")
    assert column(seconds, "ts") == [
        datetime(1970, 1, 1, 0, 0, 0, 500_000),
        datetime(1970, 1, 1, 0, 0, 1, 250_000),
    ]


def test_small_integers_enter_as_int64() -> None:
    stream = lw.stream(pl.DataFrame({"ts": [1, 2]}, schema={"ts": pl.UInt8}), time="ts")
    assert stream.schema["ts"] == pl.Int64
    assert column(stream.window("2 s").agg(s="sum(ts)"), "s") == [1, 2]


def test_times_before_the_epoch_are_times() -> None:
    stream = lw.stream(pl.DataFrame({"ts": [-25, -11, -3, 4]}), time="ts")
    got = stream.window("10 s").agg(s="sum(ts)").collect().to_pylist()
    assert [(row["window_start"], row["s"]) for row in got] == [
        (-30, -25),
        (-20, -11),
        (-10, -3),
        (0, 4),
    ]


# ---- empty and silent streams ----------------------------------------------------------------


def test_an_empty_stream_gives_an_empty_typed_result() -> None:
    stream = lw.stream(pl.DataFrame(schema={"ts": pl.Int64, "v": pl.Float64}), time="ts")
    got = stream.window("1 s").group_by("v").agg(n="count(*)").collect()
    assert got.num_rows == 0
    assert got.column_names == ["window_start", "window_end", "v", "n"]
    assert finished(stream).metrics().streams[0].marks["ts"] is None


def test_a_stream_of_refused_rows_only_is_an_empty_stream() -> None:
    stream = lw.stream(pl.DataFrame({"ts": [None, None]}, schema={"ts": pl.Int64}), time="ts")
    with pytest.warns(lw.StreamWarning, match=r"2 row\(s\) of .* are in no answer"):
        assert stream.window("1 s").agg(s="sum(ts)").collect().num_rows == 0


def test_a_stream_that_ends_without_punctuation_is_answered_at_its_end() -> None:
    frame = pl.DataFrame(
        {"ts": [3, 1, 12], "p": [None, None, None]}, schema_overrides={"p": pl.Int64}
    )
    stream = lw.stream(frame, time="ts", progress=lw.punctuated("p"))
    got = stream.window("10 s").agg(s="sum(ts)").collect().to_pylist()
    assert [(row["window_start"], row["s"]) for row in got] == [(0, 4), (10, 12)]


# ---- producers' marks ------------------------------------------------------------------------


def punctuated(rows: list[tuple[int | None, int | None]], **options: Any) -> lw.Stream:
    frame = pl.DataFrame(rows, schema={"ts": pl.Int64, "p": pl.Int64}, orient="row")
    return lw.stream(frame, name="s", time="ts", progress=lw.punctuated("p"), **options)


def test_a_pure_punctuation_is_consumed_and_moves_the_mark() -> None:
    run = finished(punctuated([(5, None), (None, 10), (9, None), (11, None)]))
    assert run.results()["ts"].to_pylist() == [5, 11]
    assert run.late_rows()["ts"].to_pylist() == [9]


def test_a_mark_beside_a_row_holds_for_later_rows_only() -> None:
    run = finished(punctuated([(5, 10), (10, None), (9, None)]))
    assert run.results()["ts"].to_pylist() == [5, 10]


@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_a_mark_that_goes_backwards_is_ignored_with_a_warning(chunk_rows: int) -> None:
    with pytest.warns(UserWarning, match="stream 's': .*producer's marks on ts .* ?backwards"):
        run = finished(punctuated([(1, 5), (6, 3), (4, None)]), chunk_rows=chunk_rows)
    assert run.late_rows()["ts"].to_pylist() == [4]
    assert run.metrics().stream("s").backward_marks == 1


def test_with_fail_a_mark_that_goes_backwards_stops_the_query() -> None:
    with pytest.raises(lw.BrokenPromise, match=r"stream 's'.*backwards") as caught:
        punctuated([(1, 5), (6, 3)], late="fail").collect()
    assert caught.value.stream == "s"


def test_a_mark_of_another_type_than_the_time_is_refused() -> None:
    frame = pl.DataFrame({"ts": [1], "p": [datetime(2024, 1, 1)]})
    with pytest.raises(lw.QueryError, match="punctuation column 'p' has type Datetime"):
        lw.stream(frame, time="ts", progress=lw.punctuated("p"))


# ---- declarations ----------------------------------------------------------------------------

FRAME = pl.DataFrame({"ts": [1], "name": ["a"], "c": ["x"]})


@pytest.mark.parametrize("dtype", [pl.String, pl.Boolean])
def test_a_time_column_of_the_wrong_type_is_refused(dtype: Any) -> None:
    frame = pl.DataFrame(schema={"ts": dtype})
    with pytest.raises(lw.QueryError, match="stream 's': time column 'ts' has type"):
        lw.stream(frame, name="s", time="ts")


def test_a_stream_needs_a_time_column() -> None:
    with pytest.raises(lw.OptionError, match="say which column is the time"):
        lw.stream(FRAME)


@pytest.mark.parametrize(
    "options",
    [
        {"time": "tss"},
        {"time": "ts", "channel": "cc"},
        {"time": "ts", "groups": ["c", "nam"]},
        {"time": "ts", "progress": {"ts": lw.ordered(), "tz": lw.ordered()}},
        {"time": "ts", "progress": lw.punctuated("pp")},
    ],
)
def test_unknown_columns_of_a_declaration_are_named_with_the_known_ones(options: Any) -> None:
    with pytest.raises(lw.QueryError, match=r"stream 's': unknown column .* Known: c, name, ts"):
        lw.stream(FRAME, name="s", **options)


def test_a_near_miss_gets_a_suggestion() -> None:
    with pytest.raises(lw.QueryError, match=r"unknown column 'nmae'. Did you mean 'name'"):
        lw.stream(FRAME, time="ts", channel="nmae")


@pytest.mark.parametrize("progress", ["ordered", lw.ordered, {"ts": 5}])
def test_what_is_no_contract_is_refused_with_the_contracts(progress: Any) -> None:
    with pytest.raises(lw.OptionError, match=r"progress= is lw.ordered\(\), lw.within"):
        lw.stream(FRAME, time="ts", progress=progress)


def test_contracts_check_their_bounds() -> None:
    with pytest.raises(lw.OptionError, match="zero or more"):
        lw.within("-1 s")
    for bad in (-1, 1.5, True, "3"):
        with pytest.raises(lw.OptionError, match="takes a whole number >= 0"):
            lw.within_rows(bad)  # type: ignore[arg-type]


def test_a_contract_finer_than_the_time_column_is_refused() -> None:
    with pytest.raises(lw.OptionError, match=r"within\(...\) of 500 ms is finer than the time"):
        lw.stream(FRAME, time="ts", progress=lw.within("500 ms")).collect()


def test_an_unknown_stamp_is_refused_with_the_known_ones() -> None:
    with pytest.raises(lw.OptionError, match="stamp= is 'external', 'internal' or 'latent'"):
        lw.stream(FRAME, time="t", stamp="eternal")  # type: ignore[arg-type]


@pytest.mark.parametrize("stamp", ["internal", "latent"])
def test_a_stamped_time_must_be_a_new_column(stamp: Any) -> None:
    with pytest.raises(lw.OptionError, match="choose another time= name"):
        lw.stream(FRAME, time="ts", stamp=stamp)


@pytest.mark.parametrize("name", ["__seq", "__mark"])
def test_reserved_column_names_are_refused(name: str) -> None:
    with pytest.raises(lw.QueryError, match="is reserved"):
        lw.stream(pl.DataFrame({"ts": [1], name: [1]}), time="ts")


# ---- chunks that do not fit ------------------------------------------------------------------


def test_a_chunk_that_lacks_a_column_is_refused_by_name() -> None:
    judged = Intake(spec_of(FRAME), {"ts": ANY})
    with pytest.raises(lw.BadInput, match="stream 's': rows lack column 'c'"):
        judged.take(FRAME.drop("c"), 0)


def test_a_chunk_of_the_wrong_type_is_refused() -> None:
    judged = Intake(spec_of(FRAME), {"ts": ANY})
    with pytest.raises(lw.BadInput, match="stream 's': rows have the wrong type"):
        judged.take(FRAME.with_columns(ts=pl.lit("noon")), 0)


def test_columns_in_another_order_or_of_a_narrower_type_are_brought_in_line() -> None:
    judged = Intake(spec_of(FRAME), {"ts": ANY})
    odd = FRAME.select("c", pl.col("ts").cast(pl.Int32), "name", pl.lit(1).alias("more"))
    assert judged.take(odd, 0).rows.equals(FRAME)


def column_of(run: lw.Run, name: str) -> list[Any]:
    return run.results()[name].to_pylist()


# ---- more times that are none ------------------------------------------------------------------


def test_unsigned_times_beyond_int64_are_refused_and_move_no_mark() -> None:
    frame = pl.DataFrame({"ts": [1, 2**63 + 5, 2]}, schema={"ts": pl.UInt64})
    run = finished(lw.stream(frame, time="ts"))
    assert run.results()["ts"].to_pylist() == [1, 2]
    assert run.late_rows().num_rows == 1


def test_dates_beyond_the_year_9999_are_refused_and_move_no_mark() -> None:
    frame = pl.DataFrame({"id": [0, 1, 2], "ts": [0, 2**31 - 1, 1]}).with_columns(
        pl.col("ts").cast(pl.Int32).cast(pl.Date)
    )
    run = finished(lw.stream(frame, time="ts"))
    assert run.results()["id"].to_pylist() == [0, 2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"idle": "on_demand"}, r"idle= is lw.on_demand\(\) or lw.heartbeat"),
        ({"punctuate": "1 s"}, r"punctuate= is lw.every\('1 second'\) or lw.timer"),
        (
            {"idle": lw.on_demand(behind_clock="1 s"), "stamp": "latent", "time": "t"},
            "so no row is behind it; leave behind_clock= out",
        ),
        ({"jump": "1 day"}, r"jump= is lw.jump\('1 day', 'warn'\) or None"),
    ],
)
def test_options_of_a_stream_say_what_is_right(options: Any, says: str) -> None:
    with pytest.raises(lw.OptionError, match=says):
        lw.stream(FRAME, **{"time": "ts", **options})


@pytest.mark.parametrize("make", [lw.on_demand, lambda **given: lw.heartbeat("1 s", **given)])
def test_a_row_is_behind_the_clock_by_zero_or_more(make: Any) -> None:
    with pytest.raises(lw.OptionError, match="behind_clock= takes a length of time of zero or"):
        make(behind_clock="-1 s")


@pytest.mark.parametrize("skew", ["-1 s", "a while"])
def test_a_skew_must_be_a_length_of_zero_or_more(skew: str) -> None:
    with pytest.raises(lw.OptionError, match="skew"):
        lw.on_demand(skew)


def test_a_path_is_no_source() -> None:
    from pathlib import Path

    with pytest.raises(lw.OptionError, match="a stream is made of a polars frame"):
        lw.stream(Path("rows.parquet"), time="ts")
