"""Who holds the mark back is named: the stream, its channel, and who waits."""

from __future__ import annotations

import pytest

import lowwater as lw
from lowwater.dashboard.findings import findings, holder
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES, Readings
from tests.unit.dashboard.scenes import declared, looked, operator, told


def union(*streams: lw.Stream) -> lw.Stream:
    first, *others = streams
    return first.union(*others).window("1 minute").agg(n="count(*)")


def said(found) -> list[str]:
    return [each.text for each in findings(found)]


def test_the_stream_that_is_furthest_behind_is_named_with_who_waits_for_it():
    query = union(declared("fast"), declared("slow"))
    found = looked(query, told("fast", 1_000), told("slow", 980))
    held = holder(found)
    assert held is not None
    assert (held.stream, held.waiting.title) == ("slow", "union#2")
    assert held.path == {"slow", "union#2"}
    assert said(found) == ["union#2 waits for slow: its mark, 980, is 20.0 s behind fast."]
    assert findings(found)[0].level == "ok"


def test_a_stream_that_stalls_is_worth_a_warning_and_a_hint():
    query = union(declared("fast"), declared("slow"))
    (line,) = findings(looked(query, told("fast", 1_000), told("slow", 800)))
    assert line.level == "warn"
    assert "3 min 20 s behind fast" in line.text
    assert "idle=lw.on_demand()" in line.text


def test_a_stream_that_speaks_when_silent_gets_no_hint():
    query = union(declared("fast"), declared("slow", idle=lw.on_demand()))
    (line,) = findings(looked(query, told("fast", 1_000), told("slow", 800)))
    assert "on_demand" not in line.text


def test_of_a_stream_with_channels_the_slowest_is_named():
    query = declared("routers", channel="host").window("1 minute").agg(n="count(*)")
    marks = {"a": 100, "b": 400, "c": 410}
    found = looked(query, told("routers", 100, channels=marks, silent={"a": 290.0}))
    held = holder(found)
    assert held is not None
    assert held.waiting.title == "window#1"
    (text,) = said(found)
    assert text.startswith("window#1 waits for routers: its mark, 100, is 5 min 10 s behind")
    assert "Of its 3 channels, a holds it back, 5 min behind the next one" in text
    assert "it has sent nothing for 4 min 50 s" in text


def test_a_group_of_several_columns_is_named_by_all_of_them():
    query = declared("routers", groups=["host"]).window("1 minute").agg(n="count(*)")
    found = looked(query, told("routers", 0, channels={("x", 7): 0, ("y", 8): 500}))
    assert "x, 7 holds it back" in said(found)[0]


def test_a_stream_without_a_promise_holds_everybody():
    query = union(declared("fast"), declared("slow"))
    found = looked(query, told("fast", 1_000), told("slow", None, rows=0))
    (line,) = findings(found)
    assert line.level == "warn"
    assert line.text == "union#2 waits for slow, which has sent no row yet."  # idle= has no help
    (line,) = findings(looked(query, told("fast", 1_000), told("slow", None)))
    assert "which has made no promise yet" in line.text


@pytest.mark.parametrize("marks", [(1_000, 1_000), (1_000, 999)])
def test_streams_that_keep_step_hold_nothing_back(marks):
    query = union(declared("a"), declared("b"))
    found = looked(query, *(told(n, m) for n, m in zip("ab", marks, strict=True)))
    assert holder(found) is None
    assert said(found)[0].startswith("All streams keep step")


def test_streams_that_ended_or_promise_nothing_are_not_waited_for():
    query = union(declared("a"), declared("b"), declared("c", progress=lw.unpromised()))
    found = looked(query, told("a", 1_000), told("b", 0, ended=True), told("c", None))
    assert holder(found) is None


def test_a_time_in_milliseconds_is_told_in_seconds():
    query = union(declared("a", unit="ms"), declared("b", unit="ms"))
    found = looked(query, told("a", 90_000), told("b", 60_000))
    assert "30.0 s behind a" in said(found)[0]
    assert found.lag_of("b") == 30.0


def test_late_rows_are_told_with_their_channel_and_how_late():
    query = declared("routers", channel="host").window("1 minute").agg(n="count(*)")
    late = [("a", "late", 3, 9.0, 2.0), ("b", "late", 1, 12.0, 12.0), (None, "no time", 1, 0, 0)]
    lines = said(looked(query, told("routers", 5, late=late), active=False))
    assert "routers: 4 rows were late, by up to 12.0 s; most, 3, of channel a." in lines
    assert "routers: 1 row was refused: no time." in lines


def test_a_failure_comes_first_and_strategies_and_joins_are_told():
    query = declared("a").join(declared("b"), on=["host"], within="1 minute")
    readings = Readings({STRATEGY: "filter-order", REASON: "rates are far apart", SWITCHES: 2})
    found = looked(
        query,
        told("a", 5),
        told("b", 5),
        active=False,
        error=ValueError("no such sensor"),
        operators=[operator("join#2", readings=readings)],
    )
    assert said(found) == [
        "It failed: no such sensor",
        "join#2: filter-order, rates are far apart",
    ]
