"""Corners where several rules meet, each once a wrong answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from lowwater.engines.embedded import outputs
from lowwater.engines.run import RunOptions, prepare
from lowwater.plan.physical.planner import compile_plan
from tests.unit.running import finished

T0 = datetime(2024, 1, 1)


def test_a_union_of_outer_joins_goes_by_no_time_that_can_be_null() -> None:
    a = lw.stream(pl.DataFrame({"ts": [1, 5, 9], "k": [1, 2, 3]}), name="a", time="ts")
    b = lw.stream(pl.DataFrame({"ts": [1, 6, 9], "k": [1, 2, 4]}), name="b", time="ts")
    left = a.join(b, on="k", within=1, how="left")
    right = a.join(b, on="k", within=1, how="right")
    query = left.union(right)
    assert query.time is None
    assert query.collect().num_rows == query.collect(plan="in-order").num_rows == 6


@pytest.mark.parametrize("tick", [0, None, "1 second"])
@pytest.mark.parametrize("idle", [lw.heartbeat("1 second"), lw.on_demand()])
def test_no_made_timestamp_overtakes_rows_that_are_there_to_be_read(tick: Any, idle: Any) -> None:
    half_seconds = range(20)
    log = pl.DataFrame({"at": [i / 2 for i in half_seconds], "ts": [i * 500 for i in half_seconds]})
    stream = lw.stream(lw.replay(log, "at"), name="s", time="ts", unit="ms", idle=idle)
    run = stream.window("1 second").agg(n="count(*)").run(tick=tick)
    run.await_termination()
    assert run.metrics().late_rows == 0
    assert sum(run.results()["n"].to_pylist()) == 20


def test_a_made_timestamp_keeps_what_the_contract_allows() -> None:
    log = pl.DataFrame({"at": [0.0, 1.0, 2.0, 3.0, 4.0], "ts": [1, 4, 12, 8, 13]})
    for idle in (None, lw.on_demand(), lw.heartbeat("1 second")):
        stream = lw.stream(
            lw.replay(log, "at"), name="s", time="ts", progress=lw.within(5), idle=idle
        )
        run = stream.window(10).agg(n="count(*)").run(tick=0)
        run.await_termination()
        assert run.metrics().late_rows == 0


def test_the_end_of_an_input_answers_the_groups_it_held_back() -> None:
    one = pl.DataFrame({"at": [0.0, 1.0, 2.0], "ts": [0, 1, 2], "g": ["b"] * 3})
    other = pl.DataFrame(
        {"at": [0.0, 0.5, 1.0, 1.5, 1000.0], "ts": [0, 0, 50, 51, 60], "g": list("abbba")}
    )
    a = lw.stream(lw.replay(one, "at"), name="a", time="ts", groups="g")
    b = lw.stream(lw.replay(other, "at"), name="b", time="ts", groups="g")
    clock = lw.VirtualClock()
    out: list[tuple[float, str, int]] = []

    def sink(table: pa.Table) -> None:
        for row in table.to_pylist():
            out.append((clock.now() / 1e9, row["g"], row["window_start"]))

    query = a.union(b).window(5).group_by("g").agg(n="count(*)")
    query.run(clock=clock, tick=0, sink=sink).await_termination()
    assert (2.0, "b", 0) in out


def test_a_mark_that_is_no_time_is_not_believed() -> None:
    marks = pl.Series([None, 2**63 + 1, None, None], dtype=pl.UInt64)
    rows = pl.DataFrame({"ts": [1, 2, 3, 4], "m": marks})
    stream = lw.stream(rows, name="s", time="ts", progress=lw.punctuated("m"))
    with pytest.warns(lw.StreamWarning, match="out of range"):
        assert stream.collect().num_rows == 4


def test_what_was_answered_before_a_failure_is_in_the_sink(tmp_path: Path) -> None:
    stream = lw.stream(pl.DataFrame({"ts": [1, 2, 3, 1]}), name="s", time="ts", late="fail")
    run = stream.run(sink=tmp_path / "out", chunk_rows=1)
    with pytest.raises(lw.BrokenPromise):
        run.await_termination()
    assert pl.read_parquet(tmp_path / "out")["ts"].to_list() == [1, 2, 3]


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
@pytest.mark.parametrize("on", [["x"], ["x", "y"]])
def test_nan_joins_nan_and_null_nothing_however_rows_are_cut(
    chunk_rows: int, on: list[str]
) -> None:
    nan = float("nan")
    rows = pl.DataFrame({"ts": range(6), "x": [1.0, nan, 0.0, nan, None, -0.0], "y": 1})
    a, b = (lw.stream(rows, name=name, time="ts") for name in ("a", "b"))
    assert a.join(b, on=on, within=10).collect(chunk_rows=chunk_rows).num_rows == 1 + 4 + 4


def test_a_length_of_time_means_nothing_to_row_numbers() -> None:
    counted = [
        lw.stream(pl.DataFrame({"ts": range(12)}), name=name, time="ts")
        .window(rows=3)
        .agg(n="count(*)")
        for name in ("a", "b")
    ]
    with pytest.raises(lw.OptionError, match="counts rows, not time"):
        counted[0].join(counted[1], within=3)


def test_a_channel_is_named_by_something_exact() -> None:
    rows = pl.DataFrame({"ts": [1], "c": pl.Series([1]).cast(pl.Datetime("ns"))})
    with pytest.raises(lw.QueryError, match="cannot name a channel"):
        lw.stream(rows, name="s", time="ts", channel="c")


def test_groups_named_by_different_columns_are_kept_apart_in_a_union() -> None:
    rows = {"ts": [0, 1, 11, 12, 21], "s": [1, 2, 1, 2, 1], "k": [2, 1, 2, 1, 2]}
    a = lw.stream(pl.DataFrame(rows), name="a", time="ts", groups="s", jump=None)
    b = lw.stream(pl.DataFrame(rows), name="b", time="ts", groups="k", jump=None)
    query = a.union(b).window(10).group_by("s", "k").agg(n="count(*)")
    counted = query.collect(chunk_rows=1).to_pylist()
    starts = sorted((row["window_start"], row["s"], row["n"]) for row in counted)
    assert starts == [(0, 1, 2), (0, 2, 2), (10, 1, 2), (10, 2, 2), (20, 1, 2)]


def test_a_pure_punctuation_says_nothing_about_other_attributes() -> None:
    rows = pl.DataFrame({"ts": [1, None, 3], "b": [1, None, 3], "p": [None, 2, None]})
    promises = {"ts": lw.punctuated("p"), "b": lw.ordered()}
    stream = lw.stream(rows, name="s", time="ts", progress=promises, jump=None)
    run = stream.run(chunk_rows=1)
    run.await_termination()
    assert run.results()["ts"].to_pylist() == [1, 3]


def test_the_side_output_holds_marks_of_several_types() -> None:
    micros = pl.Series([5, 1, 6]).cast(pl.Datetime("us"))
    rows = pl.DataFrame({"a": [1, 2, 0], "b": micros})
    promises = {"a": lw.ordered(), "b": lw.ordered()}
    stream = lw.stream(rows, name="s", time="a", progress=promises, jump=None)
    run = stream.run()
    run.await_termination()
    assert run.late_rows().num_rows == 2


def test_an_unaligned_wish_reaches_the_source_rounded_up() -> None:
    log = pl.DataFrame({"at": [0.0, 1.0, 2.0, 5000.0], "ts": [0, 1, 2, 5000]})
    stream = lw.stream(lw.replay(log, "at"), name="s", time="ts", idle=lw.on_demand())
    clock = lw.VirtualClock()
    answered: list[float] = []
    query = stream.window(10).agg(n="count(*)").window(15, on="window_start").agg(m="sum(n)")
    query.run(
        clock=clock, tick=0, sink=lambda _: answered.append(clock.now() / 1e9)
    ).await_termination()
    assert answered == [20.0, 5000.0]


def test_heartbeats_start_with_the_first_arrival_whatever_other_sources_do() -> None:
    at = pl.Series([0, 1]).cast(pl.Datetime("us")) + pl.duration(days=20_000)
    log = pl.select(at=at, ts=at).with_columns(pl.col("ts"))
    beating = lw.stream(
        lw.replay(log, "at"), name="a", time="ts", idle=lw.heartbeat("1 second"), jump=None
    )
    empty = lw.stream(log.clear(), name="b", time="ts")
    assert beating.union(empty).order_by().collect().num_rows == 2


def test_a_sink_may_stop_its_own_run() -> None:
    source = lw.push({"ts": pl.Int64})
    seen: list[int] = []

    def sink(table: object) -> None:
        seen.append(1)
        run.stop()

    run = lw.stream(source, name="s", time="ts").run(sink=sink)
    source.send({"ts": 1})
    assert run.await_termination(60)
    assert seen == [1]


@pytest.mark.parametrize("chunk_rows", [1, 100])
def test_the_first_row_that_breaks_any_promise_is_the_one_named(chunk_rows: int) -> None:
    rows = pl.DataFrame({"a": [1, 2, 3, 4, 1], "b": [1, 5, 2, 6, 7]})
    promises = {"a": lw.ordered(), "b": lw.ordered()}
    stream = lw.stream(rows, name="s", time="a", progress=promises, late="fail")
    with pytest.raises(lw.BrokenPromise) as caught:
        stream.collect(chunk_rows=chunk_rows)
    assert (caught.value.time, caught.value.mark) == (2, 5)


def test_a_side_output_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "LATE_LIMIT", 3)
    rows = pl.DataFrame({"ts": [9, 1, 2, 3, 4, 5]})
    query = lw.stream(rows, name="s", time="ts")
    run = prepare(compile_plan(query._node), "embedded", RunOptions(chunk_rows=2))
    with pytest.warns(lw.StreamWarning, match="more than 3 rows were refused") as told:
        run.run_here()
    assert len(told) == 1
    assert run.late_rows()["ts"].to_pylist() == [1, 2, 3]
    assert run.metrics().late_rows == 5


@pytest.mark.parametrize("arrived", [[0.5, 2.0], [T0, T0 + timedelta(seconds=1)]])
@pytest.mark.parametrize("how", ["right", "full"])
def test_results_without_an_arrival_time_are_not_measured(arrived: list[Any], how: Any) -> None:
    log = pl.DataFrame({"arrived": arrived, "ts": [1, 50], "k": [1, 2]})
    left, right = (lw.stream(lw.replay(log, "arrived"), name=n, time="ts") for n in "ab")
    pairs = left.where("k = 1").join(right, on="k", within="5 s", how=how)
    run = finished(pairs)
    assert run.results().num_rows == 2
    assert run.metrics().latency.count == 1
