"""Requests of single groups: what one group awaits hides nothing of another, whatever its clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.engines.clock import VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, ReadPace
from lowwater.engines.spark.wire import tick_requests
from lowwater.operators.waiting import Release, Waits
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.channel import MeasuredChannel
from lowwater.progress.group_tracker import GroupTracker
from lowwater.progress.idle import GROUPS_AT_ONCE, EnablingRule
from lowwater.stream.element import MARK, GroupPunctuation, Punctuation
from tests.support.local_spark import LocalSpark, Unordered
from tests.support.oracle import answer

DAY = 86_400
TIMESTAMPS = EnablingRule.timestamps
SCHEMA = {"at": pl.Float64, "ts": pl.Int64, "g": pl.String, "v": pl.Int64}
ODD = [(t / 1, t - 100 * DAY, "odd", 1) for t in (1, 2, 3)] + [(30.0, 40 - 92 * DAY, "odd", 1)]
"""A group far behind, one row of which is eight days ahead of its own clock."""
AT_20 = "CAST(floor(ts / 20.0) AS BIGINT) * 20"
QUERIES: dict[str, tuple[Callable[[Stream], Stream], str]] = {
    "window": (
        lambda s: s.window(20).group_by("g").agg(n="count(*)"),
        f"SELECT {AT_20}, {AT_20} + 20, g, count(*) FROM a GROUP BY ALL",
    ),
    "sliding": (
        lambda s: s.where("v >= 0").window(30, slide=10).group_by("g").agg(n="count(*)"),
        "SELECT w, w + 30, g, count(*) FROM (SELECT *, unnest([t * 10 - 20, t * 10 - 10, t * 10])"
        " AS w FROM (SELECT *, CAST(floor(ts / 10.0) AS BIGINT) AS t FROM a)) GROUP BY ALL",
    ),
    "table": (
        lambda s: s.window(20, table=4).group_by("g").agg(n="count(*)"),
        f"SELECT {AT_20}, {AT_20} + 20, g, count(*) FROM a GROUP BY ALL",
    ),
    "session": (
        lambda s: s.session(7).group_by("g").agg(n="count(*)"),
        "SELECT min(ts), max(ts) + 7, g, count(*) FROM (SELECT *, sum(CASE WHEN p IS NULL OR"
        " ts - p >= 7 THEN 1 ELSE 0 END) OVER (PARTITION BY g ORDER BY ts ROWS UNBOUNDED"
        " PRECEDING) AS k FROM (SELECT *, lag(ts) OVER (PARTITION BY g ORDER BY ts) AS p FROM a))"
        " GROUP BY g, k",
    ),
    "group": (
        lambda s: lw.sql("SELECT ts/10 AS t, g AS h, count(*) AS n FROM a GROUP BY ts/10, g", a=s),
        "SELECT CAST(floor(ts / 10.0) AS BIGINT), g, count(*) FROM a GROUP BY ALL",
    ),
    "renamed": (
        lambda s: lw.sql(
            "SELECT window_start, h, count(*) AS n FROM (SELECT ts + 5 AS t, g AS h FROM a)"
            " [RANGE 20, WA t] GROUP BY h",
            a=s,
        ),
        "SELECT CAST(floor((ts + 5) / 20.0) AS BIGINT) * 20, g, count(*) FROM a GROUP BY ALL",
    ),
}


@dataclass(frozen=True)
class Talk:
    """What a group sends: how far its clock is off, and when it speaks."""

    offset: int
    times: list[int]


TALKS = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(
        Talk,
        st.sampled_from([0, 3, -50, 777, -9 * DAY, 400 * DAY]),
        st.lists(st.integers(0, 400), min_size=2, max_size=8, unique=True),
    ),
    min_size=1,
)


def log(talks: dict[str, Talk]) -> list[tuple[float, int, str, int]]:
    """The rows of groups, each as it is sent."""
    rows = [
        (float(t), t + talk.offset, name, 1)
        for name, talk in talks.items()
        for t in sorted(talk.times)
    ]
    return sorted(rows)


def played(
    query: Callable[[Stream], Stream], rows: list[Any]
) -> tuple[dict[Any, float], list[Any]]:
    """When each answer leaves, and all answers."""
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    clock, left, out = VirtualClock(), {}, []
    idle = lw.on_demand(skew=2)
    stream = lw.stream(
        lw.replay(table, arrival="at"),
        name="a",
        time="ts",
        groups="g",
        idle=idle,
        jump=lw.jump("1 day"),
    )

    class Sink:
        def write(self, rows: pl.DataFrame) -> None:
            for row in rows.rows():
                left[row] = clock.now() / 1e9
                out.append(row)

        def close(self) -> None: ...

    plan = compile_plan(query(stream)._node)
    engine = EmbeddedEngine(plan, Sink(), clock, ReadPace(tick=0), None)
    engine.run()
    assert engine.metrics().late_rows == 0
    return left, out


@pytest.mark.filterwarnings("ignore::lowwater.errors.StreamWarning")
@pytest.mark.parametrize("name", QUERIES)
@given(TALKS)
def test_an_odd_group_delays_no_other(name: str, talks: dict[str, Talk]) -> None:
    query, sql = QUERIES[name]
    rows = sorted([*log(talks), (900.0, 0, "last", 1), (901.0, 1, "last", 1)])
    both = sorted([*rows, *ODD])
    alone, _ = played(query, rows)
    beside, out = played(query, both)
    table = pl.DataFrame(both, schema=SCHEMA, orient="row")
    assert sorted(out) == sorted(answer(sql, {"a": table}).elements())
    assert {row: when for row, when in beside.items() if "odd" not in row} == alone


@pytest.mark.parametrize("how", ["left", "anti"])
@given(TALKS)
def test_an_odd_group_delays_no_other_in_a_join(how: Any, talks: dict[str, Talk]) -> None:
    def query(stream: Stream) -> Stream:
        return stream.where("v >= 0").join(
            stream.where("v < 0").select("ts", "g"), on="g", within=(0, 5), how=how
        )

    rows = sorted([*log(talks), (900.0, 0, "last", 1), (901.0, 1, "last", 1)])
    alone, _ = played(query, rows)
    beside, out = played(query, sorted([*rows, *ODD]))
    assert len(out) == len(rows) + len(ODD)
    assert {row: when for row, when in beside.items() if "odd" not in row} == alone


# ---- one part: what an operator holds ----------------------------------------------------------

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-30, 30)), max_size=12)
PASSES = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-40, 70)), max_size=6)


@given(ROWS, PASSES, st.integers(1, 9), st.integers(0, 25), st.integers(1, 12), st.data())
def test_the_least_awaited_mark_of_each_group(
    rows: list[Any], passes: list[Any], near: int, wide: int, step: int, data: Any
) -> None:
    offset = data.draw(st.integers(0, step - 1))
    waits = Waits(Release(0, pl.col("ts"), ("g",), "ts", near, near + wide, step, offset))
    marks, whole = {"a": -100, "b": -100}, -100
    told: dict[Any, int | None] = {}
    steps = data.draw(
        st.permutations([*(("row", r) for r in rows), *(("mark", p) for p in passes)])
    )
    held: list[Any] = []
    for kind, (group, time) in steps:
        if kind == "row":
            held.append((group, time))
            waits.hold(pl.DataFrame({"g": [group], "ts": [time]}))
        elif group is None:
            whole = max(whole, time)
            waits.on_promise(0, Punctuation.linear("ts", time))
        else:
            if any(each == group for each, _ in held):
                marks[group] = max(marks[group], time)
            waits.on_promise(0, GroupPunctuation("ts", pl.DataFrame({"g": [group], MARK: [time]})))
        for key, mark in waits.changed():
            told[key] = mark
        for name in "ab":
            # A group of which nothing is held may have been promised more than is remembered.
            points = [
                point
                for each, at in held
                if each == name
                for point in range(at + near, at + near + wide + 1)
                if (point - offset) % step == 0 and point > max(marks[name], whole)
            ]
            least = waits.least.get((name,))
            assert told.get((name,)) == least
            if points and least is not None:
                assert least <= min(points)
            elif points:
                raise AssertionError((name, points))


@pytest.mark.parametrize("groups", [50, 2_000])
def test_a_step_looks_at_the_groups_it_is_about(groups: int) -> None:
    silent = [(float(at), -at * DAY, f"g{at}", 1) for at in range(groups)]
    spoken = [(at, time + 1, name, 1) for at, time, name, _ in silent]
    busy = [(groups + at * 7.0, at * 7, "busy", 1) for at in range(200)]
    table = pl.DataFrame([*silent, *spoken, *busy], schema=SCHEMA, orient="row").sort("at")
    idle = lw.on_demand(skew=2)
    stream = lw.stream(lw.replay(table, arrival="at"), name="a", time="ts", groups="g", idle=idle)
    plan = compile_plan(stream.window(5).group_by("g").agg(n="count(*)")._node)

    engine = EmbeddedEngine(plan, Written(), VirtualClock(), ReadPace(tick=0), None)
    look_up = GroupTracker.mark_of
    with mock.patch.object(GroupTracker, "mark_of", autospec=True, side_effect=look_up) as looked:
        engine.run()
    (feed,) = engine.feeds.values()
    told = groups + len(busy)  # each group is answered once, the busy one for every row
    assert feed.stamps <= told
    assert (
        0 < looked.call_count <= 8 * told
    )  # twice a row that comes and twice an answer that leaves


class Written:
    """A destination that drops what it gets."""

    def write(self, rows: pl.DataFrame) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("many", [50, 500])
@pytest.mark.parametrize("progress", [lw.ordered(), lw.within_rows(0)])
def test_asking_costs_no_step_and_no_look_at_a_channel_that_is_silent(
    many: int, progress: Any
) -> None:
    silent = [(float(at % 2), at % 2, f"c{at // 2}", 1) for at in range(2 * many)]
    busy = [(2 + at * 3.0, 2 + at * 3, "busy", 1) for at in range(100)]
    table = pl.DataFrame([*silent, *busy], schema=SCHEMA, orient="row").sort("at")
    idle = lw.on_demand(skew=1)
    stream = lw.stream(
        lw.replay(table, "at"), name="a", time="ts", channel="g", progress=progress, idle=idle
    )
    plan = compile_plan(stream.window(5).agg(n="count(*)")._node)
    engine = EmbeddedEngine(plan, Written(), VirtualClock(), ReadPace(tick=0), None)
    property_ = MeasuredChannel.contract_mark
    looks = 0

    def counted(channel: MeasuredChannel) -> int:
        nonlocal looks
        looks += 1
        return property_.fget(channel)  # type: ignore[misc]

    with (
        mock.patch.object(MeasuredChannel, "contract_mark", property(counted)),
        mock.patch.object(EnablingRule, "timestamps", autospec=True) as asked,
    ):
        asked.side_effect = TIMESTAMPS
        engine.run()
    (feed,) = engine.feeds.values()
    assert 50 <= feed.stamps <= len(busy)
    assert looks <= table.height  # once for each row at most
    assert asked.call_count <= 4 * len(busy)  # one computation for all channels, however many


@pytest.mark.parametrize("many", [100, 2_500])
def test_groups_that_are_due_within_a_hundredth_of_a_second_are_asked_together(many: int) -> None:
    start = [(0.001 * (at % 100), 0, f"g{at}", 1) for at in range(many)]
    again = [(at + 1, 1, name, 1) for at, _, name, _ in start]
    last = [(60.0, 60, "busy", 1), (61.0, 61, "busy", 1)]
    table = pl.DataFrame([*start, *again, *last], schema=SCHEMA, orient="row").sort("at")
    idle = lw.on_demand(skew=1)
    stream = lw.stream(lw.replay(table, "at"), name="a", time="ts", groups="g", idle=idle)
    plan = compile_plan(stream.window(5).group_by("g").agg(n="count(*)")._node)
    engine = EmbeddedEngine(plan, Written(), VirtualClock(), ReadPace(tick=0), None)
    engine.run()
    (feed,) = engine.feeds.values()
    # The groups become due over a tenth of a second: ten times, and once for each thousand groups.
    assert feed.stamps <= 11 + many // GROUPS_AT_ONCE + 1
    assert engine.results[0].counts()[0] == many + 1


# ---- on Spark --------------------------------------------------------------------------------


def wanted(rows: list[Any], buckets: int) -> list[int]:
    """The clock times at which ticks are wanted after one batch, the first one first."""
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    source: Any = Unordered(table, [table.height])
    stream = lw.stream(source, name="a", time="ts", groups="g", idle=lw.on_demand(skew=2))
    local = LocalSpark(stream.window(20).group_by("g").agg(n="count(*)"), 1, buckets)
    stages = tuple(replace(each, request_folder="asks") for each in local.program.stages)
    local.program = replace(local.program, stages=stages)
    local._schedule.random = lambda: 0.0  # type: ignore[method-assign]
    with mock.patch.object(tick_requests, "save_request") as ask:
        local.results()
    times = [call.args[0].when for call in ask.call_args_list if call.args[3] == 0]
    return sorted({time for time in times if time is not None})


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.filterwarnings("ignore::lowwater.errors.StreamWarning")
def test_on_spark_ticks_are_wanted_for_the_group_whose_clock_is_first(buckets: int) -> None:
    rows = [(0.0, 1, "a", 1), (0.0, 11, "a", 1)]
    alone = wanted(rows, buckets)
    assert wanted([*rows, *ODD], buckets)[: len(alone)] == alone != []
