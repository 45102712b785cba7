"""Which rows are late: the plain definition, whatever the cuts and restarts."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.progress.intake import Intake
from lowwater.stream.element import BEGINNING
from tests.unit.progress.judging import ANY, contracts, intake, judge, rows, run, spec_of, table

cuts = st.lists(st.integers(1, 29), max_size=6)
Rows = list[tuple[int, str, int | None]]


@given(rows, contracts)
def test_lateness_equals_the_row_by_row_definition(given_: Rows, contract: Any) -> None:
    outcome, _ = run(intake(progress=contract), table(given_))
    assert outcome == judge(given_, contract, keyed=False)


@given(rows, contracts, st.sampled_from(["", "a", "ab"]))
def test_lateness_is_judged_channel_by_channel(given_: Rows, contract: Any, announced: str) -> None:
    judged = intake(progress=contract, channel="c", announced=tuple(announced))
    outcome, _ = run(judged, table(given_))
    assert outcome == judge(given_, contract, True, announced)


@given(rows, st.booleans())
def test_lateness_follows_the_marks_of_the_producer(given_: Rows, keyed: bool) -> None:
    contract = lw.punctuated("p")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*producer's marks.*backwards.*")
        outcome, _ = run(intake(progress=contract, channel="c" if keyed else None), table(given_))
    assert outcome == judge(given_, contract, keyed)


@given(rows, contracts, st.booleans(), cuts, st.integers(0, 6))
def test_cuts_and_restarts_change_nothing(
    given_: Rows, contract: Any, keyed: bool, places: list[int], restart: int
) -> None:
    options: dict[str, Any] = {"progress": contract, "channel": "c" if keyed else None}
    whole, _ = run(intake(**options), table(given_))
    pieces, _ = run(intake(**options), table(given_), places, restart)
    assert pieces == whole


@given(rows, contracts, cuts, st.integers(0, 6))
def test_cuts_and_restarts_change_nothing_for_leaps(
    given_: Rows, contract: Any, places: list[int], restart: int
) -> None:
    def declared() -> Intake:
        leaps = lw.jump(10, "quarantine")
        return intake(progress=contract, channel="c", announced=("a", "b"), jump=leaps)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*moved no mark.*")
        whole, _ = run(declared(), table(given_))
        pieces, _ = run(declared(), table(given_), places, restart)
    assert pieces == whole


@given(rows, cuts, st.integers(0, 6))
def test_cuts_and_restarts_change_nothing_for_producer_marks(
    given_: Rows, places: list[int], restart: int
) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*producer's marks.*backwards.*")
        whole, _ = run(intake(progress=lw.punctuated("p"), channel="c"), table(given_))
        pieces, _ = run(
            intake(progress=lw.punctuated("p"), channel="c"), table(given_), places, restart
        )
    assert pieces == whole


@given(rows, contracts, cuts)
def test_kept_rows_keep_every_promise_told_before_them(
    given_: Rows, contract: Any, places: list[int]
) -> None:
    judged, frame = intake(progress=contract, channel="c"), table(given_)
    told, at = BEGINNING, 0
    for last in sorted({*places, frame.height}):
        taken = judged.take(frame.slice(at, max(0, last - at)), 0)
        at = max(at, last)
        assert all(time >= told for time in taken.rows["ts"])
        for promise in taken.promises:
            assert promise.values[0] > told  # type: ignore[union-attr]
            told = promise.values[0]  # type: ignore[union-attr]


# ---- channels --------------------------------------------------------------------------------


def test_an_announced_channel_holds_the_mark_from_the_start() -> None:
    judged = intake(channel="c", announced=("a", "b"))
    judged.take(table([(10, "a", None)]), 0)
    assert judged.mark("ts") == BEGINNING
    judged.take(table([(4, "b", None)]), 0)
    assert judged.mark("ts") == 4
    assert judged.slowest("ts") == "b"


def test_an_unannounced_channel_joins_at_the_mark_of_the_stream() -> None:
    # a: 10 . . . 20      b joins when the mark is 10
    # b: . 9 10 11 .      so 9 is late, 10 is not
    judged = intake(channel="c")
    taken = judged.take(
        table([(10, "a", None), (9, "b", None), (10, "b", None), (20, "a", None)]), 0
    )
    assert taken.rows["ts"].to_list() == [10, 10, 20]
    assert judged.mark("ts") == 10


def test_one_channel_does_not_make_another_late() -> None:
    judged = intake(channel="c", announced=("a", "b"))
    taken = judged.take(table([(100, "a", None), (1, "b", None), (2, "b", None)]), 0)
    assert taken.refused is None
    assert judged.mark("ts") == 2


def test_a_replay_announces_the_channels_of_its_log() -> None:
    frame = table([(5, "a", None), (6, "a", None), (1, "b", None)])
    run_ = lw.stream(frame, time="ts", channel="c").run()
    assert run_.await_termination(60)
    assert run_.metrics().late_rows == 0
    assert run_.metrics().streams[0].slowest_channel == "b"


def test_duplicate_channels_are_refused_by_name() -> None:
    with pytest.raises(lw.OptionError, match="channels= names a channel twice: a"):
        spec_of(channel="c", channels=["a", "b", "a"])


def test_channels_without_channel_are_refused() -> None:
    with pytest.raises(lw.OptionError, match="channels= names the values of channel=; give both"):
        spec_of(channels=["a"])


def test_a_promise_is_per_channel_or_per_group_not_both() -> None:
    with pytest.raises(lw.OptionError, match="give channel= or groups="):
        spec_of(channel="c", groups="id")


def test_a_late_row_moves_no_mark() -> None:
    judged = Intake(spec_of(), {"ts": ANY})
    judged.take(table([(10, "a", None), (3, "a", None), (4, "a", None)]), 0)
    assert judged.mark("ts") == 10
    assert judged.account.rows == 2
