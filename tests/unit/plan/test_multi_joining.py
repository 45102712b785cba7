"""Joins over many inputs that cannot be run say why; those that can are explained."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.demand import Demand


def stream(name: str | None = None) -> lw.Stream:
    frame = pl.DataFrame({"ts": [1, 2], "k": [1, 1], "v": [0.5, 1.5], "s": ["a", "b"]})
    return lw.stream(frame, time="ts", name=name)


def clocked() -> lw.Stream:
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    return lw.stream(pl.DataFrame({"ts": moments, "k": [1, 2]}), time="ts")


def three() -> list[lw.Stream]:
    return [stream("a"), stream("b"), stream("c")]


@pytest.mark.parametrize("number", [0, 1])
def test_one_input_is_too_few(number: int) -> None:
    with pytest.raises(lw.OptionError, match=f"two streams or more, not of {number}"):
        lw.join([stream() for _ in range(number)], on="k", within=1)


@pytest.mark.parametrize("given", [stream(), [stream(), "b"]])
def test_what_is_no_list_of_streams_is_refused(given: Any) -> None:
    with pytest.raises(lw.OptionError, match="join takes"):
        lw.join(given, on="k", within=1)


@pytest.mark.parametrize("within", [[1, 2], ["1 s"] * 4, [], lw.same(5), {"a": 1}])
def test_windows_are_one_or_one_of_each_input(within: Any) -> None:
    with pytest.raises(lw.OptionError, match="one length of time, or a list of 3, one of each"):
        lw.join(three(), on="k", within=within)


def test_a_window_below_zero_is_refused() -> None:
    with pytest.raises(lw.OptionError, match="has a window below zero"):
        lw.join(three(), on="k", within=[1, -1, 5])


def test_a_window_finer_than_the_time_column_is_refused() -> None:
    with pytest.raises(lw.OptionError, match="within= of 10 ms is finer than the time column"):
        lw.join(three(), on="k", within=["1 s", "10 ms", "1 s"])


def test_a_join_without_bound_is_refused_with_the_ways_to_bound_it() -> None:
    for times in (None, ["ts", "ts", "ts"]):
        with pytest.raises(lw.QueryError, match=r"never forget a row.*one window of each input"):
            lw.join(three(), on="k", times=times)


@pytest.mark.parametrize("on", [[("k", "k")], ["k", ("k", "k", "k", "k")]])
def test_keys_are_names_or_one_name_of_each_input(on: Any) -> None:
    with pytest.raises(lw.OptionError, match="tuples of 3 of them, one of each input"):
        lw.join(three(), on=on, within=1)


def test_keys_must_be_known_and_of_one_type() -> None:
    with pytest.raises(lw.QueryError, match="unknown join column 'kk'"):
        lw.join(three(), on="kk", within=1)
    with pytest.raises(lw.QueryError, match="must have one type: 'k' is Int64 and 's' is String"):
        lw.join(three(), on=[("k", "k", "s")], within=1)


def test_times_are_one_of_each_input_that_progresses_and_counts_alike() -> None:
    for times in ("ts", ["ts", "ts"]):
        with pytest.raises(lw.OptionError, match="one time column of each of the 3 inputs"):
            lw.join(three(), on="k", within=1, times=times)
    with pytest.raises(lw.QueryError, match="a join needs a progressing attribute, and 'k'"):
        lw.join(three(), within=1, times=["ts", "k", "ts"])
    with pytest.raises(lw.QueryError, match="a join compares times of one kind"):
        lw.join([stream(), stream(), clocked()], on="k", within=1)
    timeless = stream().select("k")
    with pytest.raises(lw.QueryError, match="a progressing attribute of every input"):
        lw.join([stream(), timeless, stream()], on="k", within=1)


@pytest.mark.parametrize("suffixes", ["_b", ["_b"], ["_a", "_b", "_c"]])
def test_suffixes_are_one_of_each_input_after_the_first(suffixes: Any) -> None:
    with pytest.raises(lw.OptionError, match="one suffix of each input after the first, 2 here"):
        lw.join(three(), on="k", within=1, suffixes=suffixes)


def test_a_column_that_would_come_twice_is_refused() -> None:
    with pytest.raises(lw.QueryError, match=r"column 'v_3' would come twice.*suffixes="):
        lw.join([stream().map(v_3="v"), stream(), stream()], on="k", within=1)
    with pytest.raises(lw.QueryError, match="column 'ts_x' would come twice"):
        lw.join(three(), on="k", within=1, suffixes=["_x", "_x"])


@pytest.mark.parametrize(
    ("on", "twice"),
    [("k", ["k_2", "k_3"]), ([("ts", "k", "k")], ["k_3"]), ([("k", "ts", "k")], ["k_3"])],
)
def test_a_key_that_several_inputs_call_alike_comes_once(on: Any, twice: list[str]) -> None:
    names = [f"{column}{suffix}" for suffix in ("", "_2", "_3") for column in stream().columns]
    expected = [each for each in names if each not in twice]
    assert lw.join(three(), on=on, within=1).columns == expected


def test_a_condition_on_an_unknown_column_is_refused() -> None:
    with pytest.raises(lw.ExpressionError, match="unknown column 'v_4'"):
        lw.join(three(), on="k", within=1, where="v < v_4")


def test_late_rows_cannot_correct_it() -> None:
    query = lw.join(three(), on="k", within=1)
    with pytest.raises(lw.QueryError, match="it joins"):
        query.corrections({})


def test_explain_shows_inputs_windows_keys_and_what_is_told() -> None:
    text = lw.join(three(), on="k", within="1 minute", where="v < v_2").explain()
    assert "multijoin#3  join 3 inputs, within 1 minute, on k, v < v_2" in text
    assert "partitioned by: k" in text
    assert "rows go to buckets: by k" in text
    windows = ["1 minute", "2 s", 0]
    joined = lw.join(three(), on=[("k", "k", "k"), ("s", "s", "s")], within=windows)
    text = joined.group_by("ts", "ts_3").agg(n="count(*)").explain()
    assert "join 3 inputs, within 1 minute, 2 s, 0 s, on k and s" in text
    assert "promises jointly: ts or ts_3" in text
    text = lw.join(three(), within=5).explain()
    assert "partitioned by: none (one partition)" in text
    assert "rows go to buckets: one bucket" in text
    text = lw.join(three(), on="k", within=5).explain("in-order")
    assert text.splitlines()[1].startswith("sort#4  by ts")


def test_marks_are_wanted_where_they_let_it_forget_or_promise() -> None:
    """An input's mark lets the others forget by slices of their windows. What is wanted of one time
    is wanted of its input, and of the others as much further as its window is."""
    joined = lw.join(three(), on="k", within=["80 s", "200 s", "200 s"])
    plan = compile_plan(joined._node)
    steps = [plan.demands[source.index]["ts"] for source in plan.sources]
    assert steps == [Demand.grid(25), *[Demand.grid(10) | Demand.grid(25)] * 2]
    plan = compile_plan(joined.window("70 s").agg(n="count(*)")._node)
    more = [plan.demands[source.index]["ts"] for source in plan.sources]
    offsets = (0, 80, 80)
    assert more == [
        each | Demand.grid(70, offset) for each, offset in zip(steps, offsets, strict=True)
    ]


def test_rows_are_spread_by_the_keys_all_inputs_carry() -> None:
    a, b, c = three()
    query = lw.join(
        [a, b.select("ts", kk="k", s="s"), c.select("ts", "s", k="v + 1")], on="s", within=5
    )
    (stage,) = lay_out(compile_plan(query._node)).stages
    assert [[name for name, _ in edge.key or ()] for edge in stage.edges] == [["s"]] * 3
    assert not stage.single


def test_the_times_of_a_join_below_still_progress() -> None:
    """Each is at most so far behind the others as the windows on the way say."""
    a, b, c = three()
    pairs = a.join(b, on="k", within=(3, 4))
    joined = lw.join([c, pairs], on="k", within=[5, 7])._node
    behind = {name: dict(each.behind) for name, each in joined.progress.items()}
    assert behind == {
        "ts": {"ts_2": 5, "ts_right": 5 + 4},
        "ts_2": {"ts": 7, "ts_right": 4},
        "ts_right": {"ts": 3 + 7, "ts_2": 3},
    }
