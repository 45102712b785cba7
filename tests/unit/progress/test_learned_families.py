"""Learned promises on families of streams reach the share asked for, or say why they do not."""

from __future__ import annotations

import copy
import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from lowwater.progress.completeness import FEW, GROWN, MOST_BY_CHANCE, NEAR, UNSEEN, ShortfallWatch
from lowwater.progress.intake import BatchIntake
from lowwater.progress.learned import LearnedChannel
from lowwater.stream.element import BEGINNING
from tests.support.batches import show_batch
from tests.support.families import DEVELOPMENT, JUDGING, SECOND, Arrivals, Family
from tests.unit.progress.judging import ANY, intake, spec_of
from tests.unit.running import finished

ROWS = 40_000
FAMILIES = {family.name: family for family in (*DEVELOPMENT, *JUDGING)}
FORESEEABLE = {
    "steady": 0.9,
    "three logs": 0.99,
    "up and down": 0.99,
    "long tail": 0.9,
    "uploads": 0.99,
    "regimes": 0.99,
    "growing": 0.99,
    "clocks are set": 0.99,
    "lognormal tail": 0.9,
    "tides": 0.9,
}
"""Families that reach the share in this many rows, and the least one from which on they do."""
cases = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda each: each.name)
targets = pytest.mark.parametrize("target", [0.9, 0.99, 0.999])


@cache
def arrivals(family: Family, seed: int, rows: int = ROWS) -> Arrivals:
    """A stream of a family, made once."""
    return family.arrivals(seed, rows)


def on_time(channel: LearnedChannel, times: np.ndarray) -> np.ndarray:
    """Which rows are let in."""
    return times >= channel.observe(times, times).before


def late_too_many(kept: np.ndarray, target: float) -> float:
    """How many rows were late beyond those that are allowed, and those near enough."""
    return float((~kept).sum()) - (1 - target + NEAR) * len(kept)


@cases
@targets
@pytest.mark.parametrize("seed", [101, 102])
def test_the_share_asked_for_is_reached_or_the_channel_says_why_not(
    family: Family, target: float, seed: int
) -> None:
    channel = LearnedChannel(target, None)
    kept = on_time(channel, arrivals(family, seed).times)
    if target >= FORESEEABLE.get(family.name, 1.0):
        assert kept.mean() >= target - NEAR
    # rows since the slack was chosen are not judged
    if late_too_many(kept, target) > MOST_BY_CHANCE + 64:
        assert channel.shortfall is not None
        assert channel.completeness.reason in (FEW, UNSEEN, GROWN)


@cases
@pytest.mark.parametrize("seed", [101, 102])
def test_by_log_the_share_is_reached_or_the_channel_of_the_log_says_why_not(
    family: Family, seed: int
) -> None:
    found = arrivals(family, seed)
    for log in np.unique(found.channels).tolist():
        times = found.times[found.channels == log]
        channel = LearnedChannel(0.99, None)
        kept = on_time(channel, times)
        assert late_too_many(kept, 0.99) <= MOST_BY_CHANCE + 64 or channel.shortfall is not None


@cases
@pytest.mark.parametrize("target", [0.9, 0.99])
def test_in_batches_the_share_is_reached_or_the_channel_says_why_not(
    family: Family, target: float
) -> None:
    """A batch that is let in and was too late for its channel is counted when it has come."""
    times = arrivals(family, 103).times
    channel, late = LearnedChannel(target, None), 0
    for first in range(0, ROWS, 400):
        batch = np.sort(times[first : first + 400])
        late += int((batch < channel.mark).sum())
        show_batch(channel, batch)
    too_many = late - (1 - target + NEAR) * ROWS
    if target >= FORESEEABLE.get(family.name, 1.0):
        assert too_many <= 0
    assert too_many <= MOST_BY_CHANCE + 400 or channel.shortfall is not None


@pytest.mark.parametrize("target", [0.99, 0.999])
def test_logs_of_very_different_lateness_are_waited_for(target: float) -> None:
    """One row in twenty is thirteen minutes late and the others are milliseconds late: no price is
    worth the wait, but the share asked for cannot be had without it."""
    times = arrivals(FAMILIES["two logs"], 1, 120_000).times
    channel = LearnedChannel(target, None)
    kept = on_time(channel, times)
    assert kept.mean() >= target - NEAR - 0.001
    late = int((~kept)[60_000:].sum())
    assert late <= (1 - target) * 60_000


def test_a_debt_from_long_ago_does_not_wait_for_rows_that_are_hopeless() -> None:
    """A step in lateness leaves a debt; one row in a thousand is a day late all the time."""
    calm = arrivals(FAMILIES["steady"], 1).times.copy()
    calm[::1_000] -= 86_400 * SECOND
    calm[5_000:5_800:2] -= 3_600 * SECOND  # 400 rows
    channel = LearnedChannel(0.99, None)
    on_time(channel, calm[:6_000])
    assert channel.completeness.reason is not None
    slacks = []
    for first in range(6_000, ROWS, 500):
        on_time(channel, calm[first : first + 500])
        slacks.append(channel.completeness.slack or 0)
    assert max(slacks[20:]) < 60 * SECOND
    assert channel.completeness.achieved >= 0.99 - NEAR


@pytest.mark.parametrize(
    "family", [FAMILIES["steady"], FAMILIES["long tail"]], ids=lambda each: each.name
)
@targets
def test_disorder_that_stays_as_it_is_is_no_shortfall(family: Family, target: float) -> None:
    channel = LearnedChannel(target, None)
    times = arrivals(family, 104).times
    for first in range(0, ROWS, 64):
        on_time(channel, times[first : first + 64])
        assert channel.latest_shortfall is None


def test_a_shortfall_says_since_when_and_why_and_ends() -> None:
    """A log begins minutes late; when its rows have been made up for, nothing is left of it."""
    times = np.arange(60_000) * 100
    times[20_000:20_400:2] -= 600 * SECOND
    channel = LearnedChannel(0.99, None)
    on_time(channel, times[:20_000])
    assert channel.shortfall is None
    on_time(channel, times[20_000:20_400])
    assert channel.shortfall is not None
    assert channel.shortfall.reason == UNSEEN
    assert int(times[:20_400].max()) - 40 * SECOND <= channel.shortfall.since
    on_time(channel, times[20_400:])
    assert channel.shortfall is None
    assert channel.latest_shortfall is not None


def test_why_a_channel_falls_short() -> None:
    def reason(known: bool, unseen: int | None) -> str:
        watch = ShortfallWatch(0.01)
        for step in range(1, 40):
            watch.update(
                rows=step * 100, late=0, recent=0.0, newest=step, known=known, unseen=step == unseen
            )
        watch.update(rows=4_000, late=400, recent=0.1, newest=77, known=known, unseen=unseen == 40)
        assert watch.now is not None
        assert watch.now.since == 77
        return watch.now.reason

    assert reason(False, 40) == FEW
    assert reason(True, 40) == reason(True, 30) == UNSEEN
    assert reason(True, 1) == reason(True, None) == GROWN


@pytest.mark.parametrize(
    "family", [FAMILIES["two logs"], FAMILIES["regimes"]], ids=lambda each: each.name
)
def test_cuts_and_restarts_change_no_verdict_and_no_shortfall(family: Family) -> None:
    times = arrivals(family, 105, 12_000).times
    whole, parted = LearnedChannel(0.99, None), LearnedChannel(0.99, None)
    met = whole.observe(times, times).before
    chance, at = np.random.default_rng(1), 0
    while at < len(times):
        until = at + int(chance.integers(1, 900))
        fresh = LearnedChannel(0.99, None)
        fresh.restore(copy.deepcopy(parted.snapshot()))
        parted = fresh
        part = times[at:until]
        assert (parted.observe(part, part).before == met[at:until]).all()
        at = until
    assert parted.snapshot() == whole.snapshot()
    assert parted.completeness == whole.completeness


def test_rows_that_are_late_by_a_promise_of_other_means_are_owed_like_any() -> None:
    times = arrivals(FAMILIES["steady"], 2, 6_000).times
    promised, plain = LearnedChannel(0.99, None), LearnedChannel(0.99, None)
    promised.floor = int(times[:1_000].max())
    for channel in (promised, plain):
        on_time(channel, times[:1_000])
    assert promised.completeness.achieved < 0.1
    assert promised.shortfall is not None
    assert promised.completeness.slack is not None
    assert plain.completeness.slack is not None
    assert promised.completeness.slack > plain.completeness.slack


def test_a_mark_that_is_asked_for_early_keeps_a_distance_from_the_newest_row() -> None:
    channel = LearnedChannel(0.99, None)
    times = np.array([1_000, 940, 1_010])
    channel.observe(times, times)
    assert channel.mark == BEGINNING
    assert channel.contract_mark == 1_010 - 2 * 60


# ---- how it is told ------------------------------------------------------------------------


def rows(channel: bool = False) -> pl.DataFrame:
    """A stream into which a log begins that is ten minutes behind."""
    times = np.arange(8_000) * 100
    times[6_000::2] -= 600 * SECOND
    names = np.where(np.arange(8_000) % 2 == 0, "a", "b") if channel else ["a"] * 8_000
    return pl.DataFrame({"id": range(8_000), "ts": times, "c": names, "p": None})


@pytest.mark.parametrize("channel", [None, "c"])
def test_a_stream_warns_once_for_each_time_it_falls_short(channel: str | None) -> None:
    options: dict[str, Any] = {"progress": lw.learned(0.99), "channel": channel, "unit": "ms"}
    judged, table = intake(**options), rows(channel is not None)
    judged.take(table[:6_000], 0)
    where = "stream 's', channel 'a'" if channel else "stream 's'"
    words = rf"{where}: .* on time on ts, .* the contract states 99 %; this began at .* later than"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for first in range(6_000, 8_000, 100):
            judged.take(table[first : first + 100], 0)
    (told_once,) = told
    assert told_once.category is lw.StreamWarning
    assert re.search(words, str(told_once.message))
    again = intake(**options)
    again.restore(copy.deepcopy(judged.snapshot()))
    again.take(table[6_000:7_000], 0)  # it goes on, and has been told


def test_batches_without_order_warn_likewise() -> None:
    spec = spec_of(progress=lw.learned(0.99), unit="ms")
    judged, table, told = BatchIntake(spec, {"ts": ANY}), rows(), []
    for first in range(0, 8_000, 200):
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            judged.absorb(judged.digest(table[first : first + 200]), 0, 200)
        told += [(first, str(each.message)) for each in noticed]
    ((first, message),) = told
    assert first == 6_000
    assert "the contract states" in message
    ((_, _, whole),) = judged.completeness()
    assert whole.reason == UNSEEN


def test_metrics_say_why_a_stream_falls_short() -> None:
    stream = lw.stream(
        rows(True), name="s", time="ts", unit="ms", progress=lw.learned(0.99), channel="c"
    )
    with pytest.warns(lw.StreamWarning, match="the contract states"):
        run = finished(stream.window("1 minute").agg(n="count(*)"))
    whole, *channels = run.metrics().stream("s").completeness
    found = {each.channel: each for each in channels}
    assert found["b"].shortfall is None is found["b"].short_since
    assert found["a"].shortfall == "rows came that were later than any before them"
    assert (whole.shortfall, whole.short_since) == (found["a"].shortfall, found["a"].short_since)
    assert isinstance(whole.short_since, int)
    assert whole.short_since >= 500 * SECOND
