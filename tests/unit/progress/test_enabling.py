"""Enabling timestamps made by an intake: the clock, or t + τ - δ."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.progress.intake import Intake
from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING, GroupPunctuation, Punctuation
from tests.unit.progress.judging import ANY, intake, spec_of, table


def test_an_external_stamp_is_last_time_plus_silence_minus_skew() -> None:
    judged = intake(idle=lw.on_demand("2 s"))
    judged.take(table([(100, "a", None)]), now=10 * SECOND)
    assert judged.enable("ts", 104, now=15 * SECOND) == []  # 100 + 5 - 2 = 103
    assert judged.enable("ts", 104, now=16 * SECOND) == [Punctuation.linear("ts", 104)]
    assert judged.mark("ts") == 104


def test_when_says_at_what_clock_time_the_stamp_is_possible() -> None:
    judged = intake(idle=lw.on_demand("2 s"))
    assert judged.when("ts", 5, now=0) is None
    judged.take(table([(100, "a", None)]), now=10 * SECOND)
    when = judged.when("ts", 104, now=10 * SECOND)
    assert when == 16 * SECOND
    assert judged.enable("ts", 104, now=when - 1) == []
    assert judged.enable("ts", 104, now=when) != []


def test_a_source_that_never_spoke_cannot_be_asked() -> None:
    judged = intake(idle=lw.on_demand())
    assert judged.enable("ts", 5, now=10**18) == []
    assert judged.mark("ts") == BEGINNING


def test_a_source_that_never_spoke_is_at_most_so_far_behind_the_clock() -> None:
    judged = intake(idle=lw.on_demand(behind_clock="30 s"))
    assert judged.when("ts", 70, now=0) == 100 * SECOND
    assert judged.enable("ts", 70, now=100 * SECOND - 1) == []
    assert judged.enable("ts", 70, now=100 * SECOND) == [Punctuation.linear("ts", 70)]
    taken = judged.take(table([(69, "a", None), (70, "a", None)]), now=100 * SECOND)
    assert taken.refused is not None
    assert taken.refused.select("ts", "_reason", "_late_by_seconds", "_mark").rows() == [
        (69, "late", 1.0, 70)
    ]


def test_the_greater_of_both_timestamps_holds() -> None:
    judged = intake(idle=lw.on_demand("2 s", behind_clock="30 s"))
    judged.take(table([(100, "a", None)]), now=110 * SECOND)  # 10 behind the clock
    assert judged.when("ts", 118, now=110 * SECOND) == 130 * SECOND
    judged.take(table([(60, "a", None), (100, "a", None)]), now=111 * SECOND)
    slow = intake(idle=lw.on_demand("2 s", behind_clock="30 s"))
    slow.take(table([(20, "a", None)]), now=110 * SECOND)  # 90 behind the clock
    assert slow.when("ts", 118, now=110 * SECOND) == 148 * SECOND


@pytest.mark.parametrize("options", [{"channel": "c"}, {"groups": "c"}])
def test_the_clock_bounds_channels_and_groups_that_never_spoke(options: Any) -> None:
    judged = intake(idle=lw.on_demand(behind_clock="30 s"), announced=("a", "b"), **options)
    judged.take(table([(100, "a", None)] * 2), now=101 * SECOND)
    assert judged.when("ts", 100, now=101 * SECOND) == 130 * SECOND
    (whole, *groups) = judged.enable("ts", 100, now=130 * SECOND)
    assert whole == Punctuation.linear("ts", 100)
    assert all(isinstance(each, GroupPunctuation) for each in groups)
    late = judged.take(table([(99, "b", None), (100, "new", None)]), now=131 * SECOND).refused
    assert late is not None
    assert late["ts"].to_list() == [99]


@pytest.mark.parametrize("options", [{"channel": "c"}, {"groups": "c"}])
@pytest.mark.parametrize("progress", [lw.ordered(), lw.within_rows(2)])
def test_the_clock_bounds_a_stream_whose_channels_are_not_known(
    options: Any, progress: Any
) -> None:
    idle = lw.heartbeat("1 s", behind_clock="30 s")
    judged = intake(idle=idle, progress=progress, **options)
    assert judged.when("ts", 70, now=0) == 100 * SECOND
    ((promise,),) = judged.enable_all(100 * SECOND)
    assert promise == Punctuation.linear("ts", 70)
    late = judged.take(table([(69, "b", None), (70, "b", None)]), now=101 * SECOND).refused
    assert late is not None
    assert late["ts"].to_list() == [69]


def test_a_request_for_a_group_that_is_not_known_is_met_by_the_clock() -> None:
    for progress in (lw.ordered(), lw.within_rows(2)):
        judged = intake(
            idle=lw.on_demand(behind_clock="30 s"), groups="c", progress=progress, announced=("a",)
        )
        judged.request("ts", "window", "b", 70)
        assert judged.due_groups() == 100 * SECOND
        assert judged.enable_groups(100 * SECOND)[0] == Punctuation.linear("ts", 70)
        assert judged.due_groups() is None


def test_every_channel_must_allow_the_stamp() -> None:
    judged = intake(idle=lw.on_demand(), channel="c", announced=("a", "b"))
    judged.take(table([(100, "a", None)]), now=0)
    assert judged.enable("ts", 101, now=10 * SECOND) == []
    judged.take(table([(90, "b", None)]), now=10 * SECOND)
    assert judged.when("ts", 101, now=10 * SECOND) == 21 * SECOND
    assert judged.enable("ts", 101, now=21 * SECOND) != []


def test_a_stamp_is_a_promise_that_makes_rows_late() -> None:
    judged = intake(idle=lw.on_demand())
    judged.take(table([(100, "a", None)]), now=0)
    judged.enable("ts", 105, now=5 * SECOND)
    refused = judged.take(table([(104, "a", None)]), now=6 * SECOND).refused
    assert refused is not None
    assert refused["_late_by_seconds"].to_list() == [1.0]


def test_an_internal_stamp_is_the_clock() -> None:
    spec = spec_of(
        pl.DataFrame(schema={"v": pl.Int64}), time="ts", stamp="internal", idle=lw.on_demand()
    )
    judged = Intake(spec, {"ts": ANY})
    (promise,) = judged.enable("ts", 3_000_000, now=3 * SECOND)
    assert promise == Punctuation.linear("ts", 3_000_000)
    taken = judged.take(pl.DataFrame({"v": [1]}), now=3 * SECOND)
    assert taken.refused is None
    assert taken.rows["ts"].to_physical().to_list() == [3_000_000]


def test_a_stamp_survives_a_restart() -> None:
    judged = intake(idle=lw.on_demand("2 s"))
    judged.take(table([(100, "a", None)]), now=10 * SECOND)
    again = intake(idle=lw.on_demand("2 s"))
    again.restore(judged.snapshot())
    assert again.when("ts", 104, now=10 * SECOND) == 16 * SECOND


def test_a_pure_punctuation_is_not_the_newest_row() -> None:
    judged = intake(idle=lw.on_demand("1 s"), progress=lw.punctuated("p"))
    pure = pl.DataFrame(
        [(0, 1, "a", None), (1, None, "a", 5)],
        schema={"id": pl.Int64, "ts": pl.Int64, "c": pl.String, "p": pl.Int64},
        orient="row",
    )
    judged.take(pure, now=0)
    assert judged.enable("ts", 6, now=SECOND) == []
    assert judged.mark("ts") == 5


# ---- groups ----------------------------------------------------------------------------------

ALONE = {"ts": ANY.with_linear(False)}
CONTRACTS = [lw.ordered(), lw.within_rows(0)]
"""One that is followed in columns, one that is followed channel by channel."""


@pytest.mark.parametrize("contract", CONTRACTS, ids=["columns", "channels"])
def test_a_group_is_stamped_by_its_own_silence(contract: Any) -> None:
    judged = intake(ALONE, groups="c", idle=lw.on_demand("2 s"), progress=contract)
    judged.take(table([(100, "a", None)]), now=0)
    judged.take(table([(90, "b", None), (200, "c", None)]), now=SECOND)
    # a: 100 + τ - 2; b: 90 + τ - 2, a second later; c is past what is waited for.
    assert judged.when("ts", 104, now=SECOND) == 6 * SECOND
    assert judged.enable("ts", 104, now=6 * SECOND - 1) == []
    (promise,) = judged.enable("ts", 104, now=6 * SECOND)
    assert isinstance(promise, GroupPunctuation)
    assert promise.marks.rows() == [("a", 104)]
    assert judged.when("ts", 104, now=6 * SECOND) == 17 * SECOND
    (promise,) = judged.enable("ts", 104, now=17 * SECOND)
    assert isinstance(promise, GroupPunctuation)
    assert promise.marks.rows() == [("b", 104)]
    assert judged.enable("ts", 104, now=99 * SECOND) == []
    assert judged.when("ts", 104, now=99 * SECOND) in (None, 99 * SECOND)


@pytest.mark.parametrize("contract", CONTRACTS, ids=["columns", "channels"])
def test_the_whole_stream_is_promised_when_its_last_group_can_be(contract: Any) -> None:
    judged = intake(groups="c", idle=lw.on_demand(), progress=contract, announced=("a", "b"))
    judged.take(table([(100, "a", None), (90, "b", None)]), now=0)
    first = judged.enable("ts", 105, now=5 * SECOND)
    assert [type(each) for each in first] == [GroupPunctuation]
    assert judged.enable("ts", 105, now=15 * SECOND) == [Punctuation.linear("ts", 105)]


def test_a_stamp_of_a_group_makes_rows_of_that_group_late_and_no_others() -> None:
    judged = intake(ALONE, groups="c", idle=lw.on_demand())
    judged.take(table([(100, "a", None), (100, "b", None)]), now=0)
    judged.take(table([(101, "b", None)]), now=4 * SECOND)
    judged.enable("ts", 105, now=5 * SECOND)
    refused = judged.take(table([(104, "a", None), (104, "b", None)]), now=6 * SECOND).refused
    assert refused is not None
    assert refused["c"].to_list() == ["a"]


def test_a_heartbeat_speaks_for_every_group_that_has_spoken() -> None:
    judged = intake(ALONE, groups="c", idle=lw.heartbeat("1 s"), announced=("a", "b", "silent"))
    judged.take(table([(100, "a", None), (90, "b", None)]), now=0)
    (promise,) = judged.enable("ts", BEGINNING, now=5 * SECOND)
    assert isinstance(promise, GroupPunctuation)
    assert sorted(promise.marks.rows()) == [("a", 105), ("b", 95)]
    assert judged.enable("ts", BEGINNING, now=5 * SECOND) == []
