"""Runs: repeatable, independent of chunks, over any graph."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.unit.engine.scenes import SECOND, log, merged
from tests.unit.running import column, finished, rows


def workload(seed: int) -> lw.Stream:
    source = lw.Workload(rate=5, seconds=12, seed=seed, late_share=0.3, late_by=2, keys=2).replay()
    return lw.stream(source, name=f"w{seed}", time="ts", progress=lw.within("1 s"))


def query() -> lw.Stream:
    joined = workload(1).join(workload(2), on="key", within="1 s")
    return joined.window("2 s").group_by("key").agg(n="count(*)", most="max(value)")


def answers(run: lw.Run) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in run.results().to_pylist())


def facts(run: lw.Run) -> dict[str, Any]:
    metrics = asdict(run.metrics())
    metrics["latency"] = (run.metrics().latency.count, run.metrics().latency.total)
    for operator in metrics["operators"]:
        operator.pop("busy_seconds")
    return metrics


@pytest.mark.parametrize("charge", ["nothing", 1_000])
def test_runs_on_a_virtual_clock_are_repeatable(charge: Any) -> None:
    one, two = finished(query(), charge=charge, tick=0), finished(query(), charge=charge, tick=0)
    assert answers(one) == answers(two)
    assert facts(one) == facts(two)


def test_a_charge_makes_work_take_virtual_time() -> None:
    free = finished(query(), tick=0).metrics()
    charged = finished(query(), tick=0, charge=SECOND // 100).metrics()
    assert charged.elapsed_seconds > free.elapsed_seconds
    assert charged.latency.longest >= SECOND // 100


def test_chunk_sizes_ticks_and_plans_change_no_answer() -> None:
    expected = answers(finished(query()))
    assert expected
    choices: list[dict[str, Any]] = [
        {"chunk_rows": 13},
        {"tick": "1 s"},
        {"tick": 0},
        {"plan": "in-order"},
    ]
    for options in choices:
        assert answers(finished(query(), **options)) == expected


def test_a_clock_of_ones_own_is_used() -> None:
    clock = lw.VirtualClock(start=5 * SECOND)
    run = finished(lw.stream(log([1, 9]), time="ts"), clock=clock, tick=0)
    assert clock.now() == 9 * SECOND
    assert run.metrics().elapsed_seconds == 4.0


def test_a_finite_log_can_be_played_by_the_wall_clock() -> None:
    run = finished(lw.stream(log([1, 2, 3]), time="ts"), clock="wall")  # long past: all at once
    assert run.results()["ts"].to_pylist() == [1, 2, 3]


def test_collect_can_be_called_again() -> None:
    stream = lw.stream(pl.DataFrame({"ts": [1, 2]}), time="ts")
    assert stream.collect().equals(stream.collect())


def test_sources_without_arrival_times_are_interleaved_evenly() -> None:
    one = lw.stream(pl.DataFrame({"ts": range(100), "who": 1}), time="ts")
    two = lw.stream(pl.DataFrame({"ts": range(100), "who": 2}), time="ts")
    who = column(one.union(two), "who", chunk_rows=10)
    assert who == ([1] * 10 + [2] * 10) * 10


# ---- graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["out-of-order", "in-order"])
@pytest.mark.parametrize("chunk_rows", [1, 3, 100])
def test_a_stream_used_twice_feeds_both_branches(plan: Any, chunk_rows: int) -> None:
    base = lw.stream(pl.DataFrame({"ts": range(10), "v": range(10)}), time="ts")
    both = base.where("v < 5").union(base.where("v >= 3"))
    got = column(both, "v", plan=plan, chunk_rows=chunk_rows)
    assert sorted(got) == sorted([0, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9])


@pytest.mark.parametrize("plan", ["out-of-order", "in-order"])
def test_a_stream_united_with_itself_doubles_its_rows(plan: Any) -> None:
    base = lw.stream(pl.DataFrame({"ts": [1, 2, 3]}), time="ts")
    run = finished(base.union(base), plan=plan)
    assert sorted(run.results()["ts"].to_pylist()) == [1, 1, 2, 2, 3, 3]
    assert run.metrics().streams[0].rows == 3


@pytest.mark.parametrize("plan", ["out-of-order", "in-order"])
def test_a_stream_joined_with_itself_meets_its_own_rows(plan: Any) -> None:
    base = lw.stream(pl.DataFrame({"ts": [1, 2, 5], "k": [1, 1, 1]}), time="ts")
    joined = base.join(base.select(ts2="ts", k="k"), on="k", within="1 s")
    pairs = sorted((row["ts"], row["ts2"]) for row in rows(joined, plan=plan, chunk_rows=1))
    assert pairs == [(1, 1), (1, 2), (2, 1), (2, 2), (5, 5)]


def test_an_aggregate_joined_with_its_own_input_works() -> None:
    base = lw.stream(pl.DataFrame({"ts": [1, 2, 11], "k": [1, 1, 1]}), time="ts")
    sums = base.window("10 s").group_by("k").agg(total="sum(ts)")
    joined = base.join(sums, on="k", within=lw.same("10 s"), times=("ts", "window_start"))
    got = sorted((row["ts"], row["total"]) for row in rows(joined))
    assert got == [(1, 3), (2, 3), (11, 11)]


def test_windows_of_windows_work() -> None:
    base = lw.stream(pl.DataFrame({"ts": range(40)}), time="ts")
    fives = base.window("5 s").agg(total="sum(ts)")
    tens = fives.window("20 s").agg(total="sum(total)", most="max(total)")
    assert [(row["window_start"], row["total"]) for row in rows(tens, chunk_rows=3)] == [
        (0, sum(range(20))),
        (20, sum(range(20, 40))),
    ]


def test_one_row_window_and_one_time_window_over_the_same_source() -> None:
    base = lw.stream(pl.DataFrame({"ts": range(6)}), time="ts")
    by_rows = base.window(rows=3).agg(total="sum(ts)").select("total")
    by_time = base.window("2 s").agg(total="sum(ts)").select("total")
    assert sorted(column(by_rows.union(by_time), "total")) == sorted([3, 12, 1, 5, 9])


# ---- latent and internal timestamps ------------------------------------------------------------


def test_internal_timestamps_are_the_clock_on_entry() -> None:
    source = lw.replay(pl.DataFrame({"arrived": [1, 2, 5]}), "arrived")
    stream = lw.stream(source, time="ts", stamp="internal")
    seconds = [moment.second for moment in column(stream, "ts", tick=0)]
    assert seconds == [1, 2, 5]


def test_latent_rows_have_no_time_until_an_operator_needs_one() -> None:
    source = lw.replay(pl.DataFrame({"arrived": [1, 2, 15], "v": [1, 2, 3]}), "arrived")
    stream = lw.stream(source, time="ts", stamp="latent")
    assert stream.columns == ["arrived", "v"]
    assert stream.time == "ts"
    assert "ts" not in stream.where("v > 1").collect().column_names
    got = rows(stream.where("v > 1").window("10 s").agg(total="sum(v)"), tick=0)
    assert [(row["window_start"].second, row["total"]) for row in got] == [(0, 2), (10, 3)]


# ---- metrics -----------------------------------------------------------------------------------


def test_metrics_count_rows_and_promises_at_every_operator() -> None:
    stream = lw.stream(pl.DataFrame({"ts": range(20), "v": range(20)}), name="s", time="ts")
    run = finished(stream.where("v % 2 = 0").window("10 s").agg(total="sum(v)"), chunk_rows=5)
    metrics = run.metrics()
    assert metrics.stream("s").rows == 20
    assert metrics.operator("filter").rows_in == 20
    assert metrics.operator("filter").rows_out == 10
    assert metrics.operator("window").rows_in == 10
    assert metrics.operator("window").rows_out == metrics.rows_out == 2
    assert metrics.state_rows == 0
    assert 0 < metrics.operator("window").state_rows_peak <= metrics.state_rows_peak
    assert metrics.state_bytes_peak > 0


def test_the_queue_peak_is_the_most_that_waited_at_once() -> None:
    assert merged([1, 2, 3, 4], [0, 9]).metrics().queue_peak >= 4
    stream = lw.stream(pl.DataFrame({"ts": range(100)}), time="ts").where("ts >= 0")
    assert finished(stream, chunk_rows=10).metrics().queue_peak in (10, 11)  # the end may count


def test_an_unknown_operator_or_stream_is_not_found() -> None:
    metrics = finished(lw.stream(pl.DataFrame({"ts": [1]}), time="ts")).metrics()
    with pytest.raises(lw.OptionError, match="unknown operator 'sort'"):
        metrics.operator("sort")
    with pytest.raises(lw.OptionError, match="unknown stream 'nobody'"):
        metrics.stream("nobody")
