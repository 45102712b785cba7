"""Feedback: consumers state which rows they need, and producers stop making and keeping others."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.plan.physical.planner import compile_plan
from lowwater.stream.floor import least, raised
from tests.unit.running import LONG, finished

LOG = pl.DataFrame({"ts": [1, 20, 5, 30, 41, 60], "k": [1, 1, 1, 1, 1, 1]})
DAYS = pl.DataFrame({"ts": [datetime(2024, 1, 1), datetime(2024, 1, 2)]})


def stream(name: str, **options: Any) -> lw.Stream:
    return lw.stream(LOG, name=name, time="ts", **options)


def pushed(name: str) -> tuple[Any, lw.Stream]:
    source = lw.push({"ts": pl.Int64, "k": pl.Int64})
    return source, lw.stream(source, name=name, time="ts")


def needs(query: lw.Stream) -> dict[str, dict[str, int]]:
    """The floor of each source, by name."""
    plan = compile_plan(query._node)
    return {each.spec.name: dict(plan.floors[each.index]) for each in plan.sources}


# ---- what follows from a query -------------------------------------------------------------


def test_floors_of_a_union_and_a_choice() -> None:
    assert raised({"a": 1, "b": 5}, {"a": 3, "c": 2}) == {"a": 3, "b": 5, "c": 2}
    assert least([{"a": 1, "b": 5}, {"a": 3, "c": 2}]) == {"a": 1}
    assert least([{"a": 1}, {}]) == {}


def test_a_condition_reaches_the_sources_through_operators() -> None:
    a, b = stream("a"), stream("b")
    windows = a.join(b, on="k", within=("5 s", "2 s")).window("10 s").agg(n="count(*)")
    assert needs(windows.where("window_start >= 25")) == {"a": {"ts": 30}, "b": {"ts": 25}}
    assert needs(windows.where("window_end > 40")) == {"a": {"ts": 40}, "b": {"ts": 35}}
    ordered = a.union(b).distinct().order_by()
    assert needs(ordered.where("ts >= 7")) == {"a": {"ts": 7}, "b": {"ts": 7}}
    assert needs(a.map(t="ts + 5").where("t >= 7 AND k > 0")) == {"a": {"ts": 2}}
    assert needs(lw.join([a, b], on="k", within="4 s").where("ts >= 9")) == {
        "a": {"ts": 9},
        "b": {"ts": 5},
    }


@pytest.mark.parametrize(
    "query",
    [
        lambda a: a.session("5 s").agg(n="count(*)").where("window_start >= 25"),
        lambda a: a.apply(lambda rows: rows).where("ts >= 25"),
        lambda a: a.where("ts >= 25 OR k > 0"),
        lambda a: a.where("ts <= 25"),
        lambda a: a.updates("k").where("ts >= 25"),
        lambda a: a.map(t="greatest(ts, ts + 5)").where("t >= 25"),
        lambda a: a.where("ts >= 25").union(a.where("k > 0")),
    ],
)
def test_where_a_row_below_may_matter_nothing_is_stated(query: Any) -> None:
    assert needs(query(stream("a"))) == {"a": {}}


def test_a_shared_source_keeps_what_any_consumer_needs() -> None:
    a = stream("a")
    both = a.where("ts >= 25").union(a.where("ts > 40"))
    assert needs(both) == {"a": {"ts": 25}}
    run = finished(both)
    assert sorted(run.results()["ts"].to_pylist()) == [30, 41, 41, 60, 60]
    found = run.metrics().stream("a")
    assert (found.late_rows, found.unneeded_rows) == (1, 2)  # 5 comes late; 1 and 20 in time


@pytest.mark.parametrize(
    ("condition", "bound"),
    [
        ("ts >= TIMESTAMP '2024-01-02'", datetime(2024, 1, 2)),
        ("ts > DATE '2024-01-01'", datetime(2024, 1, 1, 0, 0, 0, 1000)),
        ("NOT (ts < '2024-01-02')", datetime(2024, 1, 2)),
        ("TIMESTAMP '2024-01-01 00:00:00.0005' <= ts", datetime(2024, 1, 1, 0, 0, 0, 1000)),
        ("ts > TIMESTAMP '2024-01-01 00:00:00.0005'", datetime(2024, 1, 1, 0, 0, 0, 1000)),
        ("ts - INTERVAL 1 DAY BETWEEN '2024-01-01' AND '2024-01-09'", datetime(2024, 1, 2)),
    ],
)
def test_bounds_are_whole_ticks_of_the_column(condition: str, bound: datetime) -> None:
    days = lw.stream(DAYS.cast({"ts": pl.Datetime("ms")}), name="days", time="ts")
    (floor,) = needs(days.where(condition)).values()
    ((_, ticks),) = floor.items()
    assert datetime.fromtimestamp(ticks / 1000) - datetime.fromtimestamp(0) == bound - datetime(
        1970, 1, 1
    )


def test_explain_shows_the_bound_at_each_operator() -> None:
    a, b = stream("a"), stream("b")
    pairs = a.join(b, on="k", within=("5 s", "2 s")).window("10 s").agg(n="count(*)")
    shown = pairs.where("window_start >= 25").explain()
    assert "needs no rows below: window_start = 25" in shown
    assert "needs no rows of input 0 below: ts = 30" in shown
    assert "needs no rows of input 1 below: ts = 25" in shown
    assert "needs no rows" not in pairs.explain()


def test_which_rows_are_late_does_not_depend_on_what_is_needed() -> None:
    kept = stream("a").where("ts >= 10")  # 5 comes late, after 20
    run = finished(kept)
    assert run.results()["ts"].to_pylist() == [20, 30, 41, 60]
    found = run.metrics().stream("a")
    assert (found.rows, found.refused_rows, found.late_rows, found.unneeded_rows) == (6, 1, 1, 1)
    assert run.late_rows("a")["ts"].to_pylist() == [5]


# ---- a partner that ended ------------------------------------------------------------------


@pytest.mark.parametrize("how", ["inner", "semi"])
def test_the_partner_of_an_ended_input_is_not_made_any_more(how: Any) -> None:
    source, left = pushed("left")
    short = lw.stream(LOG.head(1), name="short", time="ts")
    counts = left.window("10 s").group_by("k").agg(n="count(*)").select("k", "n", ts="window_start")
    run = counts.join(short.select("ts", "k"), on="k", within="10 s", how=how).run()
    source.send(
        pl.DataFrame({"ts": [1, 2, 15, 25], "k": [1, 1, 1, 1]})
    )  # the windows at 0 and 10 match
    _wait(run, lambda: run.metrics().operators[0].rows_in >= 4)
    source.send(pl.DataFrame({"ts": [39, 55, 61], "k": [1, 1, 1]}))
    source.close()
    assert run.await_termination(LONG)
    assert sorted(run.results()["ts"].to_pylist()) == [0, 10]
    metrics = run.metrics()
    assert metrics.stream("left").unneeded_rows > 0
    assert metrics.stream("left").late_rows == 0


def test_an_outer_join_still_needs_the_rows_that_have_no_partner() -> None:
    short = lw.stream(LOG.head(1), name="short", time="ts")
    run = finished(stream("a").join(short, on="k", within="10 s", how="left"))
    assert run.results().num_rows == 5  # 5 is late
    assert run.metrics().stream("a").unneeded_rows == 0


# ---- forget_before -------------------------------------------------------------------------


def _wait(run: lw.Run, done: Any) -> None:
    while run.active and not done():
        run.await_termination(0.01)
    run.await_termination(0)


def test_a_run_forgets_answers_and_frees_their_state_at_once() -> None:
    source, rows = pushed("rows")
    run = rows.window("10 s").group_by("k").agg(n="count(*)").run()
    source.send(pl.DataFrame({"ts": [1, 2, 3, 4, 5], "k": [1, 2, 3, 4, 5]}))
    _wait(run, lambda: run.metrics().state_rows == 5)
    run.forget_before(10)
    assert run.metrics().state_rows == 0
    source.send(pl.DataFrame({"ts": [6, 12], "k": [1, 1]}))
    run.forget_before(5)  # changes nothing
    source.close()
    assert run.await_termination(LONG)
    assert run.results().to_pylist() == [{"window_start": 10, "window_end": 20, "k": 1, "n": 1}]
    assert run.metrics().stream("rows").unneeded_rows == 1
    assert run.metrics().late_rows == 0


def test_answers_that_no_floor_reaches_are_held_back_at_the_end_and_counted() -> None:
    source, rows = pushed("rows")
    run = rows.session("5 s").agg(n="count(*)").run()
    run.forget_before(10)  # sessions may begin before and last longer
    source.send(pl.DataFrame({"ts": [8, 9, 12, 30], "k": [1, 1, 1, 1]}))
    source.close()
    assert run.await_termination(LONG)
    assert run.results()["window_start"].to_pylist() == [30]
    assert run.metrics().rows_unneeded == 1


def test_a_query_forgets_like_a_condition() -> None:
    counts = stream("a", progress=lw.within("30 s")).window("10 s").agg(n="count(*)")
    assert counts.forget_before(30).collect()["window_start"].to_pylist() == [30, 40, 60]
    assert needs(counts.forget_before(30)) == needs(counts.where("window_start >= 30"))
    assert needs(counts.forget_before(45, on="window_end")) == {"a": {"ts": 40}}
    days = lw.stream(DAYS, name="days", time="ts")
    for time in ("2024-01-02", date(2024, 1, 2), datetime(2024, 1, 2)):
        assert days.forget_before(time).collect().num_rows == 1


REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: stream("a"), "soon", "takes a time such as '2024-01-31 12:00:00', not 'soon'"),
    (lambda: stream("a"), 1.5, "ts is of type Int64; give a whole number, not 1.5"),
    (lambda: lw.stream(DAYS, time="ts"), 5, "give a datetime or a date, not 5"),
    (
        lambda: lw.stream(DAYS.with_columns(pl.col("ts").dt.replace_time_zone("UTC")), time="ts"),
        "2024-01-01",
        "with a time zone, as ts has UTC",
    ),
    (lambda: stream("a").select("k"), 5, "forget_before needs a progressing attribute"),
]


@pytest.mark.parametrize(("query", "time", "why"), REFUSED)
def test_what_is_no_time_of_the_answers_is_refused(query: Any, time: Any, why: str) -> None:
    with pytest.raises(lw.LowwaterError, match=why):
        query().forget_before(time)
    run = query().run()
    with pytest.raises(lw.LowwaterError, match=why):
        run.forget_before(time)
    run.await_termination(LONG)


def test_a_run_on_spark_says_what_to_write_instead() -> None:
    from lowwater.engines.spark.driver.run import SparkRun

    with pytest.raises(lw.OptionError, match=r"start the query with \.forget_before"):
        SparkRun._forget(None, {})  # type: ignore[arg-type]
