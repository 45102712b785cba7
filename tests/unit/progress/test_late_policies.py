"""Late rows: set aside, dropped, or the end of the query; counted per channel with how late."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.unit.running import finished

#        a: 10 . 7 . 12 . 8 .      7 is 3 late, 8 is 4 late
#        b: . 20 . 15 . 21 . 22    15 is 5 late
ROWS = pl.DataFrame(
    {
        "ts": [10, 20, 7, 15, 12, 21, 8, 22],
        "c": ["a", "b", "a", "b", "a", "b", "a", "b"],
    }
)


def declared(**options: Any) -> lw.Stream:
    return lw.stream(ROWS, name="s", time="ts", channel="c", **options)


def test_late_rows_go_to_the_side_with_reason_lateness_and_mark() -> None:
    run = finished(declared())
    assert run.results()["ts"].to_pylist() == [10, 20, 12, 21, 22]
    side = run.late_rows()
    assert side.column_names == ["ts", "c", "_reason", "_late_by_seconds", "_mark"]
    assert side["ts"].to_pylist() == [7, 15, 8]
    assert set(side["_reason"].to_pylist()) == {"late"}
    assert side["_late_by_seconds"].to_pylist() == [3.0, 5.0, 4.0]
    assert side["_mark"].to_pylist() == [10, 20, 12]


def test_dropped_rows_are_counted_but_not_kept() -> None:
    run = finished(declared(late="drop"))
    assert run.late_rows().num_rows == 0
    assert run.metrics().late_rows == 3
    assert run.results().num_rows == 5


@pytest.mark.parametrize("policy", ["side", "drop"])
@pytest.mark.parametrize("chunk_rows", [1, 3, 100])
def test_the_account_tells_rows_and_lateness_per_channel(policy: Any, chunk_rows: int) -> None:
    metrics = finished(declared(late=policy), chunk_rows=chunk_rows).metrics().stream("s")
    assert metrics.refused_rows == 3
    lines = {line.channel: line for line in metrics.late}
    assert lines["a"].rows == 2
    assert lines["a"].longest_seconds == 4.0
    assert lines["a"].mean_seconds == 3.5
    assert lines["b"].rows == 1
    assert lines["b"].longest_seconds == 5.0
    assert metrics.late[0].channel == "a"  # largest first


def test_fail_names_stream_channel_time_mark_and_what_to_do() -> None:
    with pytest.raises(lw.BrokenPromise) as caught:
        declared(late="fail").collect()
    error = caught.value
    assert (error.stream, error.channel, error.time, error.mark) == ("s", "a", 7, 10)
    for word in (
        "stream 's'",
        "channel 'a'",
        "ts = 7",
        "nothing below 10",
        "(ordered)",
        "3 s late",
    ):
        assert word in str(error)
    assert "late='side' writes such rows to the side output" in str(error)


def test_fail_shows_times_as_datetimes() -> None:
    times = [datetime(2024, 1, 1, 12, 0, 30), datetime(2024, 1, 1, 12)]
    stream = lw.stream(
        pl.DataFrame({"ts": times}), time="ts", late="fail", progress=lw.within("10 seconds")
    )
    with pytest.raises(lw.BrokenPromise) as caught:
        stream.collect()
    assert caught.value.time == datetime(2024, 1, 1, 12)
    assert caught.value.mark == datetime(2024, 1, 1, 12, 0, 20)
    assert "(within 10 seconds); it is 20 s late" in str(caught.value)


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(lw.OptionError, match="late= is 'side', 'drop' or 'fail', not 'ignore'"):
        declared(late="ignore")


def test_late_rows_of_several_streams_are_asked_for_by_name() -> None:
    one = lw.stream(pl.DataFrame({"ts": [5, 1]}), name="one", time="ts")
    two = lw.stream(pl.DataFrame({"ts": [9, 2, 3]}), name="two", time="ts")
    run = finished(one.union(two))
    assert run.late_rows("one")["ts"].to_pylist() == [1]
    assert run.late_rows("two")["ts"].to_pylist() == [2, 3]
    with pytest.raises(lw.OptionError, match="say which of one, two"):
        run.late_rows()
    with pytest.raises(lw.OptionError, match="Did you mean 'one'"):
        run.late_rows("onee")


@pytest.mark.parametrize("target", ["a", "b"])
def test_a_run_without_late_rows_gives_an_empty_side_output(target: str) -> None:
    run = finished(lw.stream(pl.DataFrame({"ts": [1, 2]}), name=target, time="ts"))
    assert run.late_rows().num_rows == 0
    assert run.metrics().stream(target).late == ()


def test_lateness_is_the_same_for_every_chunk_size() -> None:
    table = lw.Workload(rate=200, seconds=10, late_share=0.2, late_by=3.0, keys=3, seed=4).table()
    stream = lw.stream(table, time="ts", progress=lw.within("1 s"), channel="key")
    sides = [finished(stream, chunk_rows=n).late_rows() for n in (7, 100, 10_000)]
    first = pl.DataFrame(sides[0])
    assert first.height > 0
    for side in sides[1:]:
        assert first.equals(pl.DataFrame(side))
