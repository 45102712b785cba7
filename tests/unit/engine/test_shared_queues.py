"""Queries over one update stream run as one, on one queue; others keep their own."""

from __future__ import annotations

import time

import polars as pl
import pytest

import lowwater as lw
from lowwater.bench.shared_queue import FAIR, Setting, compare, shared
from tests.unit.running import LONG

COUNT = 300
LOG = pl.DataFrame(
    {
        "ts": range(COUNT),
        "k": [n % 3 for n in range(COUNT)],
        "v": [n % 7 for n in range(COUNT)],
        "at": [float(n) for n in range(COUNT)],
    }
)


def updates(name: str = "s", rows: pl.DataFrame = LOG, **options) -> lw.Stream:
    return lw.stream(
        lw.replay(rows, arrival="at"), name=name, time="ts", **{"update_key": "k"} | options
    )


def played(queries, weights=None, **options):
    runs = lw.together(queries, weights=weights).run(tick=0, **options)
    assert runs.await_termination(timeout=LONG)
    return runs


def queue(runs, name):
    return runs[name].metrics().operator("update")


def test_rows_are_read_and_kept_once():
    s = updates()
    runs = played({"a": s, "b": s.where("v > 2")}, charge=lw.per_row("2 seconds"))
    both = [queue(runs, name) for name in "ab"]
    assert [each.rows_in for each in both] == [COUNT, COUNT]
    assert both[0].state_bytes_peak == both[1].state_bytes_peak
    alone = s.run(tick=0, charge=lw.per_row("4 seconds"))
    alone.await_termination()
    assert both[0].state_rows_peak == alone.metrics().operator("update").state_rows_peak
    assert runs["a"].metrics().stream("s").rows == COUNT


def test_the_query_that_costs_less_or_weighs_more_is_served_more_often():
    s = updates()
    queries = {"cheap": s.map(w="v"), "dear": s.where("v >= 0")}
    costs = {"cheap": lw.per_row("1 second"), "dear": lw.per_row("9 seconds")}
    runs = played(queries, charge=costs)
    assert queue(runs, "cheap").rows_out > queue(runs, "dear").rows_out
    assert queue(runs, "cheap").about["seconds a row"] == pytest.approx(1)
    assert queue(runs, "dear").about["seconds a row"] == pytest.approx(9)
    heavy = played(queries, {"dear": 100}, charge=costs)
    assert queue(heavy, "dear").rows_out > queue(runs, "dear").rows_out
    before, after = queue(runs, "dear").staleness, queue(heavy, "dear").staleness
    assert after.application < before.application


def test_without_load_every_query_is_given_every_row():
    s = updates()
    runs = played({"a": s, "b": s.select("ts", "k")})
    assert [runs.results(name).num_rows for name in "ab"] == [COUNT, COUNT]
    assert queue(runs, "b").rows_out == COUNT
    assert queue(runs, "a").staleness.by_key[(0,)].delivered == COUNT // 3


def test_work_that_queries_have_in_common_is_done_once_for_rows_they_are_given_together():
    seen = []

    def costly(rows: pl.DataFrame) -> pl.DataFrame:
        seen.append(rows.height)
        return rows

    base = updates().apply(costly)
    clock = lw.together({"a": base.where("v >= 0"), "b": base.map(w="v")})
    runs = clock.run(tick=0, charge=200_000_000)  # a fifth of a second for a step of an operator
    assert runs.await_termination(timeout=LONG)
    one, two = queue(runs, "a").rows_out, queue(runs, "b").rows_out
    assert max(one, two) <= sum(seen) < one + two


def test_queries_with_a_join_in_common_are_given_rows_together():
    one, two = updates("one"), updates("two")
    joined = one.join(two, on="k")
    queries = {"all": joined, "some": joined.where("v > 2"), "alone": one.where("v > 2")}
    text = lw.together(queries).explain()
    assert "shared by 'all' with 'some' (weight 2), 'alone'" in text
    runs = played(queries, charge=lw.per_row("2 seconds"))
    pairs = pl.DataFrame(runs.results("all"))
    last = pairs.group_by("k", maintain_order=True).last().sort("k")
    assert last["ts"].to_list() == last["ts_right"].to_list() == [COUNT - 3, COUNT - 2, COUNT - 1]
    assert pl.DataFrame(runs.results("some")).equals(pairs.filter(pl.col("v") > 2))


def test_a_live_source_feeds_all_queries_that_share_its_queue():
    source = lw.push({"ts": pl.Int64, "k": pl.String})
    s = lw.stream(source, name="live", time="ts", update_key="k")
    runs = lw.together({"a": s, "b": s.where("k = 'x'")}).run()
    source.send([{"ts": 1, "k": "x"}, {"ts": 2, "k": "y"}])
    until = time.monotonic() + LONG
    while runs.results("a").num_rows < 2 or runs.results("b").num_rows < 1:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert runs["a"].active
    runs["a"].stop()
    assert not runs.active
    assert runs["b"].stopped


def test_late_rows_go_to_every_query_and_an_error_names_all(tmp_path):
    rows = pl.DataFrame({"ts": [1, 5, 2], "k": [1, 1, 1], "at": [0.0, 1.0, 2.0]})
    s = updates(rows=rows)
    late = []
    runs = lw.together({"a": s, "b": s.select("ts", "k")}).run(
        late_sink={"b": late.append}, sink={"b": tmp_path / "b"}
    )
    runs.await_termination()
    assert runs["a"].late_rows()["ts"].to_pylist() == late[0]["ts"].to_pylist() == [2]
    assert pl.read_parquet(tmp_path / "b").height == 2

    def broken(rows: pl.DataFrame) -> pl.DataFrame:
        raise ValueError("no")

    runs = lw.together({"a": s, "b": s.apply(broken)}).run()
    with pytest.raises(lw.OperatorError, match="no") as raised:
        runs.await_termination(timeout=LONG)
    assert raised.value.__notes__ == ["in query 'a' or 'b'"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"schedule": "fifo"}, "schedule='fifo' has no order over several queries"),
        ({"schedule": "append"}, "schedule='append' has no order over several queries"),
        ({"complete_within": "1 s"}, "complete_within= counts the rows"),
        ({"expire": "1 s"}, "expire= and delete_when= tell each query"),
    ],
)
def test_queues_that_cannot_be_shared_are_explained_and_stay_apart(options, why):
    s = updates(**options)
    queries = lw.together({"a": s, "b": s.where("v > 2")})
    assert f"'a' and 'b' have a queue of s each: {why}" in queries.explain()
    runs = queries.run(tick=0, charge=lw.per_row("2 seconds"))
    assert runs.await_termination(timeout=LONG)
    assert queue(runs, "a").rows_out >= 100
    with pytest.raises(lw.OptionError, match="'a' shares the queue of no update stream"):
        lw.together({"a": s, "b": s.where("v > 2")}, weights={"a": 2})


def test_queues_of_windows_stay_apart_and_explain_says_so():
    windows = updates().window("1 minute").group_by("k").agg(n="count(*)")
    text = lw.together({"a": windows, "b": windows.where("n > 2")}).explain()
    assert "'a' and 'b' have a queue of s each: their queues are of windows" in text


def test_a_shared_plan_shows_common_operators_once_and_says_what_spark_does():
    s = updates()
    text = lw.together({"a": s.where("v > 2"), "b": s}, weights={"b": 3}).explain()
    assert "queries 'a' and 'b' share the queues of update streams and run as one" in text
    assert "on Spark each query has queues of its own" in text
    assert "shared by 'a', 'b' (weight 3): next are the key and the queries whose service" in text
    assert text.count("under load: the newest row of each k waits") == 1


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"c": 2}, "weights=: .*'c'"),
        ({"a": 0}, "'a' has weight 0; weights are above zero"),
        ({"a": True}, "weights are above zero"),
        ([2], "weights= maps queries to numbers"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights, said):
    s = updates()
    with pytest.raises(lw.OptionError, match=said):
        lw.together({"a": s, "b": s}, weights=weights)


def test_charges_and_weights_that_cannot_be_met_are_refused():
    s = updates()
    queries = lw.together({"a": s, "b": s}, weights={"a": 2})
    with pytest.raises(lw.OptionError, match="have one clock"):
        queries.run(charge={"a": lw.per_row("1 s"), "b": "measured"})
    with pytest.raises(lw.OptionError, match="weights= are for engine='embedded'"):
        queries.run(engine="spark")


def test_the_benchmark_runs_what_the_engine_runs():
    """The same log, costs and weights through the engine give the staleness of the benchmark."""
    setting = Setting("some", (1.0, 3.0), (2.0, 1.0))
    came = setting.updates(3, services=60)
    s = updates(rows=came.rename({"arrived": "at", "key": "k"}), schedule=setting.schedule)
    charges = {"a": lw.per_row("1 second"), "b": lw.per_row("3 seconds")}
    runs = played({"a": s, "b": s.where("k >= 0")}, {"a": 2.0}, charge=charges)
    found = sum(
        queue(runs, name).staleness.application * weight for name, weight in (("a", 2), ("b", 1))
    )
    assert found == pytest.approx(shared(setting, came, to_end=True))


def test_a_shared_queue_is_less_stale_where_queries_differ():
    found = compare(Setting("costs", (1.0, 3.0, 9.0), load=3.0), seeds=(1, 2), services=120)
    assert found[FAIR]["ratio"] < 1


def test_a_page_shows_each_query_with_its_own_operators():
    s = updates()
    runs = lw.together({"a": s.where("v > 2").where("v < 6"), "b": s.select("ts", "k")}).run(
        dashboard=True
    )
    runs.await_termination()
    try:
        titles = [[each.title for each in runs[name].metrics().operators] for name in "ab"]
        assert titles == [["update#1", "filter#2", "filter#3"], ["update#1", "project#2"]]
        assert runs.dashboard.url.startswith("http://127.0.0.1:")
    finally:
        runs.dashboard.close()


def test_the_newest_answers_of_each_query_can_be_pulled():
    s = updates()
    runs = played({"a": s, "b": s.select("ts", "k", w="v * 2")}, charge=lw.per_row("2 seconds"))
    for name, column in (("a", "v"), ("b", "w")):
        found = pl.DataFrame(runs[name].table()).sort("k")
        assert found["ts"].to_list() == [COUNT - 3, COUNT - 2, COUNT - 1]
        assert column in found.columns
        assert found["_staleness"].to_list() == [0, 0, 0]


def test_rows_that_one_query_needs_no_more_are_still_results_of_another():
    s = updates()
    runs = played({"all": s, "late": s.where("ts >= 200"), "copied": s.select("ts", "k")})
    alone = s.run(tick=0)
    assert alone.await_termination(LONG)
    assert runs.results("all").num_rows == alone.results().num_rows == COUNT
    assert runs.results("copied").num_rows == COUNT
    assert min(runs.results("late")["ts"].to_pylist()) == 200
    runs["all"].forget_before(10**6)  # after the end nothing is left to forget
    assert runs.results("all").num_rows == COUNT
