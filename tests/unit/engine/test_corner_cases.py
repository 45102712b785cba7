"""Corners where several rules meet, each once a wrong answer."""

from __future__ import annotations

import polars as pl

import lowwater as lw


def test_a_union_of_outer_joins_goes_by_no_time_that_can_be_null() -> None:
    a = lw.stream(pl.DataFrame({"ts": [1, 5, 9], "k": [1, 2, 3]}), name="a", time="ts")
    b = lw.stream(pl.DataFrame({"ts": [1, 6, 9], "k": [1, 2, 4]}), name="b", time="ts")
    left = a.join(b, on="k", within=1, how="left")
    right = a.join(b, on="k", within=1, how="right")
    query = left.union(right)
    assert query.time is None
    assert query.collect().num_rows == query.collect(plan="in-order").num_rows == 6


def test_a_heartbeat_does_not_overtake_rows_that_are_there_to_be_read() -> None:
    #  row 0 arrives at 0; rows 1..9 at 10, all handed over at the tick 60; a beat at every 5
    log = pl.DataFrame({"at": [0.0] + [10.0] * 9, "ts": list(range(10))})
    stream = lw.stream(
        lw.replay(log, "at"), name="s", time="ts", idle=lw.heartbeat("5 seconds"), jump=None
    )
    run = stream.order_by().run(tick="60 seconds")
    run.await_termination()
    assert run.results()["ts"].to_pylist() == [0]
    assert run.metrics().late_rows == 9  # the beats at 5 and 10 promised what 10 s of silence say


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
