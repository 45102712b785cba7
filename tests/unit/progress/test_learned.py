"""A learned promise: as complete as asked for, quick to change, and the same however it is cut."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.progress import lateness
from lowwater.progress.lateness import merge_counts
from lowwater.progress.learned import LearnedChannel, Ticks
from lowwater.stream.element import BEGINNING
from tests.unit.running import finished


def disordered(rows: int, scale: float | np.ndarray, seed: int = 1, step: int = 10) -> Ticks:
    """Times of rows that were delayed by chance, in order of arrival."""
    times = np.arange(rows) * step
    delays = np.random.default_rng(seed).exponential(scale, rows)
    return times[np.argsort(times + delays, kind="stable")]


def judged(channel: LearnedChannel, times: Ticks, cuts: Any = ()) -> tuple[list[int], list[int]]:
    """The marks that rows met and left, the rows cut into chunks at these places."""
    met: list[int] = []
    after: list[int] = []
    for first, last in pairwise([0, *sorted(cuts), len(times)]):
        verdict = channel.observe(times[first:last], times[first:last])
        met += verdict.before.tolist()
        after += verdict.after.tolist()
    return met, after


@pytest.mark.parametrize("target", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("scale", [10.0, 300.0, 1e4])
def test_the_share_of_rows_on_time_comes_to_the_one_asked_for(target: float, scale: float) -> None:
    channel = LearnedChannel(target, None)
    times = disordered(60_000, scale)
    met, _ = judged(channel, times)
    on_time = float((times >= np.array(met)).mean())
    assert on_time == pytest.approx(target, abs=0.003)
    told = channel.completeness
    assert told.achieved == on_time
    assert told.recent == pytest.approx(target, abs=0.005 + (1 - target) / 4)
    assert told.expected == pytest.approx(target, abs=0.02 + (1 - target))


def test_the_slack_follows_disorder_up_and_down() -> None:
    calm, wild = np.full(20_000, 20.0), np.full(20_000, 2_000.0)
    times = disordered(60_000, np.concatenate([calm, wild, calm]))
    channel = LearnedChannel(0.99, None)
    slacks = []
    for first in range(0, 60_000, 20_000):
        judged(channel, times[first : first + 20_000])
        slack = channel.completeness.slack
        assert slack is not None
        slacks.append(slack)
    assert slacks[1] > 20 * slacks[0]
    assert slacks[2] < slacks[1] / 5
    assert channel.completeness.achieved == pytest.approx(0.99, abs=0.003)


def test_a_few_hopeless_rows_are_not_waited_for() -> None:
    """One row in a thousand is a day late; 99 % can be had without them."""
    times = disordered(50_000, 50.0)
    times[::1_000] -= 86_400_000
    channel = LearnedChannel(0.99, None)
    judged(channel, times)
    told = channel.completeness
    assert told.slack is not None
    assert told.slack < 1_000
    assert told.achieved == pytest.approx(0.99, abs=0.003)


def test_a_long_quiet_time_does_not_pay_for_a_careless_one() -> None:
    channel = LearnedChannel(0.99, None)
    judged(channel, np.arange(300_000) * 10)
    assert channel.completeness.slack == 0
    times = 3_000_000 + disordered(20_000, 500.0)
    met, _ = judged(channel, times)
    assert float((times >= np.array(met)).mean()) > 0.98


def test_nothing_is_promised_before_there_is_something_to_learn_from() -> None:
    channel = LearnedChannel(0.9, None)
    _, after = judged(channel, np.arange(40) * 10)
    assert after[:16] == [BEGINNING] * 16
    assert after[16] == 80  # a slack of the time that the rows since the last choice took
    assert after[-1] == 390  # 20 rows are enough to know that one in ten may be late
    assert LearnedChannel(0.9, None).completeness.expected == 1.0


@given(
    st.integers(0, 999),
    st.sampled_from([0.5, 0.9, 0.99]),
    st.lists(st.integers(0, 400), max_size=6),
    st.sampled_from([None, 50, 1_000]),
)
def test_cuts_and_restarts_change_nothing(
    seed: int, target: float, cuts: list[int], jump: int | None
) -> None:
    times = disordered(400, 80.0, seed)
    times[np.random.default_rng(seed).integers(0, 400, 3)] += 5_000
    whole = LearnedChannel(target, jump)
    met, after = judged(whole, times)
    channel = LearnedChannel(target, jump)
    parted: list[tuple[list[int], list[int]]] = []
    for first, last in pairwise([0, *sorted(cuts), len(times)]):
        fresh = LearnedChannel(target, jump)
        fresh.restore(copy.deepcopy(channel.snapshot()))
        channel = fresh
        parted.append(judged(channel, times[first:last]))
    assert [mark for part, _ in parted for mark in part] == met
    assert [mark for _, part in parted for mark in part] == after
    assert channel.snapshot() == whole.snapshot()
    assert met == sorted(met)


@given(st.lists(st.integers(0, 2**62 - 1), min_size=1, max_size=50))
def test_bins_are_exact_where_small_and_fine_everywhere(values: list[int]) -> None:
    given = np.array(values, dtype=np.int64)
    longest = lateness.longest_in(lateness.bins_of(given))
    assert (longest >= given).all()
    assert (longest - given <= given // 128).all()
    ordered = np.sort(given)
    assert (np.diff(lateness.bins_of(ordered)) >= 0).all()
    assert lateness.bit_lengths(given).tolist() == [value.bit_length() for value in values]


@given(
    st.lists(st.tuples(st.integers(-(2**61), 2**61), st.integers(0, 3)), min_size=1, max_size=40),
    st.sampled_from([None, 1, 1_000, 2**40]),
    st.integers(1, 2**50),
)
def test_times_counted_in_parts_are_those_counted_together(
    given: list[tuple[int, int]], jump: int | None, scale: int
) -> None:
    times = np.array([time // scale for time, _ in given], dtype=np.int64)
    parts = np.array([part for _, part in given])
    ones = np.ones(len(times), dtype=np.int64)
    whole = merge_counts(times, ones, jump)
    some = [merge_counts(times[parts == each], ones[parts == each], jump) for each in range(4)]
    again = merge_counts(
        np.concatenate([each for each, _ in some]), np.concatenate([each for _, each in some]), jump
    )
    assert again[0].tolist() == whole[0].tolist()
    assert again[1].tolist() == whole[1].tolist()
    assert whole[1].sum() == len(times)
    assert whole[0].max() == times.max()


def test_batches_are_learned_from_by_the_newest_time_before_them() -> None:
    times = disordered(80_000, 400.0)
    channel = LearnedChannel(0.99, None)
    late = 0
    for first in range(0, 80_000, 500):
        batch = np.sort(times[first : first + 500])
        late += int((batch < channel.mark).sum())
        believe = np.full(2, BEGINNING)
        channel.absorb(
            np.concatenate([batch[-2:], batch]), np.concatenate([believe, np.ones(500, np.int64)])
        )
    assert 1 - late / 80_000 == pytest.approx(0.99, abs=0.005)
    assert channel.completeness.achieved == pytest.approx(1 - late / 80_000, abs=0.002)


def test_a_run_tells_how_complete_it_was_by_channel() -> None:
    times = disordered(20_000, 200.0)
    rows = pl.DataFrame({"ts": times, "c": np.where(np.arange(20_000) % 4, "a", "b")})
    stream = lw.stream(rows, name="s", time="ts", unit="ms", progress=lw.learned(0.95), channel="c")
    run = finished(stream.window("1 second").agg(n="count(*)"))
    metrics = run.metrics().stream("s")
    whole, *channels = metrics.completeness
    assert (whole.channel, whole.rows, whole.late_rows) == (None, 20_000, metrics.refused_rows)
    assert whole.achieved == pytest.approx(0.95, abs=0.005)
    assert [(each.channel, each.rows) for each in channels] == [("b", 5_000), ("a", 15_000)]
    assert sum(each.late_rows for each in channels) == whole.late_rows
    assert whole.slack_seconds == max(each.slack_seconds or 0 for each in channels)
    assert run.late_rows().num_rows == whole.late_rows


def test_streams_with_a_stated_promise_say_nothing_of_completeness() -> None:
    run = finished(lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts"))
    assert run.metrics().stream("s").completeness == ()


@pytest.mark.parametrize("share", [0, 1, 1.0, -0.5, 99.9, True, "0.9", float("nan")])
def test_a_completeness_is_between_none_and_all(share: Any) -> None:
    with pytest.raises(lw.OptionError, match=r"between 0 and 1, such as 0\.999 for"):
        lw.learned(share)
