"""One join over many inputs: windows, edges, ties, keys, names, what is kept, what is asked.

::

    a   ts   0 ......... 10 ......... 20
    b   ts       4 .......... 15
    c   ts          7 ................. 21
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.joins.multi_join import MultiJoin
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import End, Punctuation
from tests.unit.engine.scenes import log
from tests.unit.running import column, finished, rows

TIMES = {"a": [0, 10, 20], "b": [4, 15], "c": [7, 21], "d": [9, 16, 30]}


def stream(name: str, times: list[int] | None = None, **columns: Any) -> lw.Stream:
    frame = pl.DataFrame({"ts": times or TIMES[name], name: times or TIMES[name], **columns})
    return lw.stream(frame, name=name, time="ts", progress=lw.within(100))


def meeting(windows: list[int], names: str = "abc") -> Counter[tuple[int, ...]]:
    """By the definition: none is further below the latest than its window."""
    return Counter(
        times
        for times in product(*(TIMES[name] for name in names))
        if all(max(times) - time <= window for time, window in zip(times, windows, strict=True))
    )


def met(query: lw.Stream, names: str = "abc", **options: Any) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row[name] for name in names) for row in rows(query, **options))


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
@pytest.mark.parametrize(
    "windows", [[7, 3, 0], [6, 3, 0], [7, 2, 0], [10, 10, 10], [0, 0, 0], [11, 6, 5], [30, 1, 30]]
)
def test_every_input_has_its_own_window(windows: list[int], chunk_rows: int) -> None:
    query = lw.join([stream("a"), stream("b"), stream("c")], within=windows)
    assert met(query, chunk_rows=chunk_rows) == meeting(windows)


def test_windows_end_exactly_where_they_say() -> None:
    """0, 4 and 7 are a result if a's window is 7 and b's is 3; a tick less and they are none."""
    inputs = [stream("a"), stream("b"), stream("c")]
    assert (0, 4, 7) in met(lw.join(inputs, within=[7, 3, 0]))
    assert (0, 4, 7) not in met(lw.join(inputs, within=[6, 3, 0]))
    assert (0, 4, 7) not in met(lw.join(inputs, within=[7, 2, 0]))


def test_four_inputs_in_any_order_give_the_same() -> None:
    windows = {"a": 12, "b": 5, "c": 9, "d": 6}
    every = meeting(list(windows.values()), "abcd")
    assert len(every) > 2
    for order in permutations("abcd"):
        query = lw.join([stream(name) for name in order], within=[windows[name] for name in order])
        assert met(query, "abcd") == every


@pytest.mark.parametrize("chunk_rows", [1, 3, 100])
def test_rows_of_one_time_all_meet(chunk_rows: int) -> None:
    inputs = [stream(name, [5] * many, k=1) for name, many in zip("abc", (2, 3, 4), strict=True)]
    for on, within in (("k", 0), ((), 0), ("k", 3), (["ts", "k"], None)):
        query = lw.join(inputs, on=on, within=within)
        assert query.collect(chunk_rows=chunk_rows).num_rows == 2 * 3 * 4


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
@pytest.mark.parametrize("on", [["x"], ["x", "y"]])
def test_nan_joins_nan_and_null_nothing(chunk_rows: int, on: list[str]) -> None:
    nan = float("nan")
    frame = pl.DataFrame({"ts": range(6), "x": [1.0, nan, 0.0, nan, None, -0.0], "y": 1})
    inputs = [lw.stream(frame, name=name, time="ts") for name in "abc"]
    assert lw.join(inputs, on=on, within=10).collect(chunk_rows=chunk_rows).num_rows == 1 + 8 + 8


def test_rows_far_apart_in_time_meet_those_near_them() -> None:
    """Kept rows over many windows are met by time as well as by key."""
    inputs = [stream(name, list(range(0, 3000, 3)), k=1) for name in "abc"]
    for within, many in ((0, 1000), (2, 1000), (3, 1000 + 6 * 999), ([3, 0, 0], 1000 + 999)):
        assert lw.join(inputs, on="k", within=within).collect().num_rows == many


def test_datetimes_and_lengths_in_words() -> None:
    inputs = [
        lw.stream(
            pl.DataFrame({"at": times, "k": 1}).with_columns(
                pl.from_epoch("at", "s").dt.cast_time_unit("ms")
            ),
            name=name,
            time="at",
        )
        for name, times in (("one", [0, 100]), ("two", [60, 161]), ("three", [59, 160]))
    ]
    query = lw.join(inputs, on="k", within=["1 minute", "500 ms", "1 second"])
    assert len(rows(query)) == 1
    assert len(rows(lw.join(inputs, on="k", within="61 seconds"))) == 3


# ---- names ---------------------------------------------------------------------------------


def test_columns_of_one_name_get_the_number_of_their_input() -> None:
    frame = pl.DataFrame({"ts": [1], "k": [2], "v": [3]})
    a, b, c = (lw.stream(frame, name=name, time="ts") for name in "abc")
    query = lw.join([a, b, c], on="k", within=1)
    assert query.columns == ["ts", "k", "v", "ts_2", "v_2", "ts_3", "v_3"]
    assert query.time == "ts"
    named = lw.join([a, b, c], on="k", within=1, suffixes=["_b", "_c"])
    assert named.columns == ["ts", "k", "v", "ts_b", "v_b", "ts_c", "v_c"]
    other = lw.join([a, b.select(at="ts", k="k"), c.select("ts", "k")], on="k", within=1)
    assert other.columns == ["ts", "k", "v", "at", "ts_3"]
    assert lw.join([a, b, c], on=["ts", "k"]).columns == ["ts", "k", "v", "v_2", "v_3"]


def test_keys_of_other_names_all_come_out() -> None:
    frame = pl.DataFrame({"ts": [1, 2], "k": [2, 5], "v": [3, 2]})
    a, b, c = (lw.stream(frame, name=name, time="ts") for name in "abc")
    query = lw.join([a, b, c], on=[("k", "v", "v")], within=1)
    assert query.columns == ["ts", "k", "v", "ts_2", "k_2", "v_2", "ts_3", "k_3"]
    assert [tuple(row.values()) for row in rows(query)] == [(1, 2, 3, 2, 5, 2, 2, 5)]


def test_an_input_may_give_nothing_but_keys() -> None:
    frame = pl.DataFrame({"ts": [1, 2, 2], "k": [2, 5, 5]})
    inputs = [lw.stream(frame, name=name, time="ts") for name in "abc"]
    query = lw.join(inputs, on=["ts", "k"])
    assert sorted(map(repr, rows(query))) == sorted(
        ["{'ts': 1, 'k': 2}", *["{'ts': 2, 'k': 5}"] * 8]
    )


def test_a_condition_may_speak_of_every_column_that_comes_out() -> None:
    inputs = [stream("a"), stream("b"), stream("c")]
    query = lw.join(inputs, within=30, where="a < b AND ts_3 - ts_2 > 5")
    every = meeting([30, 30, 30])
    assert met(query) == Counter(row for row in every if row[0] < row[1] and row[2] - row[1] > 5)


def test_other_times_can_be_gone_by() -> None:
    frame = pl.DataFrame({"ts": [0, 50], "seen": [100, 150]})
    progress = {"ts": lw.ordered(), "seen": lw.ordered()}
    a, b = (lw.stream(frame, name=name, time="ts", progress=progress) for name in "ab")
    c = lw.stream(pl.DataFrame({"ts": [101, 151]}), name="c", time="ts")
    query = lw.join([a, b, c], within=1, times=["seen", "seen", "ts"])
    assert query.time == "seen"
    assert column(query, "ts") == [0, 50]


# ---- what is kept, promised and asked ------------------------------------------------------


def kernel(windows: list[int], number: int = 3) -> tuple[MultiJoin, MemoryStore]:
    inputs = [stream(name) for name in "abcd"[:number]]
    store = MemoryStore()
    built = compile_plan(lw.join(inputs, within=windows)._node).result.build
    assert built is not None
    made = built(store, lambda: 0)
    assert isinstance(made, MultiJoin)
    return made, store


def row(name: str, time: int) -> pl.DataFrame:
    return pl.DataFrame({"ts": [time], name: [time]})


def test_a_row_is_kept_until_all_other_inputs_have_passed_its_window() -> None:
    join, store = kernel([5, 0, 0])
    join.on_chunk(0, row("a", 10))
    join.on_punctuation(1, Punctuation.linear("ts", 16))
    join.on_punctuation(2, Punctuation.linear("ts", 15))
    assert store.rows == 1  # a row of the third input at 15 could still come
    join.on_punctuation(0, Punctuation.linear("ts", 1000))
    assert store.rows == 1  # its own mark says nothing about it
    join.on_punctuation(2, Punctuation.linear("ts", 16))
    assert store.rows == 0
    join.on_chunk(0, row("a", 10))
    assert store.rows == 0  # nothing that is still to come can meet it


def test_matches_so_far_are_compared_with_kept_rows_the_fewest_first() -> None:
    join, _ = kernel([5, 5, 5])
    for time in (10, 11, 12, 30):
        join.on_chunk(0, row("a", time))
    assert join.comparisons == 0  # there is nothing to meet, so nothing is looked at
    for time in (10, 11):
        join.on_chunk(1, row("b", time))
    before = join.comparisons
    (found,) = join.on_chunk(2, row("c", 12))
    # It is compared with two rows of the second input, and these pairs with three of the first: the
    # row at 30 is in a slice nobody can reach.
    assert join.comparisons - before == 2 + 2 * 3
    assert isinstance(found, pl.DataFrame)
    assert found.height == 2 * 3


def test_an_input_that_ended_holds_nobody() -> None:
    join, store = kernel([5, 5, 5])
    join.on_chunk(0, row("a", 10))
    join.on_chunk(1, row("b", 12))
    join.on_end(2)
    join.on_punctuation(1, Punctuation.linear("ts", 16))
    assert store.rows == 1
    join.on_punctuation(0, Punctuation.linear("ts", 18))
    assert store.rows == 0
    assert not any(isinstance(each, End) for each in join.on_end(0))
    assert join.on_end(1) == [End()]


def told(join: MultiJoin, marks: list[int]) -> dict[tuple[str, ...], tuple[int, ...]]:
    found = {}
    for port, mark in enumerate(marks):
        for each in join.on_punctuation(port, Punctuation.linear("ts", mark)):
            assert isinstance(each, Punctuation)
            found[each.attributes] = each.values
    return found


def test_promises_on_each_time_and_on_all_of_them() -> None:
    join, _ = kernel([5, 2, 0])
    assert told(join, [100, 50, 80]) == {
        ("ts",): (45,),  # the second mark less the first window
        ("ts_2",): (50,),  # its own mark
        ("ts_3",): (50,),  # the second mark: this one is the latest of all
        ("ts", "ts_2", "ts_3"): (100, 50, 80),
    }


def test_a_group_of_two_of_three_times_is_promised_with_the_third() -> None:
    inputs = [stream("a"), stream("b"), stream("c")]
    query = lw.join(inputs, within=[5, 2, 0]).group_by("ts", "ts_2").agg(n="count(*)")
    built = compile_plan(query._node).operators[3].build
    assert built is not None
    join = built(MemoryStore(), lambda: 0)
    assert isinstance(join, MultiJoin)
    # A row of the third input makes the other two come after 80 - 5 and 80 - 2. The one with the
    # least window bears that.
    assert told(join, [100, 90, 80]) == {
        ("ts",): (75,),
        ("ts_2",): (78,),
        ("ts", "ts_2"): (100, 78),
    }


def test_what_is_asked_for_is_what_would_let_it_promise() -> None:
    join, _ = kernel([5, 2, 0])
    asks = {(ask.port, ask.attribute, ask.mark) for ask in join.needs("ts", 40)}
    assert asks == {(0, "ts", 40), (1, "ts", 45), (2, "ts", 45)}
    told(join, [40, 45, 44])
    assert [(ask.port, ask.mark) for ask in join.needs("ts", 40)] == [(2, 45)]
    assert told(join, [40, 45, 45])[("ts",)] == (40,)
    assert join.needs("ts", 40) == []
    every = join.needs_any([("ts", 50), ("ts_2", 60), ("ts_3", 45)])
    assert [(ask.port, ask.mark) for ask in every] == [(0, 50), (1, 60)]


BUSY = list(range(100))


def test_a_group_of_all_times_asks_every_input_for_no_more_than_its_own_time() -> None:
    def answered(**options: Any) -> tuple[list[Any], lw.Run]:
        inputs = [
            lw.stream(log(times), name=name, time="ts", jump=None, **options).select("ts")
            for name, times in (("one", BUSY), ("two", BUSY), ("silent", [0, 500]))
        ]
        query = lw.join(inputs, within=20).group_by("ts", "ts_2", "ts_3").agg(n="count(*)")
        run = finished(query, tick=0)
        return sorted(map(repr, run.results().to_pylist())), run

    waiting, run = answered()
    longest = run.metrics().operator("group").state_rows_peak
    asking, run = answered(idle=lw.on_demand())
    assert waiting == asking
    metrics = run.metrics()
    assert metrics.stream("silent").enabling_timestamps == 1
    assert metrics.operator("group").state_rows_peak < 100 < longest


def test_nothing_but_rows_of_the_inputs_is_kept() -> None:
    """Every row of two inputs meets every other, and the third has none to make results of."""
    busy = pl.DataFrame({"ts": BUSY, "k": [1] * len(BUSY)})
    a, b = (lw.stream(busy, name=name, time="ts") for name in "ab")
    c = lw.stream(pl.DataFrame({"ts": [0], "k": [2]}), name="c", time="ts")
    run = finished(lw.join([a, b, c], on="k", within=1000))
    assert run.metrics().operator("multijoin").state_rows_peak <= 2 * len(BUSY) + 1
    piped = a.join(b, on="k", within=1000).join(c, on="k", within=1000, suffix="_3")
    joins = [each for each in finished(piped).metrics().operators if each.title.startswith("join")]
    assert max(each.state_rows_peak for each in joins) > 10 * len(BUSY)
