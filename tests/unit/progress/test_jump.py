"""A row dated far ahead: one stray makes no honest row late, and an honest gap is believed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.progress.channel import MeasuredChannel
from tests.unit.running import finished

DAY = 86_400
STRAY = [0, 1, 2, 400 * DAY, 3, 4, 5]
GAP = [0, 1, 2, 400 * DAY, 400 * DAY + 1, 400 * DAY + 2, 3]


def declared(times: list[int], **options: Any) -> lw.Stream:
    return lw.stream(pl.DataFrame({"ts": times}), name="s", time="ts", **options)


@pytest.mark.parametrize("chunk_rows", [1, 2, 4, 100])
def test_one_stray_makes_no_honest_row_late_and_is_warned_of(chunk_rows: int) -> None:
    with pytest.warns(UserWarning, match="stream 's': 1 row.* had ts more than 1 day ahead"):
        run = finished(declared(STRAY), chunk_rows=chunk_rows)
    assert run.results()["ts"].to_pylist() == STRAY
    metrics = run.metrics().stream("s")
    assert (metrics.refused_rows, metrics.stray_rows, metrics.marks["ts"]) == (0, 1, 5)


@pytest.mark.parametrize("chunk_rows", [1, 2, 4, 100])
def test_an_honest_gap_is_believed_once_confirmed(chunk_rows: int) -> None:
    run = finished(declared(GAP), chunk_rows=chunk_rows)
    assert run.late_rows()["ts"].to_pylist() == [3]
    metrics = run.metrics().stream("s")
    assert metrics.stray_rows == 0
    assert metrics.marks["ts"] == 400 * DAY + 2


@pytest.mark.parametrize("progress", [lw.within("1 minute"), lw.within_rows(2)])
def test_strays_and_gaps_are_told_apart_under_every_contract(progress: Any) -> None:
    with pytest.warns(UserWarning, match="their times moved no mark"):
        run = finished(declared([*STRAY, 6, 7], progress=progress))
    assert run.metrics().late_rows == 0
    assert finished(declared(GAP, progress=progress)).metrics().stream("s").stray_rows == 0


def test_a_quarantined_row_is_set_aside_and_moves_no_mark() -> None:
    with pytest.warns(UserWarning, match="moved no mark"):
        run = finished(declared(STRAY, jump=lw.jump("1 day", "quarantine")))
    assert run.results()["ts"].to_pylist() == [0, 1, 2, 3, 4, 5]
    side = run.late_rows().to_pylist()
    assert [(row["ts"], row["_reason"]) for row in side] == [(400 * DAY, "dated far ahead")]


def test_fail_stops_at_the_leap_and_names_it() -> None:
    stream = declared(STRAY, jump=lw.jump("1 day", "fail"))
    with pytest.raises(lw.BrokenPromise) as caught:
        stream.collect(chunk_rows=1)
    error = caught.value
    assert (error.stream, error.channel, error.time) == ("s", None, 400 * DAY)
    assert "ts = 34560000, more than 1 day ahead of the rows before it" in str(error)


def test_without_a_jump_rule_every_time_is_believed() -> None:
    run = finished(declared(STRAY, jump=None))
    assert run.late_rows()["ts"].to_pylist() == [3, 4, 5]


def test_steps_below_the_limit_may_lead_any_distance() -> None:
    times = [at * DAY for at in range(50)]
    assert finished(declared(times)).metrics().stream("s").marks["ts"] == 49 * DAY


def test_each_channel_has_its_own_reference() -> None:
    frame = pl.DataFrame({"ts": [0, 900 * DAY, 1, 900 * DAY + 1], "c": ["a", "b", "a", "b"]})
    run = finished(lw.stream(frame, time="ts", channel="c"))
    assert run.metrics().streams[0].stray_rows == 0
    assert run.metrics().late_rows == 0


def test_two_strays_in_a_row_that_disagree_are_both_disbelieved() -> None:
    with pytest.warns(UserWarning, match="moved no mark"):
        run = finished(declared([0, 1, 900 * DAY, 500 * DAY, 2, 3]))
    assert run.metrics().late_rows == 0
    assert run.metrics().stream("s").stray_rows == 2


def test_the_newest_time_of_a_channel_ignores_an_unconfirmed_leap() -> None:
    channel = MeasuredChannel(slack=0, rows=0, jump=10)
    frame = pl.Series([0, 5, 100]).to_numpy()
    verdict = channel.observe(frame, frame)
    assert verdict.leaps == [2]
    assert (channel.newest, channel.mark) == (5, 5)


def test_the_action_must_be_known() -> None:
    with pytest.raises(lw.OptionError, match="then= is 'warn', 'quarantine' or 'fail', not 'x'"):
        lw.jump("1 day", "x")  # type: ignore[arg-type]


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
@pytest.mark.parametrize("progress", [lw.ordered(), lw.within("5 s"), lw.within_rows(1)])
def test_a_stray_on_the_very_first_row_is_not_believed_either(
    progress: Any, chunk_rows: int
) -> None:
    times = [900 * DAY, 0, 1, 2, 3]
    with pytest.warns(UserWarning, match="moved no mark"):
        run = finished(declared(times, progress=progress), chunk_rows=chunk_rows)
    assert run.metrics().late_rows == 0
    assert run.results()["ts"].to_pylist() == times
