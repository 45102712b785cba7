"""Streams that promise nothing: no row is late, no mark is made, and the end ends them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.progress.contract import Unpromised
from lowwater.progress.demand import Demand
from lowwater.progress.intake import BatchIntake
from lowwater.stream.element import BEGINNING
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.progress.judging import ANY, intake, spec_of
from tests.unit.running import finished, rows

WILD = [5, 900_000_000, 1, 7, 3, 2, 900_000_001]


def wild(**options: Any) -> lw.Stream:
    return wild_of(pl.DataFrame({"ts": WILD, "x": range(len(WILD))}), **options)


def wild_of(source: Any, **options: Any) -> lw.Stream:
    given = {"name": "s", "time": "ts", "progress": lw.unpromised(), "jump": None} | options
    return lw.stream(source, **given)


@pytest.mark.parametrize("then", ["warn", "quarantine", "fail"])
@pytest.mark.parametrize("chunk_rows", [1, 3, None])
def test_no_row_is_late_and_none_is_too_far_ahead(then: Any, chunk_rows: int | None) -> None:
    run = finished(wild(jump=lw.jump("1 day", then)), chunk_rows=chunk_rows)
    assert run.results()["ts"].to_pylist() == WILD
    told = run.metrics().stream("s")
    assert (told.refused_rows, told.marks, told.slowest_channel) == (0, {"ts": None}, None)


def test_no_mark_is_ever_told() -> None:
    held = intake(progress=lw.unpromised())
    for ts in WILD:
        frame = pl.DataFrame({"id": [1], "ts": [ts], "c": ["a"], "p": [None]})
        assert held.take(frame, now=0).promises == []
        assert held.mark("ts") == BEGINNING
    assert held.enable("ts", 0, 10**18) == []
    assert held.when("ts", 0, 10**18) is None


@pytest.mark.filterwarnings("ignore:1 row")
def test_a_row_without_a_time_is_refused_all_the_same() -> None:
    frame = pl.DataFrame({"ts": [1, None, 0]}, schema={"ts": pl.Int64})
    run = finished(lw.stream(frame, name="s", time="ts", progress=lw.unpromised()))
    assert run.results()["ts"].to_pylist() == [1, 0]
    assert run.late_rows()["_reason"].to_pylist() == ["no time"]


def test_windows_are_answered_when_the_stream_ends() -> None:
    counted = wild().window("10 seconds").agg(n="count(*)")
    found = sorted((row["window_start"], row["n"]) for row in rows(counted))
    assert found == [(0, 5), (900_000_000, 2)]


@pytest.mark.parametrize("buckets", [1, 3])
def test_windows_over_batches_too(buckets: int) -> None:
    counted = wild().window("10 seconds").group_by("x").agg(n="count(*)")
    found = LocalSpark(counted, 1, buckets).results()
    assert sorted(found["x"].to_list()) == list(range(len(WILD)))


@pytest.mark.parametrize("buckets", [1, 3])
def test_windows_over_batches_in_no_order(buckets: int) -> None:
    frame = pl.DataFrame({"ts": WILD * 20, "x": range(len(WILD) * 20)})
    unordered = wild_of(Unordered(frame, [40, 60, 40]))
    counted = unordered.window("10 seconds").group_by("x").agg(n="count(*)")
    ran = LocalSpark(counted, 1, buckets)
    assert sorted(ran.results()["x"].to_list()) == list(range(frame.height))
    assert ran.late("s") is None


def test_beside_another_attribute_that_is_promised() -> None:
    frame = pl.DataFrame({"epoch": [9, 1, 8, 2], "ts": [1, 3, 2, 4]})
    mixed = lw.stream(
        frame,
        name="s",
        time="ts",
        progress={"epoch": lw.unpromised(), "ts": lw.ordered()},
    )
    run = finished(mixed)
    assert run.results()["epoch"].to_pylist() == [9, 1, 2]
    assert run.metrics().stream("s").marks == {"ts": 4, "epoch": None}


def test_batches_of_it_make_no_digest() -> None:
    spec = spec_of(progress=lw.unpromised())
    frame = pl.DataFrame({"id": [1, 2], "ts": [9, None], "c": ["a"] * 2, "p": [1, 1]})
    frame = frame.cast({"ts": pl.Int64, "p": pl.Int64})
    reading = BatchIntake(spec, {"ts": ANY})
    rows = reading.conform(frame, 0)
    assert reading.digest(rows) is None
    assert reading.absorb(None, 0, 2) == {}
    assert reading.judge(rows, reading.marks_before())["id"].to_list() == [1]
    assert reading.row_promises() == []


def test_batches_of_a_mixed_stream_are_judged_by_what_is_promised() -> None:
    spec = spec_of(progress={"ts": lw.ordered(), "id": lw.unpromised()})
    reading = BatchIntake(spec, {"ts": ANY, "id": Demand.any_value()})
    frame = pl.DataFrame({"id": [9, 1], "ts": [5, 6], "c": ["a", "a"], "p": [1, 1]})
    found = reading.digest(reading.conform(frame, 0))
    assert found is not None
    assert found["__attribute"].unique().to_list() == ["ts"]
    reading.absorb(found, 0, 2)
    assert (reading.mark("ts"), reading.mark("id")) == (6, BEGINNING)
    again = frame.with_columns(ts=pl.Series([5, 7]), id=pl.Series([100, 0]))
    kept = reading.judge(reading.conform(again, 0), reading.marks_before())
    assert kept["id"].to_list() == [0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("idle", lw.on_demand()),
        ("groups", "x"),
        ("channel", "x"),
        ("punctuate", lw.every("1 second")),
    ],
)
def test_how_promises_are_made_is_refused_where_there_are_none(option: str, value: Any) -> None:
    with pytest.raises(lw.OptionError, match=rf"{option}= sets how promises are made.*leave"):
        wild(**{option: value})
    mixed = {"ts": lw.ordered(), "x": lw.unpromised()}
    if option in ("idle", "punctuate"):
        wild(**{option: value, "progress": mixed})


def test_a_clock_promises() -> None:
    with pytest.raises(lw.OptionError, match="takes the times from the clock"):
        wild(stamp="internal", time="at")


def test_a_producer_cannot_promise_either() -> None:
    pushed = lw.push({"ts": pl.Int64})
    run = lw.stream(pushed, name="s", time="ts", progress=lw.unpromised()).run()
    pushed.punctuate("ts", 3)
    pushed.close()
    with pytest.raises(lw.LowwaterError, match="makes no promises on 'ts', because it is"):
        run.await_termination(60)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"disorder": -1}, "disorder= is a whole number >= 0, not -1"),
        ({"disorder": 1.5}, "disorder= is a whole number >= 0, not 1.5"),
        ({"multiplicity": 0}, "multiplicity= is a whole number >= 1, not 0"),
        ({"multiplicity": True}, "multiplicity= is a whole number"),
        ({"rate": 0}, "rate= is rows a second above 0, not 0"),
        ({"rate": float("inf")}, "rate= is rows a second above 0"),
        ({"rate": "fast"}, "rate= is rows a second above 0, not 'fast'"),
        ({"delay": -1}, "delay= takes a length of time of zero or more"),
        ({"delay": "soon"}, "delay= 'soon' is not a length of time"),
        ({"disorder": 1, "multiplicity": 4}, "disorder= is at least that, not 1"),
    ],
)
def test_what_is_known_is_checked(given: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.OptionError, match=message):
        lw.unpromised(**given)


def test_in_words() -> None:
    assert Unpromised().describe() == "unpromised"
    known = lw.unpromised(500, 2, 50, "10 seconds")
    assert known.describe() == (
        "unpromised (disorder 500 rows, multiplicity 2, 50 rows/s, delay 10 s)"
    )
