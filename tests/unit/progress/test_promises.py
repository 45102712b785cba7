"""Punctuation: no finer than demanded, never twice, by step, by timer, per group, per attribute."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.stream.element import BEGINNING, MARK, SEQUENCE, GroupPunctuation, Punctuation
from tests.unit.progress.judging import ANY, contracts, intake, rows, run, spec_of, table

ALONE = ANY.with_linear(False)
"""Wanted for single groups, and by nobody for the whole stream."""


def linear(promises: Any) -> list[tuple[str, int]]:
    return [promise.bounds[0] for promise in promises if isinstance(promise, Punctuation)]


# ---- describe --------------------------------------------------------------------------------

grids = st.lists(st.tuples(st.integers(1, 20), st.integers(-40, 40)), min_size=1, max_size=3)


def demand_of(points: list[tuple[int, int]]) -> Demand:
    demand = Demand()
    for step, offset in points:
        demand |= Demand.grid(step, offset)
    return demand


@given(grids, st.integers(-100, 100))
def test_roll_gives_the_greatest_useful_mark(points: list[tuple[int, int]], mark: int) -> None:
    useful = [
        value
        for value in range(mark - 25, mark + 1)
        if any((value - offset) % step == 0 for step, offset in points)
    ]
    assert demand_of(points).round_down(mark) == max(useful)


@given(grids, st.integers(-50, 50), st.integers(-100, 100))
def test_a_shifted_demand_is_the_demand_on_the_shifted_attribute(
    points: list[tuple[int, int]], shift: int, mark: int
) -> None:
    demand = demand_of(points)
    assert demand.shifted(shift).round_down(mark) + shift == demand.round_down(mark + shift)


def test_a_demand_for_any_value_swallows_the_others() -> None:
    assert Demand.grid(10) | Demand.any_value() == Demand.any_value()
    assert Demand.any_value().round_down(17) == 17


def test_an_empty_demand_finds_nothing_useful() -> None:
    assert Demand().round_down(17) == BEGINNING


# ---- telling ---------------------------------------------------------------------------------


@given(rows, contracts, grids, st.lists(st.integers(1, 29), max_size=6), st.integers(0, 6))
def test_no_promise_is_told_twice_or_finer_than_demanded(
    given_: Any, contract: Any, points: list[tuple[int, int]], cuts: list[int], restart: int
) -> None:
    demands = {"ts": demand_of(points)}
    judged = intake(demands, progress=contract)
    outcome, promises = run(judged, table(given_), cuts, restart, demands)
    told = [promise.values[0] for promise in promises]
    assert told == sorted(set(told))
    assert all(any((mark - off) % step == 0 for step, off in points) for mark in told)
    if outcome.mark > BEGINNING:
        assert told[-1] == demands["ts"].round_down(outcome.mark)


def test_nobody_is_told_what_nobody_demands() -> None:
    judged = Intake(spec_of(), {})
    assert judged.take(table([(1, "a", None), (9, "a", None)]), 0).promises == []
    assert judged.mark("ts") == 9


def test_a_source_feeding_a_window_tells_only_the_ends_of_windows() -> None:
    stream = lw.stream(pl.DataFrame({"ts": range(100), "v": range(100)}), time="ts")
    run_ = stream.window("10 s").agg(s="sum(v)").run(chunk_rows=1)
    assert run_.await_termination(60)
    assert run_.metrics().operator("window").promises_in == 10


def test_every_tells_at_multiples_of_its_step() -> None:
    judged = intake(punctuate=lw.every("5 s"))
    told = []
    for time in (1, 4, 5, 9, 11, 26):
        told += linear(judged.take(table([(time, "a", None)]), 0).promises)
    assert told == [("ts", 0), ("ts", 5), ("ts", 10), ("ts", 25)]


def test_a_timer_tells_only_when_it_fires() -> None:
    judged = intake(punctuate=lw.timer("5 s"))
    assert judged.take(table([(1, "a", None), (7, "a", None)]), 0).promises == []
    assert linear(judged.promises()) == [("ts", 7)]
    assert judged.promises() == []


def test_the_engine_fires_the_timer_by_its_clock() -> None:
    # arrivals   0 1 2 3 4 5 6 7 8 9 10 11      timer fires at 5 and 10
    frame = pl.DataFrame({"arrived": range(12), "ts": range(12)})
    source = lw.replay(frame, "arrived")
    stream = lw.stream(source, time="ts", punctuate=lw.timer("5 s")).order_by("ts")
    run_ = stream.run(tick=0)
    assert run_.await_termination(60)
    assert run_.metrics().operator("sort").promises_in == 2


@pytest.mark.parametrize("make", [lw.every, lw.timer, lw.heartbeat, lw.jump])
@pytest.mark.parametrize("length", [0, "-1 s"])
def test_periods_must_be_above_zero(make: Any, length: Any) -> None:
    with pytest.raises(lw.OptionError, match="above zero"):
        make(length)


def test_row_numbers_are_told_as_rows_come_in() -> None:
    judged = intake({SEQUENCE: ANY})
    taken = judged.take(table([(5, "a", None), (1, "a", None), (6, "a", None)]), 0)
    assert taken.rows[SEQUENCE].to_list() == [0, 2]
    assert linear(taken.promises) == [(SEQUENCE, 3)]
    taken = judged.take(table([(8, "a", None)]), 0)
    assert taken.rows[SEQUENCE].to_list() == [3]


# ---- several attributes ----------------------------------------------------------------------


def flows() -> pl.DataFrame:
    #            start    end
    # flow 0     0 ------ 10
    # flow 1       2 - 11
    # flow 2       1 ------- 12
    return pl.DataFrame({"id": [0, 1, 2], "start": [0, 2, 1], "end": [10, 11, 12]})


def test_several_attributes_progress_side_by_side() -> None:
    spec = spec_of(flows(), time="end", progress={"end": lw.ordered(), "start": lw.within("12 s")})
    judged = Intake(spec, {"end": ANY, "start": ANY})
    taken = judged.take(flows(), 0)
    assert taken.refused is None
    assert dict(linear(taken.promises)) == {"end": 12, "start": -10}


def test_a_row_must_keep_the_promise_on_every_attribute() -> None:
    spec = spec_of(flows(), time="end", progress={"end": lw.ordered(), "start": lw.ordered()})
    judged = Intake(spec, {"end": ANY, "start": ANY})
    taken = judged.take(flows(), 0)
    assert taken.rows["id"].to_list() == [0, 1]
    assert taken.refused is not None
    assert taken.refused["id"].to_list() == [2]


def test_the_time_column_must_be_among_the_promises() -> None:
    with pytest.raises(lw.QueryError, match="progress= must also say how 'end' progresses"):
        spec_of(flows(), time="end", progress={"start": lw.ordered()})


# ---- groups ----------------------------------------------------------------------------------


def test_groups_are_told_each_their_own_mark() -> None:
    judged = intake({"ts": ALONE}, groups="c")
    first = judged.take(table([(5, "a", None), (9, "b", None)]), 0).promises
    second = judged.take(table([(7, "a", None)]), 0).promises
    marks = [each.marks for each in (*first, *second) if isinstance(each, GroupPunctuation)]
    assert [dict(each.select("c", MARK).iter_rows()) for each in marks] == [
        {"a": 5, "b": 9},
        {"a": 7},
    ]
    assert linear(first) == linear(second) == []


def test_what_is_told_of_the_whole_stream_is_not_told_again_of_its_slowest_group() -> None:
    judged = intake(groups="c")
    promises = judged.take(table([(5, "a", None), (9, "b", None)]), 0).promises
    assert linear(promises) == [("ts", 5)]
    (promise,) = [each for each in promises if isinstance(each, GroupPunctuation)]
    assert promise.marks.rows() == [("b", 9)]
    assert promise.before == 5


def test_groups_of_several_columns_are_named_by_all_of_them() -> None:
    judged = intake({"ts": ALONE}, groups=["c", "id"])
    (promise,) = [
        each
        for each in judged.take(table([(5, "a", None), (9, "b", None)]), 0).promises
        if isinstance(each, GroupPunctuation)
    ]
    assert promise.keys == ("c", "id")
    assert promise.marks.rows() == [("a", 0, 5), ("b", 1, 9)]


# ---- promises beside the rows ----------------------------------------------------------------


def test_a_promise_beside_the_rows_moves_the_mark_and_makes_rows_late() -> None:
    judged = intake()
    judged.take(table([(1, "a", None)]), 0)
    assert linear(judged.promise("ts", 50)) == [("ts", 50)]
    assert judged.take(table([(49, "a", None)]), 0).refused is not None
    assert judged.take(table([(50, "a", None)]), 0).refused is None


def test_a_promise_beside_the_rows_that_goes_back_is_ignored_with_a_warning() -> None:
    judged = intake()
    judged.take(table([(10, "a", None)]), 0)
    with pytest.warns(UserWarning, match="stream 's': .*producer's marks on ts .* ?backwards"):
        assert judged.promise("ts", 5) == []
    assert judged.mark("ts") == 10
    assert judged.account.backward_marks == 1


def test_a_promise_on_what_does_not_progress_is_refused() -> None:
    with pytest.raises(lw.OptionError, match=r"makes no promises on 'id'; it makes promises on ts"):
        intake().promise("id", 5)


def test_a_promise_made_before_the_first_channel_speaks_holds_for_it() -> None:
    judged = intake(channel="c")
    judged.promise("ts", 100)
    taken = judged.take(table([(50, "a", None), (100, "a", None)]), 0)
    assert taken.rows["ts"].to_list() == [100]
    assert judged.mark("ts") == 100


def test_a_replay_announces_its_groups() -> None:
    frame = table([(1, "a", None), (2, "a", None), (1, "b", None), (2, "b", None)])
    run_ = lw.stream(frame, time="ts", groups="c").run()
    assert run_.await_termination(60)
    assert run_.metrics().late_rows == 0


def test_a_producers_marks_count_in_the_unit_of_their_attribute() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3], "b": [1000, 2000, 3000], "p": [None, 2000, None]})
    frame = frame.with_columns(
        pl.col("a").cast(pl.Datetime("us")), pl.col("b", "p").cast(pl.Datetime("ms"))
    )
    spec = spec_of(frame, time="a", progress={"a": lw.ordered(), "b": lw.punctuated("p")})
    judged = Intake(spec, {"a": ANY, "b": ANY})
    assert judged.take(frame, 0).refused is None
    assert (judged.mark("a"), judged.mark("b")) == (3, 2000)
